# ruff: noqa: E501 - lines of a log are kept whole
from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaops.facts.load_log import LoadFacts, LoadLogReader, listening_url, parse_load_log
from llamaops.facts.load_log_buffers import MIB
from tests.unit.facts.load_logs import (
    FOLDER,
    SOURCE,
    YEAR_2023,
    YEAR_2024,
    YEAR_2025,
    parsed,
    read,
    stored,
    why,
)

ALL_LOGS = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.log"))]


def mib(size_bytes: int) -> float:
    return round(size_bytes / MIB, 2)


def sizes(facts: LoadFacts) -> dict[str, float]:
    return {b.name: mib(b.size_bytes) for b in facts.weight_buffers.need()}


# Where weights lie.


def test_partial_offload_to_a_remote_device_is_on_both() -> None:
    facts = read("b10434-rpc-offload20")
    assert sizes(facts) == {"CPU_Mapped": 92.10, "RPC0[127.0.0.1:19140]": 68.85}
    remote = facts.weight_buffers.need()[1]
    assert (remote.place, remote.device, remote.endpoint) == ("remote", "RPC0", "127.0.0.1:19140")
    assert mib(facts.weights_on_devices_bytes.need()) == 68.85
    assert mib(facts.weights_on_host_bytes.need()) == 92.10
    assert (facts.offload.need().layers, facts.offload.need().of) == (20, 31)
    assert facts.devices_used.need() == ("RPC0",)


def test_an_offload_line_without_a_device_buffer_puts_nothing_on_a_device() -> None:
    facts = read("b10434-cpu-claims-offload")
    assert facts.offload.need().layers == 31
    assert facts.weights_on_devices_bytes.need() == 0


def test_default_verbosity_proves_nothing_by_absence() -> None:
    facts = read("b11669-default")
    assert facts.library_lines.need() is False
    assert why(facts.offload) == "not_attempted"
    assert why(facts.weight_buffers) == "not_attempted"
    assert why(facts.weights_on_devices_bytes) == "not_attempted"
    assert (facts.n_slots.need(), facts.n_ctx_slot.need(), facts.kv_unified.need()) == (4, 2048, True)


def test_absence_counts_once_the_library_speaks() -> None:
    assert why(read("b11669-completion").offload) == "absent"


def test_the_last_load_counts_not_the_dry_one() -> None:
    facts = read("b11669-dry-pass-first")
    assert sizes(facts) == {"CPU_Mapped": 92.10}
    assert mib(facts.kv_buffers.need()[0].size_bytes) == 11.25


def test_a_draft_model_after_the_main_one_does_not_count() -> None:
    draft = YEAR_2025 + (
        "srv    load_model: loading draft model '/m/draft.gguf'\n"
        "llama_model_loader: loaded meta data with 1 key-value pairs and 2 tensors from /m/draft.gguf (version GGUF V3)\n"
        "load_tensors:          CPU model buffer size =     5.00 MiB\n"
        "llama_context: constructing llama_context\n"
        "llama_context: n_ctx         = 128\n"
    )
    assert parsed(draft).weights_on_devices_bytes == parsed(YEAR_2025).weights_on_devices_bytes
    assert parsed(draft).n_ctx.need() == 4096


def test_many_lines_of_one_buffer_are_added() -> None:
    text = stored("b10434-cpu-claims-offload").replace(
        "load_tensors:   CPU_Mapped model buffer size =    92.10 MiB",
        "load_tensors:   CPU_Mapped model buffer size =    28.69 MiB\n"
        "0.00.1 I load_tensors:   CPU_Mapped model buffer size =     0.00 MiB\n"
        "0.00.500.000 I load_tensors:   CPU_Mapped model buffer size =     0.00 MiB\n"
        "0.00.500.000 I load_tensors:   CPU_REPACK model buffer size =    56.95 MiB",
    )
    assert sizes(parsed(text)) == {"CPU_Mapped": 28.69, "CPU_REPACK": 56.95}


def test_a_software_driver_is_named() -> None:
    facts = read("b10434-llvmpipe")
    vulkan = next(device for device in facts.devices_present.need() if device.name == "Vulkan0")
    assert vulkan.software
    assert vulkan.description == "llvmpipe (LLVM 15.0.6, 256 bits)"
    assert mib(facts.weights_on_devices_bytes.need()) == 92.10


