"""Real listening sockets and who holds them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from llamaops.facts.sockets import collect_owner, collect_sockets
from llamaops.schema.fact import Known, Unknown
from llamaops.system.sockets import addresses_of, family, holder_of, holders_of, is_own_address, listeners

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
CHILD = (
    "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
    "print(s.getsockname()[1], flush=True); time.sleep(60)"
)


def test_listeners_of_ourselves_by_family() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("0.0.0.0", 0)) as every:
        found = {(item.address, item.port, item.pid) for item in listeners(os.getpid())}
        assert ("127.0.0.1", one.getsockname()[1], os.getpid()) in found
        assert ("0.0.0.0", every.getsockname()[1], os.getpid()) in found


def test_an_address_of_ipv6_is_decoded() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as one:
        assert any(
            item.address == "::1" and item.port == one.getsockname()[1] for item in listeners(os.getpid())
        )


def test_a_childs_socket_is_found_and_told_from_ours() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as child:
        try:
            assert child.stdout is not None
            port = int(child.stdout.readline())
            assert child.pid in family(os.getpid())
            assert holder_of(port) == child.pid
            assert holder_of(port, "127.0.0.1") == child.pid
            assert holder_of(port, "127.0.0.9") is None
            facts = collect_sockets(os.getpid(), host="127.0.0.1", port=port)
            assert isinstance(facts.listeners, Known)
            (ours,) = [item for item in facts.listeners.value if item.port == port]
            assert ours.of_child
            assert isinstance(facts.holders, Known)
            assert facts.holders.value == (child.pid,)
        finally:
            child.kill()


def test_a_port_that_nobody_holds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    assert holder_of(port) is None


def test_a_process_that_has_gone_listens_nowhere() -> None:
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    assert listeners(int(child.stdout)) == ()


def test_a_literal_address_is_its_own() -> None:
    assert addresses_of("127.0.0.1") == ("127.0.0.1",)
    assert "127.0.0.1" in addresses_of("localhost")


def test_who_listens_on_one_address_goes_before_who_listens_on_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        child = (
            f"import socket, time; s = socket.create_server(('127.0.0.2', {port})); print(1, flush=True); "
        )
        with subprocess.Popen(
            [sys.executable, "-c", child + "time.sleep(60)"], stdout=subprocess.PIPE
        ) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()
                assert holders_of(port, "127.0.0.1") == (os.getpid(),)
                assert holders_of(port, "127.0.0.2") == (other.pid,)
                assert set(holders_of(port)) == {os.getpid(), other.pid}
            finally:
                other.kill()


def test_processes_that_share_a_port_are_all_seen() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as ours:
        port = ours.getsockname()[1]
        child = f"import socket, time; s = socket.create_server(('127.0.0.1', {port}), reuse_port=True); "
        child += "print(1, flush=True); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()
                assert set(holders_of(port, "127.0.0.1")) == {os.getpid(), other.pid}
            finally:
                other.kill()


def test_who_answers_at_an_address_is_found_with_all_its_sockets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("0.0.0.0", 0)) as every:
        owner = collect_owner("127.0.0.1", one.getsockname()[1], here=True)
        assert isinstance(owner.pids, Known)
        assert owner.pids.value == (os.getpid(),)
        assert isinstance(owner.programs, Known)
        assert owner.programs.value[0].startswith("python")
        assert isinstance(owner.listeners, Known)
        assert ("0.0.0.0", every.getsockname()[1]) in {(i.address, i.port) for i in owner.listeners.value}
        assert isinstance(owner.open_children, Unknown)


def test_an_address_of_this_machine_is_told_from_another_ones() -> None:
    for own in ("127.0.0.1", "localhost", "127.0.0.9"):
        assert is_own_address(own)
    # Documentation addresses (RFC 5737) belong to no machine, and a name without an address to none.
    for other in ("198.51.100.7", "203.0.113.7", "no-such-host.invalid"):
        assert not is_own_address(other)


def test_who_answers_is_unknown_on_another_machine_or_where_we_may_not_look() -> None:
    away = collect_owner("llama.example", 8080, here=False)
    assert isinstance(away.pids, Unknown)
    assert away.pids.why == "not_attempted"

    def denied(port: int, address: str | None) -> tuple[int, ...]:
        raise PermissionError(13, "the process that listens is not ours to look at", f"port {port}")

    hidden = collect_owner("127.0.0.1", 8080, here=True, holders_of=denied)
    assert isinstance(hidden.listeners, Unknown)
    assert hidden.listeners.why == "refused"
    forwarded = collect_owner("127.0.0.1", 8080, here=True, holders_of=lambda _port, _address: ())
    assert isinstance(forwarded.pids, Unknown)
    assert forwarded.pids.why == "absent"
