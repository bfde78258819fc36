"""Whole commands against a server in the forms of March 2024: believed where it is right, and unharmed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.liars import ROOT

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(180)]


def install(folder: Path, *lies: str) -> Path:
    """Write an executable called `server`; its text has the word by which llama.cpp's own are known."""
    folder.mkdir(parents=True)
    path = folder / "server"
    first = [word for lie in lies for word in ("--lie", lie)]
    path.write_text(
        f"#!{sys.executable}\n# llama.cpp\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.fakes.old_server import main\nsys.exit(main({first!r} + sys.argv[1:]))\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def verify(tmp_path: Path, model: str, *lies: str, level: str = "full") -> command.Ran:
    install(tmp_path / "bin", *lies)
    words = ["serve", "--verify", "--once", "--level", level, "--bin-dir", str(tmp_path / "bin")]
    words += ["--model", model, "--ctx-size", "1024", "--parallel", "2", "--ready-timeout", "20"]
    return command.run_json(words, tmp_path / "records")


def test_a_server_of_march_2024_is_verified_at_the_fullest_level(tmp_path: Path, embedded_model: str) -> None:
    ran = verify(tmp_path, embedded_model)
    assert ran.status == 0, ran.open_findings()
    assert ran.record["outcome"] == "passed", ran.open_findings()
    assert ran.state("concurrency") == "reached"
    findings = {item["check"]: item for item in ran.record["findings"]}
    assert "absent in this build" in findings["server.stream-is-complete"]["summary"]
    rows = {row["request"]: row["meaning"] for row in ran.record["facts"]["surface"]["rows"]["value"]}
    assert rows["POST /v1/completions"] == "absent"
    assert rows["POST /v1/messages"] == "absent"
    assert rows["POST /completion"] == "works"
    argv = ran.record["facts"]["launch"]["argv"]
    assert {"--cont-batching", "--log-disable"} <= set(argv)


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        ("cut-stream", "server.stream-is-complete"),
        ("chat-echo", "server.chat-text-is-usable"),
        ("serialized", "concurrency.slots-run-side-by-side"),
        ("no-continuous-batching", "concurrency.late-request-joins"),
    ],
)
def test_its_age_excuses_no_lie(tmp_path: Path, embedded_model: str, lie: str, check: str) -> None:
    ran = verify(tmp_path, embedded_model, lie, level="standard")
    assert ran.status == 3, ran.err
    found = [item["status"] for item in ran.record["findings"] if item["check"] == check]
    assert found == ["failed"], ran.open_findings()


def test_preflight_knows_it_by_its_name_and_does_not_make_up_a_build(
    tmp_path: Path, embedded_model: str
) -> None:
    install(tmp_path / "bin")
    words = ["preflight", "--bin-dir", str(tmp_path / "bin"), "--model", embedded_model]
    ran = command.run_json(words, tmp_path / "records")
    (binary,) = (
        item
        for item in ran.record["facts"]["binaries"]["found"]["value"]
        if item["path"] == str(tmp_path / "bin" / "server")
    )
    assert binary["role"] == "llama-server"
    assert binary["version"]["text"]["state"] == "unknown"
    assert binary["version"]["text"]["detail"] == "this program does not know --version"
