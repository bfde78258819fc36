"""`llamaops redact`: a filter that takes secrets and identifiers out of any text."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llamaops.record.redact import Redactor

MIB = 1024 * 1024
MOST_BYTES = 64 * MIB
_CHUNK = 65_536


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "redact",
        help="take secrets and identifiers out of a text",
        description="Copy a text to standard output without secrets, user and host names and addresses. "
        "Values of environment variables with telling names (such as LLAMA_API_KEY or HF_TOKEN) and of key "
        "files are removed wherever and however they are written; equal values become equal placeholders.",
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="a text; - is standard input")
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        action="append",
        default=[],
        help="a file with values to remove, one a line (may be repeated)",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="line by line, for a log that goes on; without it the whole text is read first, up to 64 MiB",
    )
    parser.add_argument("--summary", action="store_true", help="say on standard error what was replaced")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises: InputFileError.
    """
    from llamaops.cli.output import redactor_for

    redactor = redactor_for(args, args.secret_file)
    source = _open(args.file)
    try:
        parts = _streamed(source, redactor) if args.stream else _whole(source, args.file, redactor)
        for part in parts:
            sys.stdout.buffer.write(part)
            if args.stream:
                sys.stdout.buffer.flush()
        sys.stdout.buffer.flush()
    finally:
        if source is not sys.stdin.buffer:
            source.close()
    if args.summary:
        _summarize(redactor)
    return 0


def _open(path: str) -> BinaryIO:
    from pathlib import Path

    from llamaops.errors import InputFileError

    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputFileError(
            f"cannot read {path}: {error.strerror}", hint="name a text file, or -"
        ) from error


def _whole(source: BinaryIO, name: str, redactor: Redactor) -> Iterator[bytes]:
    from llamaops.errors import InputFileError

    data = source.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputFileError(f"{name} is larger than {MOST_BYTES // MIB} MiB", hint="use --stream")
    for part in entries(data.decode("utf-8", "surrogateescape")):
        yield redactor.text(part).encode("utf-8", "surrogateescape") if not is_mark(part) else part.encode()
        redactor.forget()


def is_mark(line: str) -> bool:
    """Say whether a line only says which entry begins."""
    return line.startswith("=====ENTRY ") and line.rstrip("\r\n").endswith("=====") and "\n" not in line[:-1]


def entries(text: str) -> Iterator[str]:
    """Yield the marks and what stands between them, all together the text.

    Entries have nothing to do with one another: a value cannot begin in one and end in the next.
    """
    at = start = 0
    while (at := text.find("=====ENTRY ", at)) >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        if (at == 0 or text[at - 1] == "\n") and is_mark(text[at:end]):
            if start < at:
                yield text[start:at]
            yield text[at:end]
            start = end
        at = end
    if start < len(text):
        yield text[start:]


def _streamed(source: BinaryIO, redactor: Redactor) -> Iterator[bytes]:
    from llamaops.record.stream import LineRedactor

    lines = LineRedactor(redactor)
    read = getattr(source, "read1", source.read)
    while chunk := read(_CHUNK):
        yield lines.feed(chunk)
    yield lines.close()


def _summarize(redactor: Redactor) -> None:
    counts: dict[str, int] = {}
    for item in redactor.removed:
        counts[item.rule] = counts.get(item.rule, 0) + item.count
    for rule, count in sorted(counts.items()):
        sys.stderr.write(f"{rule}: {count}\n")
