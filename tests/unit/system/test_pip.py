from __future__ import annotations

import pytest

from llamaops.system.pip import explain
from llamaops.system.process import End, Exited, NotStarted, StoppedAtBound
from tests.fakes.packages import artefact
from tests.fakes.system import completed

ITEM = artefact(b"data")
REFUSED = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('"
    "<pip._vendor.urllib3.connection.HTTPSConnection object>: Failed to establish a new connection: "
    "[Errno 111] Connection refused')': /simple/tiny/\n"
    "ERROR: Could not find a version that satisfies the requirement tiny==1.0 (from versions: none)\n"
    "ERROR: No matching distribution found for tiny==1.0\n"
)
ABSENT = "ERROR: Could not find a version that satisfies the requirement tiny==1.0 (from versions: 0.9)\n"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
CUT = "pip._vendor.urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(9 bytes read)')\n"


@pytest.mark.parametrize(
    ("end", "stderr", "message"),
    [
        (Exited(1), REFUSED, "no package index could be reached for tiny==1.0; look at pip's settings"),
        (Exited(1), ABSENT, "pip found no tiny==1.0"),
        (Exited(2), FULL, "the disk became full while the tiny engine was stored in /cache"),
        (Exited(2), CUT, "the download of tiny==1.0 was cut; nothing half-done was left; try again"),
        (Exited(1), "/usr/bin/python: No module named pip\n", "pip cannot be started"),
        (NotStarted("pip3: Permission denied", 13), "", "pip cannot be started"),
        (StoppedAtBound("wall_s", killed=False), CUT, "was stopped: pip reached its bound (wall_s)"),
        (Exited(1), "notice\nERROR: bad option --x\n", "could not download tiny==1.0: ERROR: bad option --x"),
    ],
)
def test_what_pip_says_becomes_one_line_with_a_next_step(end: End, stderr: str, message: str) -> None:
    error = explain(ITEM, completed(["pip"], stderr=stderr, end=end), "/cache/.tmp-1")
    assert message in str(error)
    assert error.hint
    assert "\n" not in str(error)


def test_an_index_address_with_credentials_is_not_repeated() -> None:
    error = explain(
        ITEM, completed(["pip"], stderr="ERROR: https://me:pw@host/simple: 407", end=Exited(1)), "/c/w"
    )
    assert "pw" not in str(error)
    assert "host" not in str(error)
