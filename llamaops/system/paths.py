"""Paths as plain strings, for the modules that every command loads: pathlib and what it loads cost 5 ms."""

from __future__ import annotations

import os

AnyPath = str | os.PathLike[str]


def joined(folder: AnyPath, *names: str) -> str:
    """Return the path of a name in a folder."""
    return os.path.join(folder, *names)


def expanded(path: AnyPath) -> str:
    """Return the path with a leading `~` replaced, where the home folder is known."""
    return os.path.expanduser(path)


def parent(path: AnyPath) -> str:
    """Return the folder that a path lies in."""
    return os.path.dirname(path) or "."


def name(path: AnyPath) -> str:
    """Return the last part of a path."""
    return os.path.basename(os.path.normpath(path))


def is_there(path: AnyPath) -> bool:
    """Say whether a path leads to anything."""
    return os.path.exists(path)


def is_file(path: AnyPath) -> bool:
    """Say whether a path leads to a regular file."""
    return os.path.isfile(path)


def is_folder(path: AnyPath) -> bool:
    """Say whether a path leads to a folder."""
    return os.path.isdir(path)


def folders_in(path: AnyPath) -> list[str]:
    """Return the paths of the folders in a folder, sorted.

    Raises: OSError.
    """
    with os.scandir(path) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir())
