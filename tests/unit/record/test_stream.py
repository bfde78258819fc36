import random

from llamaops.record.redact import Redactor
from llamaops.record.secrets import Secrets
from llamaops.record.stream import LineRedactor


def stream(*values: str, hold: int = 65_536) -> LineRedactor:
    return LineRedactor(Redactor(Secrets(values=values)), hold_characters=hold)


def test_a_line_goes_out_when_it_is_whole() -> None:
    lines = stream("hunter2")
    assert lines.feed(b"one hun") == b""
    assert lines.feed(b"ter2\ntwo") == b"one <secret-1>\n"
    assert lines.close() == b"two"


def test_a_value_over_two_lines_is_waited_for() -> None:
    lines = stream("hunter2-and-more")
    assert lines.feed(b"start\nentry hunter2-\n") == b"start\n"
    assert lines.feed(b"and-more end\n") == b"entry <secret-1> end\n"


def test_a_key_that_comes_in_pieces_goes_out_as_one() -> None:
    lines = stream()
    body = [b"MIIE" + b"Ab1/" * 15 for _ in range(6)]
    out = b"".join(lines.feed(b"x\n") for _ in range(1))
    out += lines.feed(b"-----BEGIN PRIVATE KEY-----\n")
    for line in body:
        out += lines.feed(line + b"\n")
    out += lines.feed(b"-----END PRIVATE KEY-----\ny\n") + lines.close()
    assert out == b"x\n<secret-1>\ny\n"


def test_an_endless_line_is_bounded_and_clean() -> None:
    lines = stream("hunter2", hold=4096)
    out, largest = b"", 0
    for _ in range(200):
        out += lines.feed(b"abc hunter2 def " * 20)
        largest = max(largest, len(lines._bytes) + len(lines._held))
    out += lines.close()
    assert b"hunter2" not in out
    assert out.count(b"<secret-1>") == 4000
    assert largest < 16_384


def test_pieces_of_any_size_give_the_same() -> None:
    text = ("0.01.111.111 I srv  f: password=Zx81 \xff é\n" * 40).encode("utf-8", "surrogateescape")
    r = random.Random(5)
    lines, out, at = stream("x7q"), b"", 0
    while at < len(text):
        size = r.randint(1, 50)
        out += lines.feed(text[at : at + size])
        at += size
    out += lines.close()
    assert out == text.replace(b"Zx81", b"<secret-1>")


def test_bytes_that_are_no_text_pass() -> None:
    lines = stream("hunter2")
    assert lines.feed(b"\xff\xfe hunter2 \x80\n") == b"\xff\xfe <secret-1> \x80\n"