def test_a_buffer_of_an_unknown_kind_is_no_proof() -> None:
    text = YEAR_2025.replace("load_tensors:      Vulkan0", "load_tensors:      Quux7")
    assert why(parsed(text).weights_on_devices_bytes) == "absent"


def test_a_buffer_of_a_new_kind_counts_when_the_log_lists_its_device() -> None:
    text = YEAR_2025.replace("Vulkan0 model", "Quux7 model").replace(
        "using device Vulkan0", "using device Quux7"
    )
    assert mib(parsed(text).weights_on_devices_bytes.need()) == 14222.58


# JSON lines.


def test_json_lines_give_the_same_and_the_memory_table() -> None:
    facts = read("b11669-jsonl")
    assert facts.form.need() == "json_lines"
    assert facts.model_loaded.need() is True
    assert facts.listening == ("http://127.0.0.1:19175",)
    row = facts.breakdown.need()[0]
    assert (row.kind, mib(row.model_bytes), mib(row.context_bytes)) == ("host", 92, 11)
    assert facts.weights_on_devices_bytes.need() == 0
    assert facts.requests[0].generated_tokens == 2


def test_the_memory_table_shows_devices_at_default_verbosity() -> None:
    record = {
        "type": "fit_memory_breakdown",
        "data": {"unit": "MiB", "rows": [
            {"kind": "device", "name": "CUDA0", "total": 24000, "free": 23000, "self": 99, "model": 68, "context": 28, "compute": 3},
            {"kind": "host", "name": "Host", "self": 51, "model": 24, "context": 16, "compute": 11},
        ]},
    }  # fmt: skip
    facts = parsed(json.dumps(record))
    assert mib(facts.weights_on_devices_bytes.need()) == 68
    assert mib(facts.weights_on_host_bytes.need()) == 24


def test_generated_text_inside_the_log_is_not_a_message() -> None:
    line = json.dumps(
        {"type": "log", "time": 1, "level": "none", "msg": "srv  llama_server: listening on http://h:1\n"}
    )
    assert listening_url(line) is None
    assert parsed(line).listening == ()


# Loaded, failed, ready.


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("b11669-bad-magic", "invalid magic characters: 'XXXX'", 9),
        ("b11669-parallel-300", "n_seq_max must be <= 256", 7),
        ("b11669-bad-template", "error: Unknown statement: endfox", 7),
    ],
)
def test_a_failed_load_names_the_first_error_of_the_last_attempt(name: str, text: str, number: int) -> None:
    facts = read(name)
    assert facts.model_loaded.need() is False
    assert text in facts.failure.need().text
    assert facts.failure.need().number == number
    assert facts.first_error.need() == facts.failure.need().text


def test_a_busy_port_is_a_failed_start_and_not_a_failed_load() -> None:
    facts = read("b11669-port-in-use")
    assert why(facts.model_loaded) == "not_attempted"
    assert "couldn't bind" in facts.failure.need().text


def test_router_mode_is_seen() -> None:
    facts = read("b11669-router")
    assert facts.router_mode.need() is True
    assert why(facts.model_loaded) == "absent"


def test_a_log_that_ends_early_is_neither_loaded_nor_failed() -> None:
    facts = parsed("0.00.001.000 I srv  llama_server: initializing ...\n")
    assert why(facts.model_loaded) == "absent"
    assert why(parsed("").library_lines) == "absent"


@pytest.mark.parametrize(
    "text",
    [
        "llama_load_model_from_file: failed to load model\n",
        "error loading model: create_tensor: tensor 'output.weight' not found\n",
        '{"tid":"1","timestamp":1,"level":"ERR","function":"load_model","line":1,"msg":"unable to load model","model":"x"}\n',
        'ERR [              load_model] unable to load model | tid="1" timestamp=1 model="x"\n',
        "/src/ggml.c:1: GGML_ASSERT(x > 0) failed\n",
        "terminate called after throwing an instance of 'std::runtime_error'\n",
    ],
)
def test_errors_of_releases_without_levels_are_errors(text: str) -> None:
    facts = parsed(text)
    assert facts.model_loaded.need() is False
    assert facts.error_count == 1
    assert facts.unmatched_count == 0


