"""Find runbooks and read them: shipped ones, and the operator's own in a folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import msgspec

from llamaops.errors import InputFileError, UsageError
from llamaops.runbook.document import Runbook
from llamaops.runbook.yaml_shape import Document, Problem, parse, read_file
from llamaops.system import paths

OWN_FOLDER = "runbooks"
FOLDER_VARIABLE = "LLAMAOPS_RUNBOOKS"


class Found(msgspec.Struct, frozen=True):
    """A file that may hold a runbook."""

    id: str
    path: str
    own: bool


class Loaded(msgspec.Struct, frozen=True):
    """A runbook that was read."""

    runbook: Runbook
    document: Document[Runbook]
    path: str
    sha256: str


def shipped_folder() -> str:
    """Return the folder of the runbooks that come with llamaops."""
    return os.path.join(os.path.dirname(__file__), "shipped")  # noqa: PTH118, PTH120 - one name beside this file


def own_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the operator's own runbooks, whether it exists or not."""
    return paths.expanded(environ.get(FOLDER_VARIABLE) or OWN_FOLDER)


def find_shipped() -> list[Found]:
    """Return the runbooks that come with llamaops, by id."""
    return _in_folder(shipped_folder(), own=False)


def find_all(environ: Mapping[str, str]) -> list[Found]:
    """Return every runbook, by id; the operator's own hides a shipped one of the same name.

    Raises: UsageError where the folder named by LLAMAOPS_RUNBOOKS cannot be read.
    """
    found = {item.id: item for item in find_shipped()}
    try:
        found |= {item.id: item for item in _in_folder(own_folder(environ), own=True)}
    except OSError as error:
        if FOLDER_VARIABLE in environ:
            raise UsageError(
                f"cannot list {FOLDER_VARIABLE} {own_folder(environ)}: {error.strerror}"
            ) from error
    return [found[name] for name in sorted(found)]


def find(name: str, environ: Mapping[str, str]) -> str:
    """Return the path of a runbook that is named by its id or its path.

    Raises: UsageError with the nearest name.
    """
    import difflib

    if name.endswith((".yaml", ".yml")) or "/" in name:
        return paths.expanded(name)
    known = {item.id: item.path for item in find_all(environ)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "`llamaops runbook list` shows what there is"
    raise UsageError(f"there is no runbook {name}", hint=hint)


def load(path: str) -> Loaded:
    """Read a runbook.

    Raises: InputFileError with every error and its place.
    """
    content = read_file(path)
    read = parse(content, Runbook)
    if isinstance(read, list):
        raise InputFileError(
            shown(path, read), hint="`llamaops runbook lint` checks a runbook while it is written"
        )
    return Loaded(read.value, read, path, hashlib.sha256(content).hexdigest())


def shown(path: str, problems: list[Problem]) -> str:
    """Return problems as lines that editors can follow."""
    return "\n".join(problem.shown(path) for problem in problems)


def _in_folder(folder: str, *, own: bool) -> list[Found]:
    names = [name for name in sorted(os.listdir(folder)) if name.endswith((".yaml", ".yml"))]  # noqa: PTH208
    return [Found(name.rsplit(".", 1)[0], paths.joined(folder, name), own) for name in names]
