# ruff: noqa: E501 - a table is read by its rows
"""Real failures, made on the real engines, and what the diagnosis makes of what they print."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from llamaops.diagnosis.judge import diagnose_parts
from llamaops.diagnosis.parts import Part
from llamaops.schema.bounds import Bounds
from llamaops.schema.diagnosis import Diagnosis
from llamaops.system.machine import Machine
from llamaops.system.server_process import ServerProcess

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(180)]
BOUNDS = Bounds(wall_s=60, keep_bytes=4 << 20)
QUIET = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
Setup = Callable[["Place"], Sequence[str]]


class Place:
    """Where a failure is made."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.model = model

    def file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def head(self, name: str, count: int) -> str:
        with Path(self.model).open("rb") as source:
            return self.file(name, source.read(count))

    def edited(self, name: str, old: bytes, new: bytes) -> str:
        assert len(old) == len(new)
        data = Path(self.model).read_bytes()
        assert old in data[: 8 << 20]
        return self.file(name, data.replace(old, new, 1))


TRIES = 5


def diagnosis_of(argv: Sequence[str], env: dict[str, str] | None = None) -> Diagnosis:
    """Run an engine that fails and diagnose what it printed.

    Its logger writes in a thread of its own, and a quick exit can cut off the very lines that name the
    error: such a run shows nothing that could be diagnosed, and is made again.
    """
    log = ""
    for _try in range(TRIES):
        with Machine() as machine:
            done = machine.run(list(argv), bounds=BOUNDS, env=machine.child_environment(env))
        log = done.stderr.text + done.stdout.text
        if done.ok or re.search(r"(?im)^\S+ E |\berror\b|\bfailed\b", log):
            break
    return diagnose_parts([Part("log", "log", log)])


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def with_model(place: Place, *words: str) -> list[str]:
    return ["-m", place.model, "-c", "256", "--no-warmup", "--threads", "1", *words]


