"""The only code that prints or picks an exit status.

Results go to standard output, everything else to standard error. Whatever is printed went through the
redactor; `--format json` prints exactly one document, also for an error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from llamaops.errors import ExitStatus, Interrupted, LlamaopsError

if TYPE_CHECKING:
    from llamaops.operations.session import Event, Finished, Observer
    from llamaops.record.redact import Redactor
    from llamaops.render.line import Line

FORMATS = ("text", "json", "markdown")


def redactor_for(
    args: argparse.Namespace | None, files: Iterable[str] = (), private: Iterable[str] = ()
) -> Redactor:
    """Return the redactor of this process: secrets of the environment, the arguments and key files.

    Args:
        args: The parsed command line; its words are searched for secrets.
        files: Key files.
        private: Further texts that must not be recorded, such as the operator's own prompt.
    """
    from llamaops.record.redact import Redactor
    from llamaops.record.secrets import collect_secrets

    words = list(getattr(args, "words", None) or sys.argv[1:])
    secrets = collect_secrets(os.environ, words, list(files))
    return Redactor(secrets._replace(values=(*secrets.values, *private)))


def print_error(message: str, args: argparse.Namespace | None = None) -> None:
    """Print an error as one line (or more, where a file has several), redacted, on standard error."""
    from llamaops.render.inert import inert

    try:
        text = redactor_for(args).text(message)
    except Exception:  # noqa: BLE001 - an error about an error must still not leak or trace back
        text = "an error whose message could not be redacted"
    for line in inert(text).splitlines() or [""]:
        sys.stderr.write(f"llamaops: {line}\n")


def guarded(run: Callable[[], int], args: argparse.Namespace) -> int:
    """Run a command; turn whatever it raises into one line and an exit status."""
    from llamaops.system import guard

    try:
        status = run()
        sys.stdout.flush()
    except LlamaopsError as error:
        return _failed(str(error), error.status, args)
    except (Interrupted, KeyboardInterrupt):
        guard.stop_run()
        return _failed("interrupted before a record was begun", ExitStatus.INTERRUPTED, args)
    except BrokenPipeError:
        # Whoever read our output has gone; the record is written, so this is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.BROKE)
    except Exception as error:  # noqa: BLE001 - the last resort: a defect is one line, not a traceback
        return _broke(error, args)
    finally:
        guard.farewell()
    return status


def _failed(message: str, status: ExitStatus, args: argparse.Namespace) -> int:
    print_error(message, args)
    if getattr(args, "format", "text") == "json":
        from llamaops.record.record import Document

        text = redactor_for(args).text(message)
        document: Document[object] = Document(command=args.command, exit_status=int(status), error=text)
        write_json(document)
    return int(status)


def _broke(error: Exception, args: argparse.Namespace) -> int:
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119 - one name, no pathlib
    if os.environ.get("LLAMAOPS_DEBUG"):
        print_error("".join(traceback.format_exception(error)), args)
    return _failed(
        f"llamaops itself broke: {type(error).__name__}: {error} (at {place}); "
        "run again with LLAMAOPS_DEBUG=1 and report the output",
        ExitStatus.BROKE,
        args,
    )


def write_json(document: object) -> None:
    """Print one JSON document."""
    import msgspec

    try:
        encoded = msgspec.json.encode(document)
    except UnicodeEncodeError:  # a path or an argument of the operator's that is no UTF-8
        from llamaops.record.writable import writable

        encoded = msgspec.json.encode(writable(msgspec.to_builtins(document)))
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def observer_for(args: argparse.Namespace) -> Observer | None:
    """Return what shows progress on standard error, or None where nobody is there to read it."""
    if args.quiet:
        return None

    def show(event: Event) -> None:
        from llamaops.render.inert import one_line

        if event.kind == "finding" and event.state in {"passed", "not_run"}:
            return
        mark = {"step": "…", "note": " ", "boundary": "=", "finding": "!"}[event.kind]
        state = f"{event.state.replace('_', ' ')} " if event.state else ""
        try:
            sys.stderr.write(f"{mark} {state}{one_line(event.text, 240)}\n")
            sys.stderr.flush()
        except OSError:
            return  # nobody reads; the record has it all

    return show


def show_finished(finished: Finished, args: argparse.Namespace) -> int:
    """Print a run's result in the form asked for, and return its exit status."""
    from llamaops.record.record import Document
    from llamaops.render.view import view

    if args.format == "json":
        document = Document(
            command=args.command,
            exit_status=int(finished.status),
            record=view(finished.redacted),
            path=redactor_for(args).text(str(finished.folder)),
        )
        write_json(document)
    elif args.format == "markdown":
        from llamaops.render.markdown_text import render_markdown

        sys.stdout.write(render_markdown(finished.redacted))
    else:
        from llamaops.record.writable import writable
        from llamaops.render.summary import render_summary

        # The path is shown as it is: the operator has to find the folder, and it is on his own screen.
        print_lines(render_summary(finished.redacted, folder=writable(str(finished.folder))))
    return int(finished.status)


def print_lines(lines: Iterable[Line]) -> None:
    """Print styled lines: with rich on a terminal, plain elsewhere."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        sys.stdout.write("".join(f"{line.text}\n" for line in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))


def write(text: str) -> None:
    """Print a text that a renderer made."""
    sys.stdout.write(text)
