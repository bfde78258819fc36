# ruff: noqa: E501 - a table is read by its rows
"""Real failures, made on the real engines, and what the diagnosis makes of what they print."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from llamaops.diagnosis.judge import diagnose_parts
from llamaops.diagnosis.parts import Part
from llamaops.schema.bounds import Bounds
from llamaops.schema.diagnosis import Diagnosis
from llamaops.system.machine import Machine

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(180)]
BOUNDS = Bounds(wall_s=60, keep_bytes=4 << 20)
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


def with_model(place: Place, *words: str) -> list[str]:
    return ["-m", place.model, "-c", "256", "--no-warmup", *words]


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


def test_port_in_use(place: Place, embedded_server: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = diagnosis_of([embedded_server, *with_model(place, "--host", "127.0.0.1", "--port", port)])
    assert found.slug == "port-in-use", found.summary


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_model(place: Place, embedded_server: str) -> None:
    path = place.head("a.gguf", 1000)
    Path(path).chmod(0)
    found = diagnosis_of([embedded_server, "-m", path])
    assert found.slug == "model-path-unreadable", found.summary


def test_bad_variable(place: Place, embedded_server: str) -> None:
    found = diagnosis_of([embedded_server, *with_model(place)], {"LLAMA_ARG_CTX_SIZE": "many"})
    assert found.slug == "environment-variable-bad", found.summary


def test_too_little_address_space(place: Place, embedded_server: str) -> None:
    words = ["prlimit", "--as=1500000000", embedded_server, *with_model(place, "-dev", "none")]
    found = diagnosis_of([*words, "-c", "200000"])
    assert found.verdict == "fault", found.summary
    assert found.primary is not None
    if found.primary.severity == "warn":
        # The program crashes after the failure, and its last lines may be lost with it.
        assert found.primary.sure == "possible"
        return
    assert found.slug in {
        "host-out-of-memory", "kv-cache-does-not-fit", "compute-buffer-does-not-fit", "threads-limit",
        "output-buffer-does-not-fit",
    }  # fmt: skip


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
    second = diagnosis_of([embedded_server, "-m", str(parts[1])])
    assert second.slug == "shard-not-first", second.summary
    parts[1].unlink()
    found = diagnosis_of([embedded_server, "-m", str(parts[0])])
    assert found.slug == "shard-missing", found.summary
    joined = place.file("joined.gguf", parts[0].read_bytes() + parts[2].read_bytes())
    assert diagnosis_of([embedded_server, "-m", joined]).slug in {"shard-renamed", "shards-joined-wrongly"}


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
