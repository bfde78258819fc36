"""Print what every kind of wrong file is called by `llamaops inspect`, as the table of docs/inspect.md.

python -m tests.figures.wrong_files
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import socket
import struct
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from llamaops.cli.app import main
from tests.fakes import gguf_files as g

Make = Callable[[Path], None]
WHOLE = g.FakeGguf()
GOOD = WHOLE.to_bytes()
HUGE = 2**62


class Named(NamedTuple):
    """What one wrong file is called."""

    kind: str
    status: int
    check: str
    summary: str
    remedy: str


def data(content: bytes) -> Make:
    """Return what writes a file."""

    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def gguf(**changes: object) -> Make:
    """Return what writes a GGUF file that is wrong in one thing."""
    return data(replace(WHOLE, **changes).to_bytes())  # type: ignore[arg-type]  # each caller names fields of it


def tensors(*found: g.FakeTensor) -> Make:
    """Return what writes a GGUF file with these tensors."""
    return gguf(tensors=list(found))


def packed(*names: str) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return buffer.getvalue()


def safetensors() -> bytes:
    """Return a file of the other common format."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def a_socket(path: Path) -> None:
    """Make a socket; its path has to be short."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def first_of_two(path: Path) -> None:
    """Write the first part of a model and not the second."""
    path.write_bytes(g.shards(count=2)[0])


HOLE = g.FakeTensor("a.weight", (1024, 64), data=b"\x11" * 200_000 + bytes(1024 * 64 * 4 - 200_000))
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 98362432\n"
CASES: tuple[tuple[str, str, Make], ...] = (
    ("not there", "absent.gguf", lambda _path: None),
    ("a directory", "m.gguf", lambda path: path.mkdir()),
    ("a socket", "m.gguf", a_socket),
    ("a FIFO", "m.gguf", os.mkfifo),
    ("a broken link", "m.gguf", lambda path: path.symlink_to("nowhere")),
    ("an empty file", "m.gguf", data(b"")),
    ("zeros", "m.gguf", data(bytes(100_000))),
    ("an HTML page", "m.gguf", data(b"<!DOCTYPE html><html><head><title>404</title></head></html>")),
    ("an error in JSON", "m.gguf", data(b'{"error":"Invalid username or password."}')),
    ("a git LFS pointer", "m.gguf", data(LFS)),
    ("safetensors", "m.gguf", data(safetensors())),
    ("a PyTorch checkpoint", "m.gguf", data(packed("archive/data.pkl", "archive/version"))),
    ("a zip archive", "m.gguf", data(packed("a.txt"))),
    ("a pickle", "m.gguf", data(pickle.dumps({"a": 1}, protocol=2))),
    ("old ggml", "m.gguf", data(struct.pack("<I", 0x67676D6C) + bytes(64))),
    ("old ggjt", "m.gguf", data(struct.pack("<II", 0x67676A74, 3) + bytes(64))),
    ("a download that goes on", "m.gguf.part", data(GOOD[: len(GOOD) // 2])),
    ("a cut header", "m.gguf", data(GOOD[:300])),
    ("cut tensor data", "m.gguf", data(GOOD[:-100])),
    ("a hole of zeros at the end", "m.gguf", tensors(HOLE)),
    ("big-endian", "m.gguf", gguf(order=">")),
    ("version 1", "m.gguf", gguf(version=1)),
    ("version 4", "m.gguf", gguf(version=4)),
    ("2^62 keys", "m.gguf", gguf(key_count=HUGE)),
    ("2^62 tensors", "m.gguf", gguf(tensor_count=HUGE)),
    ("a string of 2^62 bytes", "m.gguf", data(GOOD[:24] + struct.pack("<Q", HUGE) + GOOD[32:])),
    ("an array of 2^62 elements", "m.gguf", data(WHOLE.with_key("x", g.Array(g.U32, [1], HUGE)).to_bytes())),
    ("a key twice", "m.gguf", gguf(keys=[*WHOLE.keys, ("general.name", "again")])),
    ("a tensor twice", "m.gguf", tensors(g.FakeTensor("a"), g.FakeTensor("a"))),
    ("overlapping tensors", "m.gguf", tensors(g.FakeTensor("a"), g.FakeTensor("b", offset=0))),
    ("a misaligned tensor", "m.gguf", tensors(g.FakeTensor("a"), g.FakeTensor("b", offset=260))),
    ("impossible dimensions", "m.gguf", tensors(g.FakeTensor("a", (2**40, 2**40), data=bytes(32)))),
    ("an unknown tensor type", "m.gguf", tensors(g.FakeTensor("a", (32, 2), 200, data=bytes(32)))),
    ("a missing part", "m-00001-of-00002.gguf", first_of_two),
    ("parts joined by cat", "m.gguf", data(b"".join(g.shards(count=2)))),
    ("a LoRA adapter", "m.gguf", data(WHOLE.with_key("general.type", "adapter").to_bytes())),
)


def named(kind: str, name: str, make: Make, folder: Path) -> Named:
    """Make a wrong file, inspect it with the whole command, and return the first required finding."""
    make(folder / name)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(folder):
        status = main(["inspect", name, "--format", "json", "--records", str(folder / "records")])
    record = json.loads(out.getvalue())["record"]
    failed = [
        one for one in record["findings"] if one["status"] == "failed" and one["severity"] == "required"
    ]
    first = {"check": "-", "summary": "nothing failed", "remedy": "-"} | (failed[0] if failed else {})
    said = str(first["summary"]).replace(str(folder), "FOLDER")
    return Named(kind, status, str(first["check"]), said, str(first["remedy"]))


def every() -> list[Named]:
    """Return what every kind of wrong file is called."""
    found = []
    for kind, name, make in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found.append(named(kind, name, make, Path(folder)))
    return found


def table(found: list[Named]) -> str:
    """Return the rows as Markdown."""
    lines = ["| wrong is | it says | next step | exit status |", "| --- | --- | --- | --- |"]
    for one in found:
        said = one.summary.replace("|", "\\|")
        lines.append(f"| {one.kind} | {said} | {one.remedy} | {one.status} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(every()))
