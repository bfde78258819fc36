"""Scanning: wrappers, hostile lines, split chunks, and the engine without google-re2."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaops.diagnosis import engine
from llamaops.diagnosis.judge import diagnose_parts, diagnose_text, judge
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import rule_set
from llamaops.diagnosis.scan import Scanner, scan_chunks
from llamaops.schema.diagnosis import Diagnosis
from tests.unit.diagnosis import situations

ERROR = "error: invalid argument: --no-such-flag"
NOISE = "slot update_slots: id  0 | task 7 | n_tokens = 12, memory_seq_rm [12, end)"


@pytest.mark.parametrize(
    "line",
    [
        ERROR,
        f"\x1b[31m{ERROR}\x1b[0m",
        f"2026-11-29T10:00:00.123Z {ERROR}",
        f"Nov 29 10:00:00 host llama-server[12]: {ERROR}",
        f"llama-1  | {ERROR}",
        json.dumps({"log": f"{ERROR}\n", "stream": "stderr", "time": "2026-11-29T10:00:00Z"}),
        json.dumps({"MESSAGE": ERROR, "_PID": "12", "PRIORITY": "3"}),
        f"{ERROR}\r",
    ],
)
def test_wrappers_of_the_platform(line: str) -> None:
    assert diagnose_text(f"starting\n{line}\nended\n").slug == "unknown-flag"


def large(lines: list[str]) -> Part:
    return Part("log", "log", chunks=["\n".join(lines).encode()])


def test_large_and_small_agree_on_slug_and_line() -> None:
    lines = [NOISE] * 5000 + ["CUDA error: an illegal memory access was encountered"] + [NOISE] * 5000
    found = diagnose_parts([large(lines)])
    assert found.slug == "cuda-illegal-access"
    assert found.primary is not None
    assert found.primary.evidence[0].number == 5001
    assert found.parts[0].lines == 10001


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=30))
def test_split_chunks_are_the_whole(sizes: list[int]) -> None:
    lines = [
        NOISE,
        "build: 4591 (9f8e7d6c) with cc",
        "unknown model architecture: 'qwen3'",
        NOISE,
        ERROR,
    ] * 40
    data = "\n".join(lines).encode()
    chunks: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[at : at + size])
        at += size
    rules = rule_set()
    split = scan_chunks(0, Part("log", "log"), chunks, rules.signals)
    whole = scan_chunks(0, Part("log", "log"), [data], rules.signals)
    assert split.lines == whole.lines
    assert split.hits == whole.hits  # the first ones and the last one; counts are lower bounds


def test_hostile_lines_do_no_harm() -> None:
    rng = random.Random(7)
    binary = bytes(rng.randrange(256) for _ in range(200_000))
    chunks = [b"x" * 3_000_000, b"\n", b"\0" * 100_000 + b"\n", b"\x1b[" * 50_000, b"\n", binary, b"\n"]
    chunks += [(b"(" * 40_000) + b"\n", b'{"log":' * 9000 + b"\n", ERROR.encode() + b"\n"]
    found = diagnose_parts([Part("log", "log", chunks=chunks)])
    assert found.slug == "unknown-flag"
    assert len(msgspec.json.encode(found)) < 100_000


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.sampled_from(["log", "http-response", "command", "config", "inspect"]))
def test_any_text_gets_an_answer(text: str, kind: str) -> None:
    found = diagnose_parts([Part(kind, "x", text)])
    assert found.verdict in {"fault", "no_fault", "unknown"}


def test_without_google_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [NOISE] * 300 + ["CUDA error: an illegal memory access was encountered"] + [NOISE] * 300
    monkeypatch.setattr(engine, "re2", lambda: None)
    for cached in (engine._compiled, engine._finder, engine._set_of):
        cached.cache_clear()
    try:
        assert diagnose_parts([large(lines)]).slug == "cuda-illegal-access"
        assert diagnose_text(ERROR).slug == "unknown-flag"
    finally:
        for cached in (engine._compiled, engine._finder, engine._set_of):
            cached.cache_clear()


def test_a_scanner_can_be_asked_on_the_way() -> None:
    rules = rule_set()
    scanner = Scanner(0, Part("log", "log"), rules.signals, many_lines=True)
    scanner.feed(b"starting\n")
    assert judge([scanner.snapshot()], rules).verdict == "unknown"
    scanner.feed(f"{ERROR}\n".encode())
    assert judge([scanner.snapshot()], rules).slug == "unknown-flag"


def line_by_line(lines: list[str]) -> Diagnosis:
    """Return the answer of the plain way: every line is split off and looked at."""
    rules = rule_set()
    scanner = Scanner(0, Part("log", "log"), rules.signals, many_lines=False)
    scanner.feed(("\n".join(lines) + "\n").encode())
    return judge([scanner.finish()], rules)


def block_by_block(lines: list[str], size: int) -> Diagnosis:
    rules = rule_set()
    data = ("\n".join(lines) + "\n").encode()
    scanner = Scanner(0, Part("log", "log"), rules.signals, many_lines=True)
    for start in range(0, len(data), size):
        scanner.feed(data[start : start + size])
    return judge([scanner.finish()], rules)


def told(found: Diagnosis) -> tuple[object, ...]:
    """What an answer says, and on which first line of each cause."""
    causes = [*([found.primary] if found.primary else []), *found.contributing]
    return (
        found.verdict,
        found.slug,
        found.proven,
        sorted((c.slug, c.role, c.evidence[0].number if c.evidence else 0) for c in causes),
        [(seen.line.number, seen.line.text) for seen in found.unexplained],
        found.parts[0].lines,
    )


LOGS = [
    pytest.param(str(item["text"]), id=f"{case['id']}-{number}")
    for case in (*situations.handed(), *situations.own())
    for number, item in enumerate(case["input"])
    if item["kind"] == "log"
]


@pytest.mark.parametrize("text", LOGS)
def test_by_blocks_is_as_line_by_line(text: str) -> None:
    lines = text.splitlines()
    assert told(block_by_block(lines, 53)) == told(line_by_line(lines))


COMMON = (
    "slot update_slots: id  {n} | task {n} | n_tokens = {n}, memory_seq_rm [{n}, end)",
    "srv  update_slots: all slots are idle",
    "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
    "prompt eval time =     900.10 ms /   {n} tokens (    1.00 ms per token,  {n}.00 tokens per second)",
    "main: model loaded",
    "build: 4591 (9f8e7d6c) with cc (GCC) 14.3.0 for x86_64-linux-gnu",
    "srv          stop: cancel task, id_task = {n}",
)
RARE = (
    "CUDA error: an illegal memory access was encountered",
    "alloc_buffer: allocating {n}.00 MiB on device 0: cudaMalloc failed: out of memory",
    "llama_model_load: error loading model: unknown model architecture: 'abc'",
    "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
    "fatal error: the flux overflowed at {n}",
    "systemd[1]: llama.service: Main process exited, code=killed, status=9/KILL",
    "something failed with code 137",
    "llama_context: n_ctx_seq ({n}) > n_ctx_train (2048) -- possible training context overflow",
)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_log_by_blocks_is_as_line_by_line(seed: int) -> None:
    """Also where most lines hold what is searched for, and so is not searched any more after a while."""
    rng = random.Random(seed)
    share = rng.choice((0.0, 0.0005, 0.005, 0.05))
    lines = [
        rng.choice(RARE if rng.random() < share else COMMON[: rng.randint(1, len(COMMON))]).format(
            n=rng.randint(0, 5000)
        )
        for _ in range(rng.randint(100, 4000))
    ]
    assert told(block_by_block(lines, rng.randint(500, 70_000))) == told(line_by_line(lines))