FAILURES: dict[str, tuple[set[str], Setup]] = {
    "missing-file": ({"model-file-missing"}, lambda p: ["-m", str(p.folder / "none.gguf")]),
    "folder": (
        {"model-path-is-directory", "model-path-unreadable", "model-file-empty", "model-read-failed"},
        lambda p: ["-m", str(p.folder)],
    ),
    "truncated": ({"model-file-truncated"}, lambda p: ["-m", p.head("cut.gguf", 40 << 20)]),
    "truncated-in-header": ({"model-file-truncated", "header-unreadable"}, lambda p: ["-m", p.head("h.gguf", 5000)]),
    "text": ({"not-a-gguf-file"}, lambda p: ["-m", p.file("a.gguf", b"just some text\n" * 9)]),
    "html": ({"model-file-is-html"}, lambda p: ["-m", p.file("a.gguf", b"<!DOCTYPE html>\n")]),
    "lfs": ({"model-file-is-lfs-pointer"}, lambda p: ["-m", p.file("a.gguf", b"version https://git-lfs\n")]),
    "zip": ({"model-file-is-archive"}, lambda p: ["-m", p.file("a.gguf", b"PK\x03\x04" + b"a" * 90)]),
    "empty": ({"model-file-empty"}, lambda p: ["-m", p.file("a.gguf", b"")]),
    "version-9": (
        {"gguf-version-newer"},
        lambda p: ["-m", p.file("a.gguf", b"GGUF\x09\0\0\0" + b"\0" * 64)],
    ),
    "architecture": ({"arch-unknown-to-build"}, lambda p: ["-m", p.edited("a.gguf", b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0llxma")]),
    "pre-tokenizer": ({"pretokenizer-unknown-to-build"}, lambda p: ["-m", p.edited("a.gguf", b"\x06\0\0\0\0\0\0\0smollm", b"\x06\0\0\0\0\0\0\0smoxxm")]),
    "unknown-flag": ({"unknown-flag"}, lambda p: with_model(p, "--no-such-flag")),
    "equals-form": ({"flag-equals-form"}, lambda _: ["--ctx-size=256"]),
    "value-missing": ({"flag-value-missing"}, lambda _: ["-m"]),
    "not-a-number": ({"number-not-parsed"}, lambda p: with_model(p, "-t", "many")),
    "removed-flag": ({"flag-removed", "unknown-flag"}, lambda p: with_model(p, "--draft-max", "4")),
    "kv-type": ({"kv-cache-type-unsupported"}, lambda p: with_model(p, "-ctk", "q3_K")),
    "device": ({"unknown-device"}, lambda p: with_model(p, "-dev", "CUDA9")),
    "key-file": ({"argument-file-unreadable"}, lambda p: with_model(p, "--api-key-file", "/nonexistent/key")),
    "v-cache": ({"v-cache-needs-flash-attn"}, lambda p: with_model(p, "-ctv", "q8_0", "-fa", "off")),
    "lora-missing": ({"lora-file-missing", "lora-not-loaded"}, lambda p: with_model(p, "--lora", "/nonexistent.gguf")),
    "lora-is-a-model": ({"lora-is-no-adapter"}, lambda p: with_model(p, "--lora", p.model)),
    "projector-missing": ({"mmproj-not-loaded"}, lambda p: with_model(p, "--mmproj", "/nonexistent.gguf")),
    "projector-is-a-model": ({"mmproj-not-loaded", "mmproj-type-unknown"}, lambda p: with_model(p, "--mmproj", p.model)),
    "too-many-slots": ({"too-many-slots"}, lambda p: with_model(p, "-np", "300")),
    "address": ({"bind-failed", "address-not-local"}, lambda p: with_model(p, "--host", "203.0.113.7", "--port", "18431")),
    "template": (
        {"template-invalid", "template-name-unknown"},
        lambda p: with_model(p, "--jinja", "--chat-template-file", p.file("t.jinja", b"{% for m in messages %}{% endfox %}")),
    ),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, embedded_model: str) -> Place:
    return Place(tmp_path, embedded_model)


@pytest.mark.parametrize("name", FAILURES)
def test_failure_of_the_server(name: str, place: Place, embedded_server: str) -> None:
    slugs, setup = FAILURES[name]
    found = diagnosis_of([embedded_server, "--host", "127.0.0.1", "--port", "0", *setup(place)])
    assert found.slug in slugs, found.summary


OLD = {
    "2025": {
        name: FAILURES[name][0]
        for name in FAILURES
        if name not in {"missing-file", "removed-flag", "v-cache", "template"}
    }
    # That build does not say why a file could not be opened, and -fa takes no value in it.
    | {"missing-file": {"model-path-unreadable"}, "v-cache": {"flash-attn-takes-no-value"}},
    "2024": {
        "missing-file": {"model-file-missing"},
        "folder": {"model-file-empty"},
        "truncated-in-header": {"header-unreadable"},
        "text": {"not-a-gguf-file"},
        "html": {"model-file-is-html"},
        "lfs": {"model-file-is-lfs-pointer"},
        "empty": {"model-file-empty"},
        "version-9": {"metadata-key-missing"},
        "architecture": {"arch-unknown-to-build"},
        "unknown-flag": {"unknown-flag"},
        "equals-form": {"flag-equals-form"},
        "value-missing": {"flag-value-missing"},
        "not-a-number": {"number-not-parsed"},
        "kv-type": {"kv-cache-type-unsupported"},
        "key-file": {"argument-file-unreadable"},
        "lora-missing": {"lora-not-loaded"},
        "lora-is-a-model": {"lora-is-no-adapter"},
        "address": {"bind-failed", "address-not-local"},
    },
}
"""What the wordings of older builds are diagnosed as."""


@pytest.mark.parametrize("name", OLD["2025"])
def test_failure_of_the_server_of_2025(name: str, place: Place, old_engine_2025: str) -> None:
    words = [f"{old_engine_2025}/llama-server", "--host", "127.0.0.1", "--port", "0"]
    found = diagnosis_of([*words, *FAILURES[name][1](place)])
    assert found.slug in OLD["2025"][name], found.summary


@pytest.mark.parametrize("name", OLD["2024"])
def test_failure_of_the_server_of_2024(name: str, place: Place, old_engine_2024: str) -> None:
    words = [word for word in FAILURES[name][1](place) if word != "--no-warmup"]
    found = diagnosis_of([f"{old_engine_2024}/server", "--host", "127.0.0.1", "--port", free_port(), *words])
    assert found.slug in OLD["2024"][name], found.summary


def test_port_in_use(place: Place, embedded_server: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = diagnosis_of([embedded_server, *with_model(place, "--host", "127.0.0.1", "--port", port)])
    assert found.slug == "port-in-use", found.summary


def test_unreadable_model(place: Place, embedded_server: str) -> None:
    """Root may read every file, so it is run without that right."""
    path = place.head("a.gguf", 1000)
    Path(path).chmod(0)
    less = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    found = diagnosis_of([*less, embedded_server, "--port", free_port(), "-m", path])
    assert found.slug == "model-path-unreadable", found.summary


def test_bad_variable(place: Place, embedded_server: str) -> None:
    found = diagnosis_of(
        [embedded_server, *with_model(place, "--port", free_port())], {"LLAMA_ARG_CTX_SIZE": "many"}
    )
    assert found.slug == "environment-variable-bad", found.summary


def test_too_little_address_space(place: Place, embedded_server: str) -> None:
    """The weights do not fit; this build ends in order then, and its log is whole."""
    words = ["prlimit", "--as=450000000", embedded_server, *with_model(place, "-dev", "none", "--port", "0")]
    found = diagnosis_of(words)
    assert found.slug == "host-out-of-memory", found.summary


@pytest.mark.fullengine
def test_too_little_address_space_for_the_cache(place: Place, full_engine: str) -> None:
    argv = [f"{full_engine}/llama-completion", "-m", place.model, "-no-cnv", "-p", "hi", "-c", "200000"]
    found = diagnosis_of(["prlimit", "--as=900000000", *argv])
    assert found.slug == "kv-cache-does-not-fit", found.summary
    assert "context-beyond-training" in {cause.slug for cause in found.contributing}


@pytest.mark.fullengine
def test_too_little_memory_to_lock(place: Place, full_engine: str) -> None:
    """Root may lock what it likes, so it is run without that right."""
    argv = [
        f"{full_engine}/llama-completion",
        "-m",
        place.model,
        "-no-cnv",
        "-n",
        "1",
        "-p",
        "hi",
        "-c",
        "256",
    ]
    less = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    found = diagnosis_of(["prlimit", "--memlock=65536", *less, *argv, "--load-mode", "mlock"])
    assert found.slug == "memlock-limit", found.summary


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group with little memory."""
    folder = Path(f"/sys/fs/cgroup/memory/llamaops-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text("150000000")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


def test_too_little_memory_in_a_control_group(place: Place, embedded_server: str, small_group: Path) -> None:
    words = [embedded_server, *with_model(place, "-dev", "none", "--no-mmap", "-c", "8192", "--port", "0")]
    joined = f'echo $$ > {small_group}/cgroup.procs; exec "$@"'
    with Machine() as machine:
        done = machine.run(
            ["sh", "-c", joined, "sh", *words], bounds=BOUNDS, env=machine.child_environment(QUIET)
        )
    counters = (small_group / "memory.oom_control").read_text()
    found = diagnose_parts(
        [Part("log", "log", done.stderr.text), Part("inspect", "memory.oom_control", counters)]
    )
    assert found.slug == "killed-by-memory-limit", found.summary


def adapter(path: Path, architecture: str, name: str, width: int) -> str:
    """Write a LoRA adapter for one tensor."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    writer.add_tensor(f"{name}.lora_a", np.zeros((4, width), dtype=np.float32))
    writer.add_tensor(f"{name}.lora_b", np.zeros((width, 4), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(path)


@pytest.mark.parametrize(
    ("architecture", "name", "width"),
    [
        pytest.param("qwen2", "blk.0.attn_q.weight", 576, id="of-another-architecture"),
        pytest.param("llama", "blk.0.attn_q.weight", 512, id="of-another-shape"),
        pytest.param("llama", "blk.99.attn_q.weight", 576, id="of-a-larger-model"),
    ],
)
def test_adapter_of_another_model(
    architecture: str, name: str, width: int, place: Place, embedded_server: str
) -> None:
    path = adapter(place.folder / "lora.gguf", architecture, name, width)
    found = diagnosis_of([embedded_server, *with_model(place, "--port", "0", "--lora", path)])
    assert found.slug == "lora-wrong-base", found.summary


def log_until_ready(argv: Sequence[str]) -> str:
    """Run a server until it listens, and return its log."""
    with Machine() as machine:
        ready = threading.Event()
        server = ServerProcess(
            list(argv),
            env=machine.child_environment(QUIET),
            on_line=lambda line: ready.set() if "listening on" in line else None,
        )
        with server:
            assert server.start() is None
            assert ready.wait(60), server.log()
            log = server.log()
    return log


def test_draft_of_another_vocabulary(place: Place, embedded_server: str) -> None:
    """The server says so and goes on without speculation."""
    draft = place.edited("draft.gguf", b"\x05\0\0\0\0\0\0\0\xc4\xa0the", b"\x05\0\0\0\0\0\0\0\xc4\xa0thx")
    words = ["--host", "127.0.0.1", "--port", free_port(), "-md", draft, "--spec-type", "draft-simple"]
    log = log_until_ready([embedded_server, *with_model(place, *words)])
    found = diagnose_parts([Part("log", "log", log)])
    assert found.slug == "draft-vocab-mismatch", found.summary
    assert found.proven == "model_load"


def test_draft_without_a_kind_of_speculation(place: Place, embedded_server: str) -> None:
    words = ["--host", "127.0.0.1", "--port", free_port(), "-md", place.model, "-lv", "5"]
    log = log_until_ready([embedded_server, *with_model(place, *words)])
    found = diagnose_parts([Part("log", "log", log)])
    told = {cause.slug for cause in (found.primary, *found.contributing) if cause is not None}
    assert "draft-model-without-speculation" in told, found.summary


def test_instructions_that_the_processor_lacks(place: Place, b10434_server: str) -> None:
    if "avx_vnni" in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has AVX-VNNI, which that build needs for quantized models")
    with Machine() as machine:
        done = machine.run(
            ["sh", "-c", '"$@"; echo "exit status $?"', "sh", b10434_server, "-m", place.model, "-c", "256"],
            bounds=BOUNDS,
            env=machine.child_environment(QUIET),
        )
    text = done.stderr.text + done.stdout.text
    assert diagnose_parts([Part("log", "log", text)]).slug == "cpu-instruction-set-unsupported"


@pytest.fixture(scope="module")
def locked_server(
    embedded_server: str, embedded_model: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A real server with a key and a small context; yields its port."""
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text("key-of-this-test\n")
    port = free_port()
    with Machine() as machine:
        ready = threading.Event()
        server = ServerProcess(
            [
                embedded_server, "-m", embedded_model, "-c", "256", "-np", "1", "--no-warmup", "--threads", "1",
                "--host", "127.0.0.1", "--port", port, "--api-key-file", str(key),
            ],
            env=machine.child_environment(QUIET),
            on_line=lambda line: ready.set() if "listening on" in line else None,
        )  # fmt: skip
        with server:
            assert server.start() is None
            assert ready.wait(60), server.log()
            yield port


def answer(port: str, path: str, body: bytes | None, *, key: bool = True) -> str:
    """Ask and return what was answered, as an operator would note it."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": "Bearer key-of-this-test"} if key else {}
    )
    method = "GET" if body is None else "POST"
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read(65536).decode()
    connection.close()
    return f"{method} {path} -> {response.status}\n{text}\n"


def asked(words: str, **more: object) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": words}], "max_tokens": 4, **more}).encode()


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
REFUSALS: dict[str, tuple[str, str, bytes | None]] = {
    "context-too-small": ("request-exceeds-slot-context", "/v1/chat/completions", asked("word " * 400)),
    "bad-grammar": ("grammar-not-compilable", "/v1/chat/completions", asked("hi", grammar='root ::= "a')),
    "picture-without-projector": (
        "image-input-without-projector",
        "/v1/chat/completions",
        json.dumps({"messages": [{"role": "user", "content": [IMAGE]}]}).encode(),
    ),
    "bad-json": ("malformed-request", "/v1/chat/completions", b'{"messages": ['),
    "no-such-endpoint": ("endpoint-not-found", "/v1/nothing", b"{}"),
    "no-embeddings": ("embeddings-not-enabled", "/v1/embeddings", b'{"input": "hi"}'),
    "no-reranking": ("rerank-not-enabled", "/v1/rerank", b'{"query": "a", "documents": ["b"]}'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_of_the_server(name: str, locked_server: str) -> None:
    slug, path, body = REFUSALS[name]
    text = answer(locked_server, path, body)
    found = diagnose_parts([Part("http-response", "answer", text)])
    assert found.slug == slug, f"{found.summary}\n{text}"


def test_key_that_is_missing(locked_server: str) -> None:
    text = answer(locked_server, "/health", None) + answer(locked_server, "/props", None, key=False)
    found = diagnose_parts([Part("http-response", "answers", text)])
    assert found.slug == "key-required-beyond-health", found.summary


def test_answer_that_was_cut(locked_server: str) -> None:
    text = answer(locked_server, "/v1/chat/completions", asked("Say hello", max_tokens=1, ignore_eos=True))
    found = diagnose_parts([Part("http-response", "answer", text)])
    assert found.slug == "answer-cut-by-token-limit", f"{found.summary}\n{text}"


@pytest.mark.fullengine
def test_missing_shard(place: Place, embedded_server: str, full_engine: str) -> None:
    prefix = str(place.folder / "part")
    with Machine() as machine:
        machine.run(
            [f"{full_engine}/llama-gguf-split", "--split", "--split-max-tensors", "100", place.model, prefix],
            bounds=BOUNDS,
        )
    parts = sorted(place.folder.glob("part-*.gguf"))
    assert len(parts) > 2
    second = diagnosis_of([embedded_server, "--port", free_port(), "-m", str(parts[1])])
    assert second.slug == "shard-not-first", second.summary
    parts[1].unlink()
    found = diagnosis_of([embedded_server, "--port", free_port(), "-m", str(parts[0])])
    assert found.slug == "shard-missing", found.summary
    joined = place.file("joined.gguf", parts[0].read_bytes() + parts[2].read_bytes())
    assert diagnosis_of([embedded_server, "--port", free_port(), "-m", joined]).slug in {
        "shard-renamed",
        "shards-joined-wrongly",
    }


@pytest.mark.fullengine
@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("--grammar", 'root ::= "a'), "grammar-not-compilable"),
        (("-p", "word " * 400), "prompt-too-long-for-completion"),
    ],
)
def test_failure_of_the_completion_program(
    words: tuple[str, ...], slug: str, place: Place, full_engine: str
) -> None:
    argv = [f"{full_engine}/llama-completion", *with_model(place), "-no-cnv", "-n", "4", "-p", "hi", *words]
    assert diagnosis_of(argv).slug == slug
