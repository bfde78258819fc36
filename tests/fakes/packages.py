"""A tiny pinned package, and a pip that serves it as a test asks: whole, wrong, cut, or for ever."""

from __future__ import annotations

import hashlib
import io
import stat
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from llamaops.system.catalogue import Artefact, Member

# What the fake does is FAKE_PIP; each start adds a line to FAKE_PIP_LOG.
_PIP = r"""
import os, shutil, sys, time
argv = sys.argv[1:]
with open(os.environ["FAKE_PIP_LOG"], "a") as log:
    log.write(" ".join(argv) + "\n")
assert sys.stdin.read() == "", "standard input must be closed"
assert os.environ["TMPDIR"].endswith("/pip"), "temporary files belong into the work folder"
source = os.environ["FAKE_PIP_SOURCE"]
with open(argv[argv.index("--requirement") + 1]) as file:
    other = os.path.join(os.path.dirname(source), file.read().split("==")[0] + "-1.0-py3-none-any.whl")
if os.path.exists(other):
    source = other  # a further archive of the same artefact
target = os.path.join(argv[argv.index("--dest") + 1], os.path.basename(source))
with open(source, "rb") as file:
    data = file.read()
how = os.environ["FAKE_PIP"]
def save(content):
    with open(target, "wb") as file:
        file.write(content)
if how == "whole":
    save(data)
elif how == "slow":
    time.sleep(0.7)
    save(data)
elif how == "changed":
    save(data[:-1] + bytes([data[-1] ^ 1]))
elif how == "short":
    save(data[: len(data) // 2])
elif how == "nothing":
    pass
elif how == "hang":
    with open(os.path.join(os.environ["TMPDIR"], "part"), "wb") as file:
        file.write(data[:100])
    print("half", flush=True)
    time.sleep(600)
else:
    sys.stderr.write(how)
    sys.exit(1)
"""


def wheel(members: Mapping[str, tuple[bytes, int]]) -> bytes:
    """Return a wheel with these members: content, and mode bits (0 for none)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, (content, mode) in members.items():
            info = zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0))
            info.external_attr = mode << 16
            file.writestr(info, content)
    return buffer.getvalue()


PROGRAM = b"#!/bin/sh\necho version: 1\n"
MEMBERS: Mapping[str, tuple[bytes, int]] = {
    "tiny/bin/program": (PROGRAM, stat.S_IFREG | 0o755),
    "tiny/bin/lib.so": (b"library" * 500, stat.S_IFREG | 0o644),
    "tiny/bin/lib.so.1": (b"library" * 500, stat.S_IFREG | 0o644),
    "tiny/__init__.py": (b"raise SystemExit", stat.S_IFREG | 0o644),
    "tiny-1.0.dist-info/LICENSE": (b"free", stat.S_IFREG | 0o644),
}


def artefact(data: bytes, *, unpacked_bytes: int = 1 << 20) -> Artefact:
    """Return the catalogue entry of a tiny wheel."""
    return Artefact(
        title="tiny engine",
        name="tiny",
        version="1.0",
        archive="wheel",
        file="tiny-1.0-py3-none-any.whl",
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        unpacked_bytes=unpacked_bytes,
        licence="MIT",
        contents="a program",
        folder="engines",
        members=(
            Member(source="tiny/bin/", target="bin/"),
            Member(source="tiny-1.0.dist-info/LICENSE", target="LICENSE"),
        ),
        main="bin/program",
    )


def fake_pip(folder: Path, data: bytes, how: str) -> dict[str, str]:
    """Install the fake as module `pip` and as program `pip3`; return the variables that select it."""
    package = folder / "modules" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(_PIP)
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "pip3"
    program.write_text(f"#!{sys.executable}\n{_PIP}")
    program.chmod(0o755)
    source = folder / "tiny-1.0-py3-none-any.whl"
    source.write_bytes(data)
    return {
        "PYTHONPATH": str(folder / "modules"),
        "PATH": f"{programs}:/usr/bin:/bin",
        "FAKE_PIP": how,
        "FAKE_PIP_SOURCE": str(source),
        "FAKE_PIP_LOG": str(folder / "pip.log"),
    }


def pip_starts(environ: Mapping[str, str]) -> int:
    """Return how often the fake pip was started."""
    log = Path(environ["FAKE_PIP_LOG"])
    return len(log.read_text().splitlines()) if log.exists() else 0
