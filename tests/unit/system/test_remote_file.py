"""Ranges of a file on a web server: right ones, and servers that cannot or will not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from llamaops.facts.gguf_file import facts_of
from llamaops.facts.gguf_probe import look
from llamaops.system import remote_file
from llamaops.system.machine import Machine
from llamaops.system.remote_file import RemoteFile, RemoteSystem
from tests.fakes import gguf_files as g
from tests.fakes.hub import COMMIT, REPOSITORY, FakeHub, serving

DATA = os.urandom(3 * remote_file.BLOCK_BYTES + 77)
PATH = f"/{REPOSITORY}/resolve/{COMMIT}"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving(FakeHub({"x.gguf": DATA})) as served:
        yield served


def test_parts_of_a_file(hub: FakeHub) -> None:
    with RemoteFile(f"{hub.url}{PATH}/x.gguf") as file:
        assert file.size_bytes == len(DATA)
        for offset, length in [
            (0, 10),
            (len(DATA) - 5, 100),
            (remote_file.BLOCK_BYTES - 3, 9),
            (len(DATA), 4),
            (5, 0),
        ]:
            assert file.read_at(offset, length) == DATA[offset : offset + length]
        assert file.requests == 3
        assert file.bytes_read == hub.sent_bytes < len(DATA)


@pytest.mark.parametrize(
    ("change", "name", "error"),
    [
        ({}, "none.gguf", FileNotFoundError),
        ({"status": 401}, "x.gguf", PermissionError),
        ({"status": 500}, "x.gguf", OSError),
        ({"redirect_to": ""}, "x.gguf", OSError),
        ({"redirect_to": "ftp://127.0.0.1"}, "x.gguf", OSError),
    ],
)
def test_servers_that_refuse(hub: FakeHub, change: dict[str, Any], name: str, error: type[OSError]) -> None:
    for key, value in change.items():
        setattr(hub, key, value)
    with pytest.raises(error):
        RemoteFile(f"{hub.url}{PATH}/{name}")


def test_a_server_without_ranges_gives_the_start_only(hub: FakeHub) -> None:
    hub.ranges = False
    with RemoteFile(f"{hub.url}{PATH}/x.gguf") as file:
        assert file.read_at(0, 100) == DATA[:100]
        with pytest.raises(OSError, match="range"):
            file.read_at(remote_file.BLOCK_BYTES, 1)


def test_a_redirect_takes_no_token_along(hub: FakeHub) -> None:
    with serving(FakeHub({f"{REPOSITORY}/resolve/{COMMIT}/x.gguf": DATA})) as other:
        other.files = {f"cdn{PATH}/x.gguf": DATA}
        hub.redirect_to = f"{other.url}/cdn"
        with RemoteFile(f"{hub.url}{PATH}/x.gguf", token="hf_secret") as file:
            assert file.read_at(0, 4) == DATA[:4]
        assert hub.tokens == ["Bearer hf_secret"]
        assert other.tokens == [None]


def test_bounds_on_requests_and_time(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "MOST_REQUESTS", 1)
    with RemoteFile(f"{hub.url}{PATH}/x.gguf") as file, pytest.raises(OSError, match="bound"):
        file.read_at(remote_file.BLOCK_BYTES, 1)
    times = iter([0.0, 0.0, 0.0, 9999.0, 9999.0, 9999.0])
    with pytest.raises(TimeoutError):
        RemoteFile(f"{hub.url}{PATH}/x.gguf", clock=lambda: next(times))


def test_nobody_listens_there() -> None:
    with pytest.raises(OSError, match="refused"):
        RemoteFile("http://127.0.0.1:9/x.gguf")


def test_a_model_of_several_parts_is_inspected_over_the_network() -> None:
    names = g.shard_names("m")
    files = dict(zip(names, g.shards(), strict=True))
    with serving(FakeHub(files)) as hub, Machine() as machine:
        system: Any = RemoteSystem(machine)
        probe = look(system, f"{hub.url}{PATH}/{names[1]}")
        facts = facts_of(probe)
        assert facts.problems.need() == ()
        assert facts.tensor_count.need() == 3
        assert len(facts.shards.need()) == 3
        assert facts.engine_path.need().endswith(names[0])
        assert len(hub.asked) == 3
        system.close()


def test_a_missing_part_is_named() -> None:
    names = g.shard_names("m")
    files = dict(list(zip(names, g.shards(), strict=True))[:2])
    with serving(FakeHub(files)) as hub, Machine() as machine:
        system: Any = RemoteSystem(machine)
        facts = facts_of(look(system, f"{hub.url}{PATH}/{names[0]}"))
        assert {one.slug for one in facts.problems.need()} == {"shard-unreadable"}
        system.close()
