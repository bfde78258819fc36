"""Open a session for a command, run its operation, and print what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from llamaops.cli import options, output
from llamaops.errors import ExitStatus, Interrupted, LlamaopsError

if TYPE_CHECKING:
    from llamaops.facts.settings import SettingsFacts
    from llamaops.operations.interrupts import Interrupts
    from llamaops.operations.session import Finished, Session
    from llamaops.operations.settings import Settings
    from llamaops.system.machine import Machine


def resolve(args: argparse.Namespace, names: Iterable[str]) -> tuple[Settings, SettingsFacts]:
    """Resolve the settings of a command."""
    import os

    from llamaops.operations.settings import resolve as from_everywhere

    wanted = tuple(dict.fromkeys((*names, "records")))
    return from_everywhere(options.given(args, wanted), os.environ, names=wanted)


def perform(
    args: argparse.Namespace,
    settings: Settings,
    settings_facts: SettingsFacts,
    operation: Callable[[Session, Machine], str | None],
    *,
    key_files: Iterable[str] = (),
    private: Iterable[str] = (),
) -> int:
    """Run an operation in a session of its own, write its record, print it, and return the exit status.

    The operation returns how it ended, in a sentence, or None for the usual. Whatever way it ends,
    children are stopped and the record is written.
    """
    import os

    from llamaops.operations.interrupts import interruptible
    from llamaops.operations.session import Session
    from llamaops.record.store import records_folder
    from llamaops.system.machine import Machine
    from llamaops.system.paths import expanded

    accepted = options.accepted(args)
    records = expanded(settings.records) if settings.records else records_folder(os.environ)
    redactor = output.redactor_for(args, key_files, private)
    with interruptible() as interrupts, Machine() as machine:
        interrupts.hold()  # a record that was begun is always ended
        session = Session(
            args.command, args.words, machine, redactor, records, observer=output.observer_for(args)
        )
        session.accepted = accepted
        try:
            session.add("settings", settings_facts)
            finished = _finish(session, operation, machine, interrupts)
        finally:
            session.close()
    return output.show_finished(finished, args)


def _finish(
    session: Session,
    operation: Callable[[Session, Machine], str | None],
    machine: Machine,
    interrupts: Interrupts,
) -> Finished:
    from llamaops.system import guard

    try:
        interrupts.release()
        ended = operation(session, machine)
        interrupts.shield()
    except Interrupted as stop:
        guard.stop_run()
        return session.finish(f"interrupted by {stop}", interrupted=True)
    except LlamaopsError as error:
        interrupts.shield()
        guard.stop_run()
        session.finish(f"refused: {error}", status=error.status)
        raise
    except BaseException:
        interrupts.shield()
        guard.stop_run()
        session.finish("llamaops itself broke; see its error message", status=ExitStatus.BROKE)
        raise
    return session.finish(ended or "ended by itself")