def test_lines_that_only_look_like_errors_are_none() -> None:
    text = "AMX is not ready to be used!\nggml_vulkan: No devices found.\nload_backend: failed to find ggml_backend_score in x.so\n"
    assert (parsed(text).error_count, parsed(text).warning_count) == (0, 0)


def test_an_unknown_warning_is_counted_and_kept() -> None:
    facts = parsed("0.00.001.000 W srv  llama_server: the flux capacitor is warm\n")
    assert (facts.warning_count, facts.unmatched_count) == (1, 1)
    assert facts.warnings[0].known is None


def test_errors_after_the_load_are_kept_apart() -> None:
    text = stored("b11669-default") + "0.04.000.000 E srv  update_slots: failed to decode the batch\n"
    assert len(parsed(text).errors_after_loaded) == 1
    assert read("b11669-default").errors_after_loaded == ()


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("0.02.681.961 I srv  llama_server: listening on http://127.0.0.1:19173", "http://127.0.0.1:19173"),
        ("I srv  llama_server: listening on unix:///run/l.sock", "unix:///run/l.sock"),
        ("srv  llama_server: listening on http://[::1]:80\r\n", "http://[::1]:80"),
        ("main: server is listening on http://127.0.0.1:80 - starting the main loop", "http://127.0.0.1:80"),
        (
            "\x1b[34m0.02.681.961\x1b[0m \x1b[32mI\x1b[0m srv  llama_server: listening on http://h:1",
            "http://h:1",
        ),
        ("llama-1  | 0.02.681.961 I srv  llama_server: listening on http://h:1", "http://h:1"),
        ("Oct 01 10:00:00 host llama-server[12]: srv  llama_server: listening on http://h:1", "http://h:1"),
        ("2026-10-01T10:00:00.123456789Z stderr F srv  llama_server: listening on http://h:1", "http://h:1"),
        (
            json.dumps({"log": "srv  llama_server: listening on http://h:1\n", "stream": "stderr"}),
            "http://h:1",
        ),
        ("main: HTTP server is listening, hostname: 127.0.0.1, port: 8080, http threads: 7", None),
        ("main: router server is listening on http://h:1", None),
        ("llama server listening at http://127.0.0.1:8080", None),
        ("srv  load_model: loading model '/m/listening on http://h:1'", None),
        ("I was listening on http://h:1", None),
        ("", None),
    ],
)
def test_the_line_that_means_ready(line: str, url: str | None) -> None:
    assert listening_url(line) == url


def test_the_line_of_2025_before_the_load_is_not_ready() -> None:
    reader = LoadLogReader(SOURCE)
    for line in YEAR_2025.split("main: loading model")[0].splitlines():
        reader.feed(line)
    assert reader.ready_url is None


def test_the_line_of_early_2024_is_ready_only_after_the_load() -> None:
    reader = LoadLogReader(SOURCE)
    reader.feed('INFO [ main] HTTP server listening | tid="1" timestamp=1 port="8081" hostname="::"')
    assert reader.ready_url is None
    reader.feed('INFO [ main] model loaded | tid="1" timestamp=2')
    assert reader.ready_url == "http://[::]:8081"


def test_what_the_template_example_says_is_not_believed() -> None:
    facts = parsed(YEAR_2025)
    assert facts.listening == ("http://127.0.0.1:7476",)


# Years.


def test_2023() -> None:
    facts = parsed(YEAR_2023)
    assert facts.era.need() == "2023"
    assert facts.build_number.need() == 1382
    assert facts.devices_present.need()[0].name == "CUDA0"
    assert mib(facts.weights_on_devices_bytes.need()) == 3577.56
    assert mib(facts.weights_on_host_bytes.need()) == 70.41
    assert facts.n_ctx.need() == 2048
    assert facts.n_slots.need() == 1
    assert facts.listening == ("http://127.0.0.1:8080",)


def test_2024() -> None:
    facts = parsed(YEAR_2024)
    assert facts.era.need() == "2024"
    assert sizes(facts) == {"CPU": 281.81, "CUDA0": 2170.29, "CUDA1": 2235.00}
    assert [d.name for d in facts.devices_present.need()] == ["CUDA0", "CUDA1"]
    assert (facts.n_slots.need(), facts.n_ctx_slot.need()) == (2, 4096)
    assert (facts.kv_type_k.need(), facts.flash_attention.need()) == ("f16", "disabled")
    assert [b.place for b in facts.compute_buffers.need()] == ["device", "host"]
    assert facts.model_loaded.need() is True
    assert facts.listening == ("http://0.0.0.0:8081",)
    request = facts.requests[0]
    assert (request.slot, request.prompt_tokens, request.token_generation_per_s) == (1, 13, 50.0)


