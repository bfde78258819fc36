from pathlib import Path

import pytest

from llamaops.errors import InputFileError
from llamaops.record.secrets import collect_secrets


def values(
    environ: dict[str, str], argv: list[str] | None = None, files: list[str] | None = None
) -> set[str]:
    return set(collect_secrets(environ, argv or [], files or [], host="h0").values)


def test_variables_with_telling_names() -> None:
    environ = {
        "LLAMA_API_KEY": "k1x",
        "HF_TOKEN": "hf-abc",
        "MY_PASSWORD": " pw with space ",
        "LLAMAOPS_TEST_SECRET_3": "true",
        "SSH_AUTH_SOCK": "/tmp/ssh-1/agent.2",
        "XDG_SESSION_ID": "c2",
        "KEYBOARD": "de",
        "PATH": "/bin",
        "MAX_TOKENS": "512",
        "TLS_KEY": "/etc/llama/tls.key",
        "USE_TOKEN": "true",
        "DATABASE_URL": "postgres://u:p%40ssword@h/db",
    }
    assert values(environ) == {
        "k1x",
        "hf-abc",
        " pw with space ",
        "pw with space",
        "true",
        "p%40ssword",
        "p@ssword",
    }


def test_arguments() -> None:
    argv = [
        "serve",
        "--api-key",
        "k1x",
        "--hf-token=t2y",
        "--api-key-file",
        "/k",
        "-m",
        "m.gguf",
        "https://u:longpw@h/x",
    ]
    assert values({}, argv) == {"k1x", "t2y", "longpw"}


def test_key_files(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# comment\nfirst-key\n\n  second \nab\n")
    found = collect_secrets({}, [], [str(file)], host="h0")
    assert found.values == ("first-key", "second")
    assert found.too_short == 1
    with pytest.raises(InputFileError, match="cannot read"):
        collect_secrets({}, [], [str(tmp_path / "none")], host="h0")


def test_lists_are_taken_apart() -> None:
    assert values({"LLAMA_API_KEY": "abcdefgh,ijklmnop"}) == {"abcdefgh,ijklmnop", "abcdefgh", "ijklmnop"}


def test_identity() -> None:
    found = collect_secrets({"HOME": "/home/zoe", "USER": "zoe"}, host="box.lan")
    assert (found.home, found.users, found.hosts) == ("/home/zoe", ("zoe",), ("box.lan", "box"))


def test_a_traceback_with_variables_does_not_print_them() -> None:
    assert "k1x" not in repr(collect_secrets({"LLAMA_API_KEY": "k1x"}, host="h0"))
