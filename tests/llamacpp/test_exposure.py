"""Doors of real engines that other users and machines find: each is a finding with what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llamaops.system.http import HttpClient, Origin
from tests.fakes import command
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.test_server_probes import KEY, serving

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(180)]
FLAGS = ("-c", "512", "-np", "1", "-t", "1")
EXPOSURE = ("--only", "exposure,chat")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_tiny_model(folder / "tiny.gguf")


def verify(port: int, tmp_path: Path, *words: str, key: str | None = None) -> command.Ran:
    more = {"LLAMAOPS_API_KEY": key} if key else None
    return command.run_json(
        ["verify", f"http://127.0.0.1:{port}", *(words or EXPOSURE)], tmp_path / "records", more
    )


def test_an_address_beyond_the_one_asked_for_and_open_pages_are_told(
    embedded_server: str, model: Path, tmp_path: Path
) -> None:
    # The last --host wins: the server listens for everybody, though it is asked on loopback.
    with serving(embedded_server, "-m", str(model), *FLAGS, "--host", "0.0.0.0") as (process, port):
        ran = verify(port, tmp_path)
        assert ran.record["facts"]["owner"]["pids"]["value"] == [process.pid]
    wide = ran.finding("surface.listens-where-asked")
    assert (wide["status"], wide["severity"]) == ("failed", "advisory")
    assert f"0.0.0.0:{port}, and no key is used" in wide["summary"]
    assert "--host 127.0.0.1" in wide["remedy"]
    assert ran.finding("surface.pages-are-kept-out")["status"] == "failed"
    assert ran.status == 0  # what is open is told; it answers all the same


def test_a_server_that_keeps_pages_out_and_listens_on_loopback_passes(
    embedded_server: str, model: Path, tmp_path: Path
) -> None:
    with serving(embedded_server, "-m", str(model), *FLAGS, "--cors-origins", "localhost") as (
        _process,
        port,
    ):
        ran = verify(port, tmp_path)
    for check in ("listens-where-asked", "pages-are-kept-out", "no-doors-for-others"):
        assert ran.finding(f"surface.{check}")["status"] == "passed", ran.open_findings()


@pytest.mark.parametrize("flags", [("--tools", "all"), ("--props",)], ids=["built-in tools", "POST /props"])
def test_what_lets_clients_do_more_than_ask_fails(
    embedded_server: str, model: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    with serving(embedded_server, "-m", str(model), *FLAGS, *flags) as (_process, port):
        ran = verify(port, tmp_path)
    assert ran.finding("surface.no-doors-for-others")["status"] == "failed"
    assert ran.status != 0


def test_children_of_a_router_that_need_no_key_are_told(
    embedded_server: str, model: Path, tmp_path: Path
) -> None:
    """A key given by --api-key is not handed on to the children; one in a file is."""
    only = ("--only", "exposure,router", "--model", "tiny")
    found = {}
    key_file = tmp_path / "key"
    key_file.write_text(KEY + "\n", encoding="utf-8")
    key_file.chmod(0o600)
    for name, flags in (("argument", ("--api-key", KEY)), ("file", ("--api-key-file", str(key_file)))):
        with serving(embedded_server, "--models-dir", str(model.parent), *FLAGS, *flags) as (_process, port):
            HttpClient(Origin("http", "127.0.0.1", port)).fast_get()
            ran = verify(port, tmp_path, *only, key=KEY)
        found[name] = ran.finding("surface.listens-where-asked")
        assert KEY not in ran.out
    assert found["argument"]["status"] == "failed", found
    assert "children answer without the key" in found["argument"]["summary"]
    assert found["file"]["status"] == "passed", found


@pytest.mark.parametrize("build", ["engine", "engine-b10068"])
def test_files_of_slots_are_seen_and_none_is_written(
    fetched: Callable[[str], str], build: str, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "slots"
    folder.mkdir()
    found = {}
    for name, flags in (("on", ("--slot-save-path", f"{folder}/")), ("off", ())):
        with serving(fetched(build), "-m", str(model), *FLAGS, *flags) as (_process, port):
            found[name] = verify(port, tmp_path).record["facts"]["surface"]["exposure"]["value"]
    assert found["on"]["slot_files"] == "refuses"
    assert found["off"]["slot_files"] == "switched_off"
    assert found["off"]["loads_models"] is False
    assert list(folder.iterdir()) == []