def test_2025() -> None:
    facts = parsed(YEAR_2025)
    assert facts.era.need() == "2025"
    assert facts.build_number.need() == 5505
    assert facts.n_ctx_seq.need() == 4096
    assert (facts.kv_type_k.need(), facts.kv_type_v.need()) == ("f16", "q8_0")
    assert facts.flash_attention.need() == "enabled"
    assert facts.devices_used.need() == ("Vulkan0",)
    assert facts.devices_present.need()[0].description.startswith("AMD Radeon RX 7900 XTX")
    request = facts.requests[0]
    assert (request.task, request.prompt_tokens, request.generated_tokens) == (3, 20, 10)


# Form: streaming, wrappers, hostile input.


@pytest.mark.parametrize("text", ALL_LOGS)
def test_line_by_line_is_the_same_as_whole(text: str) -> None:
    reader = LoadLogReader(SOURCE)
    for line in text.splitlines(keepends=True):
        reader.feed(line)
        reader.facts()  # asking in between changes nothing
    assert reader.facts() == parse_load_log(text, SOURCE)


@given(st.lists(st.sampled_from([line for log in ALL_LOGS for line in log.split("\n")]), max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_mixture_of_lines_is_read(lines: list[str]) -> None:
    facts = parsed("\n".join(lines))
    assert facts.warning_count >= len(facts.warnings)


@given(st.text(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    facts = parsed(text)
    assert facts.lines <= text.count("\n") + 1


@pytest.mark.parametrize(
    "wrap",
    [
        lambda line: f"2026-10-01T10:00:00.123Z {line}",
        lambda line: f"llama-1  | {line}",
        lambda line: f"Oct 01 10:00:00 host llama-server[12]: {line}",
        lambda line: f"2026-10-01T10:00:00+0200 host llama-server[12]: {line}",
        lambda line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026"}),
        lambda line: json.dumps({"MESSAGE": line, "PRIORITY": "6"}),
        lambda line: f"[41233] {line}",
        lambda line: f"{line}\r",
        lambda line: f"\x1b[0m{line}\x1b[0m",
    ],
)
def test_what_the_platform_adds_is_taken_off(wrap: object) -> None:
    assert callable(wrap)
    text = stored("b10434-rpc-offload20")
    wrapped = parsed("\n".join(wrap(line) for line in text.splitlines()) + "\n")
    assert wrapped == parsed(text)


@pytest.mark.parametrize(
    "line",
    [
        "x" * 5_000_000,
        "load_tensors: " + " " * 1_000_000 + "buffer size",
        "load_tensors: " + "a" * 1_000_000 + " buffer size = 1.0 MiB",
        "{" * 1_000_000,
        "[" * 1_000_000,
        '{"type":"log","level":"info","msg":"' + "\\n" * 500_000 + '"}',
        "\x1b[" * 500_000,
        "\x00\xff\ufffd" * 300_000,
        "build: " + "(" * 1_000_000,
        "failed to " * 200_000,
    ],
)
def test_a_hostile_line_costs_little(line: str) -> None:
    started = time.process_time()
    facts = parsed(line + "\n")
    assert time.process_time() - started < 1.0
    assert facts.lines == 1


def test_a_flood_stays_bounded() -> None:
    reader = LoadLogReader(SOURCE)
    for number in range(3000):
        reader.feed(f"0.00.001.000 E load_tensors: failed to load tensor {number}\n")
        reader.feed(f"load_tensors: Vulkan{number} model buffer size = 1.00 MiB\n")
    facts = reader.facts()
    assert facts.error_count == 3000
    assert len(facts.errors) <= 50
    assert len(facts.weight_buffers.value if hasattr(facts.weight_buffers, "value") else ()) <= 128


def test_absurd_numbers_do_not_raise() -> None:
    text = "load_tensors: CPU model buffer size = 99999999999999999999 MiB\nload_tensors: CPU model buffer size = 1.2.3 MiB\n"
    parsed(text)
