# ruff: noqa: E501 - lines of logs stay whole
"""Judgement: first errors, recovery, restarts, silence, secrets."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.diagnosis.judge import diagnose_parts, diagnose_text
from llamaops.diagnosis.parts import Part, parts_of, recognise

READY = "main: model loaded\nmain: server is listening on http://127.0.0.1:8080 - starting the main loop\n"
OOM = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory\n"
MISSING = "gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)\n"


def test_the_first_fatal_error_beats_later_symptoms() -> None:
    text = f"{MISSING}llama_model_load: error loading model: x\nterminate called after throwing\nSegmentation fault\n"
    found = diagnose_text(text)
    assert found.slug == "model-file-missing"
    assert {c.slug for c in found.contributing} >= {"load-failed", "segmentation-fault"}
    assert all(c.role == "symptom" for c in found.contributing)


def test_what_was_recovered_from_is_not_the_cause() -> None:
    found = diagnose_text(OOM + READY)
    assert found.verdict == "no_fault"
    assert found.contributing[0].role == "recovered"


def test_a_crash_before_a_later_start_stays_the_cause() -> None:
    text = (
        f"CUDA error: an illegal memory access was encountered\nsystemd[1]: Started llama.service.\n{READY}"
    )
    assert diagnose_text(text).slug == "cuda-illegal-access"


def test_the_last_start_of_a_journal_counts() -> None:
    at = "Jan 05 07:00:0{} host1 {}"
    lines = [
        at.format(1, "systemd[1]: Started llama.service - llama.cpp server."),
        at.format(2, "llama-server[600]: " + MISSING.strip()),
        at.format(3, "systemd[1]: Started llama.service - llama.cpp server."),
        at.format(4, "llama-server[601]: error: invalid argument: --no-such-flag"),
    ]
    assert diagnose_text("\n".join(lines) + "\n").slug == "unknown-flag"


def test_the_last_start_counts() -> None:
    first = f"build: 5000 (aa) with cc\n{MISSING}"
    last = (
        "build: 5000 (aa) with cc\nllama_model_load: error loading model: unknown model architecture: 'x'\n"
    )
    assert diagnose_text(first + last).slug == "arch-unknown-to-build"


def test_a_wrapper_alone_is_unknown() -> None:
    found = diagnose_text("srv    load_model: failed to load model, '/m.gguf'\n")
    assert (found.verdict, found.slug, found.primary) == ("unknown", "unknown", None)


def test_an_unknown_error_has_its_neighbourhood() -> None:
    found = diagnose_text("one\ntwo\nfatal error: the flux overflowed\nthree\nfour\n")
    assert found.verdict == "unknown"
    [seen] = found.unexplained
    assert (seen.before, seen.after) == (("one", "two"), ("three", "four"))
    assert seen.line.number == 3


def test_a_healthy_log_proves_its_boundary() -> None:
    found = diagnose_text(f"build: 5000 (aa) with cc\n{READY}")
    assert (found.verdict, found.slug, found.proven) == ("no_fault", "no-fault-found", "model_load")


def test_a_complaint_that_nothing_explains_is_no_health() -> None:
    """The symptom of a case file is no evidence, and a healthy log does not answer it."""
    case = f"symptom: Answers are slow.\ninput:\n- kind: log\n  text: |\n    {READY.strip().replace(chr(10), chr(10) + '    ')}\n"
    found = diagnose_parts(parts_of(case, "case.yaml"))
    assert (found.verdict, found.slug, found.proven) == ("unknown", "unknown", "model_load")
    assert "nothing here explains" in found.summary
    quiet = diagnose_parts(parts_of(case.partition("\n")[2], "case.yaml"))
    assert quiet.slug == "no-fault-found"


def test_a_complaint_turns_no_recovery_into_health() -> None:
    found = diagnose_parts([Part("log", "log", OOM + READY, complaint="It dies after an hour.")])
    assert found.verdict == "unknown"
    assert found.contributing[0].role == "recovered"


def test_a_complaint_about_a_line_is_answered_by_what_was_recovered_from() -> None:
    found = diagnose_parts([Part("log", "log", OOM + READY, complaint="An error line is printed at start.")])
    assert (found.verdict, found.contributing[0].role) == ("no_fault", "recovered")


def test_what_could_be_abused_answers_no_other_complaint() -> None:
    text = "llama-server -m m.gguf --host 0.0.0.0 --port 8080\n"
    slow = diagnose_parts([Part("command", "command", text, complaint="Answers are slow.")])
    assert slow.verdict == "unknown"
    assert [cause.slug for cause in slow.contributing] == ["exposed-without-key"]
    seen = diagnose_parts([Part("command", "command", text, complaint="Anyone on the network reaches it.")])
    assert seen.slug == "exposed-without-key"


def test_a_container_speaks_for_itself_only() -> None:
    """What another container got over is not shown by this one's readiness."""
    error = "fatal error: the flux overflowed"
    ready = "main: server is listening on http://127.0.0.1:8080 - starting the main loop"
    assert diagnose_text(f"llama-1  | {error}\nllama-1  | {ready}\n").verdict == "no_fault"
    assert diagnose_text(f"webui-1  | {error}\nllama-1  | {ready}\n").verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("srv  llama_server: starting\n", "no fault found; nothing proven"),
        ("DEPRECATED: argument x\n", "no fault found; nothing proven"),
        (
            (
                "srv  llama_server: starting server in router mode. models will be automatically loaded on-demand\n"
                "srv  llama_server: listening on http://127.0.0.1:19187\n"
            ),
            "that the program runs",
        ),
        (READY, "that the model was loaded"),
        (OOM + READY, "that the model was loaded"),
    ],
)
def test_health_names_what_is_proven(text: str, summary: str) -> None:
    assert summary in diagnose_text(text).summary


