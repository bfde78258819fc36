"""Settings come from four places in order, and a wrong file names every error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import InputFileError, UsageError
from llamaops.operations.setting_kinds import KINDS
from llamaops.operations.settings import Settings, read_file, resolve


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), **more}


def user_file(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "config" / "llamaops"
    folder.mkdir(parents=True)
    (folder / "llamaops.yaml").write_text(text)


def test_the_table_and_the_type_have_the_same_settings() -> None:
    assert set(KINDS) == set(Settings.__struct_fields__)


def test_the_command_line_wins_then_the_variable_then_here_then_the_user(tmp_path: Path) -> None:
    user_file(tmp_path, "seed: 1\nport: 1001\nhost: 127.0.0.9\nthreads: 3\n")
    Path("llamaops.yaml").write_text("seed: 2\nport: 1002\nhost: 127.0.0.8\n")
    environ = environment(tmp_path, LLAMAOPS_SEED="3", LLAMAOPS_PORT="1003")
    settings, facts = resolve({"seed": "4"}, environ, names=("seed", "port", "host", "threads", "via"))
    assert (settings.seed, settings.port, settings.host, settings.threads) == (4, 1003, "127.0.0.8", 3)
    origins = {setting.name: setting.origin for setting in facts.settings}
    assert origins["seed"] == "command line"
    assert origins["port"] == "LLAMAOPS_PORT"
    assert origins["host"] == "llamaops.yaml:3"
    assert origins["threads"].endswith("llamaops.yaml:4")
    assert origins["via"] == "default"
    assert len(facts.files) == 2


@pytest.mark.parametrize("text", ["8k", "1e3", "0x100", "-1", "", " 8", "٣", "4096.0", "99999999999"])
def test_a_number_that_the_engine_would_misread_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--ctx-size"):
        resolve({"ctx_size": text}, environment(tmp_path), names=("ctx_size",))


def test_a_port_above_65535_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="65535"):
        resolve({"port": "99999"}, environment(tmp_path), names=("port",))


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="LLAMAOPS_PARALLEL"):
        resolve({}, environment(tmp_path, LLAMAOPS_PARALLEL="many"), names=("parallel",))


def test_every_error_of_a_file_is_named_with_its_place() -> None:
    text = b"model: /m.gguf\nctx_sise: 5\nport: eighty\nhost: [a, b]\nport: 80\nseed: 1\nseed: 2\n"
    with pytest.raises(InputFileError) as caught:
        read_file(Path("x.yaml"), text)
    message = str(caught.value)
    assert "x.yaml:2:1: unknown setting 'ctx_sise'; did you mean ctx_size?" in message
    assert "x.yaml:3:1: port has to be" in message
    assert "x.yaml:4:1: host has to be one value" in message
    assert "x.yaml:7:1: seed is given twice" in message
    assert "port is given twice" not in message  # the first one was wrong and does not count


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"a: [1, 2", "not valid YAML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"- model\n", "mapping"),
        (b"a: &a [*a, *a]\n", "unknown setting"),
        (b"[" * 5000, "not valid YAML"),
    ],
)
def test_a_file_that_is_no_mapping_is_one_clear_error(content: bytes, wanted: str) -> None:
    with pytest.raises(InputFileError, match=wanted):
        read_file(Path("x.yaml"), content)


def test_an_empty_file_sets_nothing() -> None:
    assert read_file(Path("x.yaml"), b"# nothing\n") == {}


def test_a_dash_in_a_name_is_an_underscore() -> None:
    assert read_file(Path("x.yaml"), b"ctx-size: 512\n") == {"ctx_size": ("512", "x.yaml:1")}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config" / "llamaops" / "llamaops.yaml").mkdir(parents=True)
    with pytest.raises(InputFileError, match=r"llamaops\.yaml"):
        resolve({}, environment(tmp_path), names=("seed",))
