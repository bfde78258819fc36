"""Real engines as routers of several models, and real engines that sleep."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.test_server_probes import serving

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(240)]
WORDS = ("another", "model", "says", "these", "few", "words", "in", "its", "own", "order", "each", "time")
ROUTER_FLAGS = ("-c", "1024", "-np", "2", "-t", "1", "--metrics", "--offline")


@pytest.fixture(params=["engine", "engine-b10068"])
def program(request: pytest.FixtureRequest, fetched: Callable[[str], str]) -> str:
    """Return a build with router mode: the newest that fits this processor, and the older embedded one."""
    return fetched(request.param)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder with two tiny models that say different things, and a file that is no model."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_tiny_model(folder / "counts.gguf")
    write_tiny_model(folder / "other.gguf", words=WORDS, layers=3)
    (folder / "broken.gguf").write_bytes(b"GGUF" + bytes(2000))
    return folder


def verify(port: int, records: Path, *words: str) -> command.Ran:
    return command.run_json(["verify", f"http://127.0.0.1:{port}", *words], records)


def statuses(ran: command.Ran, area: str) -> dict[str, str]:
    return {f["check"]: f["status"] for f in ran.record["findings"] if f["check"].startswith(area)}


def by_name(ran: command.Ran) -> dict[str, dict[str, object]]:
    return {model["name"]: model for model in ran.record["facts"]["router"]["models"]["value"]}


def test_a_router_is_asked_for_each_model_that_was_named(program: str, models: Path, tmp_path: Path) -> None:
    with serving(program, "--models-dir", str(models), *ROUTER_FLAGS) as (_process, port):
        nothing = verify(port, tmp_path / "records")
        assert by_name(nothing)["counts"]["state_before"] == "unloaded"
        assert "--model" in str(by_name(nothing)["counts"]["why_not"])
        assert nothing.status != 0
        assert nothing.record["outcome"] == "incomplete"
        failed = [f["check"] for f in nothing.record["findings"] if f["status"] == "failed"]
        assert failed == [
            "surface.pages-are-kept-out"
        ]  # advisory: nothing that was not asked counts as failed
        ran = verify(port, tmp_path / "records", "--model", "counts", "--model", "other")
        again = verify(port, tmp_path / "records", "--only", "router")
        broken = verify(port, tmp_path / "records", "--only", "router", "--model", "broken")
    found = statuses(ran, "router.")
    assert set(found.values()) == {"passed"}, ran.open_findings()
    assert len(found) == 3
    keys = ("state_before", "state_after", "answered_as")
    assert {name: tuple(model[key] for key in keys) for name, model in by_name(ran).items()} == {
        "broken": ("unloaded", None, None),
        "counts": ("unloaded", "loaded", "counts"),
        "other": ("unloaded", "loaded", "other"),
    }
    assert statuses(ran, "surface.")["surface.endpoints-work-or-say-why"] == "passed"
    assert statuses(ran, "concurrency.")["concurrency.every-request-is-answered"] == "passed"
    # What the last verification loaded is loaded, and so it is asked without being named.
    assert by_name(again)["other"]["state_before"] == "loaded"
    assert again.status == 0, again.open_findings()
    assert statuses(broken, "router.")["router.models-answer"] == "failed"
    assert "failed to load" in str(broken.open_findings())


def test_a_model_put_away_for_another_one_is_named(program: str, models: Path, tmp_path: Path) -> None:
    flags = ("--models-dir", str(models), "--models-max", "1", "--no-models-autoload", *ROUTER_FLAGS)
    with serving(program, *flags) as (_process, port):
        ran = verify(port, tmp_path / "records", "--only", "router", "--model", "counts", "--model", "other")
    assert set(statuses(ran, "router.").values()) == {"passed"}, ran.open_findings()
    assert ran.record["facts"]["router"]["put_away"] == ["counts"]
    assert ran.record["ended"].endswith("the router was left with other loaded, without counts")


def test_a_server_found_asleep_is_woken(program: str, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    flags = ("-m", str(model), "-c", "512", "-t", "1", "--sleep-idle-seconds", "1")
    with serving(program, *flags) as (process, port):
        while "entering sleeping state" not in process.log():
            process.wait_change(1.0)
        ran = verify(port, tmp_path / "records", "--only", "sleep")
    assert statuses(ran, "sleep.") == {
        "sleep.wakes-and-answers": "passed", "sleep.looking-does-not-wake": "passed",
    }, ran.open_findings()  # fmt: skip
    assert ran.status == 0


def test_a_server_of_ours_falls_asleep_and_is_woken(program: str, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    words = ["serve", "--verify", "--once", "--level", "full", "--only", "sleep,chat,metrics"]
    words += ["--bin-dir", os.path.dirname(program), "--model", str(model)]
    words += ["--ctx-size", "512", "--parallel", "1", "--threads", "1"]
    words += ["--format", "json", "--", "--metrics", "--sleep-idle-seconds", "1"]
    ran = command.run(words, tmp_path / "records")
    assert set(statuses(ran, "sleep.").values()) == {"passed"}, ran.open_findings()
    assert len(statuses(ran, "sleep.")) == 3
    sleep = ran.record["facts"]["sleep"]
    assert sleep["log_says_asleep"] is True
    assert sleep["scrape"]["answer"]["state"] == "works"
