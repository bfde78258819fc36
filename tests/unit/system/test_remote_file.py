"""Ranges of a file on a web server: right ones, and servers that cannot or will not."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from llamaops.facts.gguf_file import facts_of
from llamaops.facts.gguf_probe import look
from llamaops.schema.fact import Unknown
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


@contextlib.contextmanager
def _answering(answer: bytes, *, again: bool = False) -> Iterator[str]:
    """Serve these bytes to whoever asks, `again` until the client has gone; yield the address of a file."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(65536)
                    client.sendall(answer)
                    while again:
                        client.sendall(answer)
                        time.sleep(0.01)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/m.gguf"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:999999/x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_a_server_that_lies_does_not_make_a_file_absent(answer: bytes) -> None:
    with _answering(answer) as url, Machine() as machine:
        remote: Any = RemoteSystem(machine)
        model = facts_of(look(remote, url))
        remote.close()
    assert isinstance(model.path_state, Unknown)
    assert model.path_state.why == "failed"


def test_a_head_that_never_ends_is_cut_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "WALL_S", 0.3)
    with (
        _answering(b"HTTP/1.1 100 Continue\r\n\r\n", again=True) as url,
        pytest.raises(TimeoutError, match="bound on time"),
    ):
        RemoteFile(url)