def test_status_of_a_program_that_worked_is_no_health() -> None:
    parts = [Part("log", "log", READY), Part("inspect", "status", "$ echo $?\n1\n")]
    found = diagnose_parts(parts)
    assert (found.verdict, found.proven) == ("unknown", "model_load")
    assert "exit status is 1" in found.summary


def test_what_could_be_abused_comes_after_what_fails() -> None:
    exposed = Part("command", "command", "llama-server -m m.gguf --host 0.0.0.0 --port 8080\n")
    assert diagnose_parts([exposed, Part("log", "log", MISSING)]).slug == "model-file-missing"
    found = diagnose_parts([exposed, Part("log", "log", "fatal error: the flux overflowed\n")])
    assert found.verdict == "unknown"
    assert [cause.slug for cause in found.contributing] == ["exposed-without-key"]


def test_a_part_that_is_not_explained_lowers_how_sure() -> None:
    alone = diagnose_parts([Part("log", "log", MISSING)])
    beside = diagnose_parts([Part("log", "log", MISSING), Part("host-facts", "facts", "mood: bad\n")])
    assert alone.primary is not None
    assert beside.primary is not None
    assert (alone.primary.sure, beside.primary.sure) == ("certain", "likely")
    assert "facts" in beside.primary.why_sure


def test_silence_of_a_part_is_no_health() -> None:
    found = diagnose_parts([Part("log", "log", READY), Part("host-facts", "facts", "mood: bad\n")])
    assert found.verdict == "unknown"


def test_empty_is_unknown() -> None:
    assert diagnose_text("").verdict == "unknown"


def test_a_plain_warning_of_a_working_server_is_listed_only() -> None:
    found = diagnose_text(f"CORS is set to allow all origins ('*') and no API key is set\n{READY}")
    assert found.slug == "no-fault-found"
    assert [c.slug for c in found.contributing] == ["cors-open-no-key"]


def test_secrets_are_in_no_answer() -> None:
    parts = [
        Part("command", "command", "llama-server -m m.gguf --api-key s3cr3t-value-1 --no-such-flag\n"),
        Part("unit-file", "unit", "[Service]\nEnvironment=HF_TOKEN=hf_abcdefgh12345678\n"),
        Part("log", "log", "error: invalid argument: s3cr3t-value-1\nbad token hf_abcdefgh12345678\n"),
    ]
    text = msgspec.json.encode(diagnose_parts(parts)).decode()
    assert "s3cr3t" not in text
    assert "hf_abcdefgh" not in text


@pytest.mark.parametrize(
    "text",
    [
        "[PATH=/usr/bin LLAMA_API_KEY=k3y-of-the-server]",
        "curl -H 'Authorization: Bearer k3y-of-the-server' http://127.0.0.1:8080",
        "llama-server -m m.gguf --api-key k3y-of-the-server",
        "llama-server -hf acme/x -hft k3y-of-the-server",
        "https://ana:k3y-of-the-server@models.example.org/a.gguf: error: not found",
        "error: GET /v1/models?api_key=k3y-of-the-server failed",
        '{"LLAMA_API_KEY": "k3y-of-the-server"} fatal error',
        "Environment=HF_TOKEN=k3y-of-the-server",
    ],
)
@pytest.mark.parametrize("kind", ["log", "inspect", "command", "config"])
def test_a_secret_of_any_form_is_in_no_answer(text: str, kind: str) -> None:
    found = diagnose_parts([Part(kind, "part", f"fatal error: before\n{text}\nfatal error: after\n")])
    assert "k3y-of-the-server" not in msgspec.json.encode(found).decode()


def test_kinds_are_recognised() -> None:
    texts = {
        "unit-file": "[Service]\nExecStart=/usr/bin/llama-server\n",
        "http-response": 'POST /v1/chat/completions -> 200\n{"choices":[]}\n',
        "http-request": '{"model": "x", "messages": []}\n',
        "env": "LLAMA_ARG_CTX_SIZE=4096\nCUDA_VISIBLE_DEVICES=0\n",
        "command": "llama-server -m a.gguf -c 4096\n",
        "inspect": "$ nvidia-smi -L\nGPU 0: x\n",
        "bench": "| model | size | params |\n| --- | --- | --- |\n",
        "log": "main: model loaded\n",
    }
    assert {kind: recognise(text) for kind, text in texts.items()} == {kind: kind for kind in texts}


def test_a_case_file_is_its_parts() -> None:
    case = "id: x\ninput:\n- kind: log\n  text: |\n    Illegal instruction\n- kind: host-facts\n  text: 'cpu: old'\n"
    parts = parts_of(case, "case.yaml")
    assert [part.kind for part in parts] == ["log", "host-facts"]
    assert diagnose_parts(parts).slug == "cpu-instruction-set-unsupported"


def test_a_record_is_its_evidence() -> None:
    record = {
        "schema": "llamaops.record",
        "evidence": [
            {"kind": "stderr", "label": "llama-server", "text": "Illegal instruction (core dumped)\n"}
        ],
        "facts": {"launch": {"argv": ["llama-server", "-m", "m.gguf"]}},
    }
    parts = parts_of(msgspec.json.encode(record).decode(), "record.json")
    assert [part.kind for part in parts] == ["log", "command"]
    assert diagnose_parts(parts).slug == "cpu-instruction-set-unsupported"
