import os
import subprocess
import sys
from pathlib import Path

import pytest

from llamaops.cli.redact import entries, is_mark


def redact(text: bytes, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "HOME": "/home/nobody-here", **environ}
    return subprocess.run(
        [sys.executable, "-m", "llamaops", "redact", *words],
        input=text,
        env=env,
        capture_output=True,
        check=False,
    )


def test_standard_input_to_standard_output() -> None:
    done = redact(b"a hunter2 b \xff\n", LLAMAOPS_TEST_SECRET_0="hunter2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a <secret-1> b \xff\n", b"")


def test_a_file_and_a_secret_file(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("hunter2\n")
    (tmp_path / "log").write_text("a hunter2")
    done = redact(b"", str(tmp_path / "log"), "--secret-file", str(tmp_path / "keys"), "--summary")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a <secret-1>", b"given-value: 1\n")


@pytest.mark.parametrize("words", [("/nowhere/log",), ("-", "--secret-file", "/nowhere/keys")])
def test_what_cannot_be_read_is_one_line(words: tuple[str, ...]) -> None:
    done = redact(b"hunter2", *words)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1


def test_entries_pass_their_marks_and_do_not_meet() -> None:
    text = (
        b"=====ENTRY p1=====\nx hunter\n=====ENTRY hunter2=====\n2 y\n--api-key p1-Zx9Yw8Vu7Ts6Rq5P\n"
        b"=====ENTRY p3=====\np1-Zx9Yw8Vu7Ts6Rq5P\n"
    )
    done = redact(text, LLAMAOPS_TEST_SECRET_0="hunter2")
    assert done.stdout == text.replace(b"--api-key p1-Zx9Yw8Vu7Ts6Rq5P", b"--api-key <secret-1>")


def test_a_stream() -> None:
    done = redact(b"a hunter2\n" * 3, "--stream", LLAMAOPS_TEST_SECRET_0="hunter2")
    assert done.stdout == b"a <secret-1>\n" * 3


def test_entries_are_the_whole_text() -> None:
    for text in (
        "",
        "a\nb",
        "=====ENTRY 1=====",
        "a\n=====ENTRY 1=====\nb=====ENTRY 2=====\n=====ENTRY 3=====",
    ):
        parts = list(entries(text))
        assert "".join(parts) == text
    assert [is_mark(part) for part in entries("a\n=====ENTRY 1=====\nb\n")] == [False, True, False]
