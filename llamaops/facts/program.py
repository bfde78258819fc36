"""Which file really executes when a path is run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from llamaops.facts.discovery import speaks_of_llama
from llamaops.facts.elf import MAGIC
from llamaops.facts.libraries import OWN
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system.ports import System
from llamaops.system.watch import Program

_INTERPRETERS = r"(?:ba|da|z|k|a|fi)?sh|busybox|python[\d.]*|pypy[\d.]*|perl|ruby|node|env|uv"
_RELAY_NAMES = (
    "docker|podman|nerdctl|ssh|flatpak|flatpak-spawn|snap|toolbox|distrobox|kubectl|apptainer|singularity"
)
_RELAYS = re.compile(rf"(?:^|/)(?:{_RELAY_NAMES})$")
"""Programs that run another one where we cannot see it."""
_OTHERS = re.compile(rf"(?:^|/)(?:{_INTERPRETERS}|{_RELAY_NAMES})$")
"""Programs that may speak of llama.cpp (a shell has our argument in its memory) and are not it."""
_LOADERS = re.compile(r"ld(?:-linux|-musl)?[\w.-]*\.so[\d.]*$|ld\.so$")
SCRIPT_LIMIT_BYTES = 256 * 1024


class Start(msgspec.Struct, frozen=True):
    """How a file begins."""

    kind: str
    """`elf`, `script`, `other` or `unreadable`."""
    script: str = ""
    detail: str = ""


def read_start(system: System, real_path: str) -> Start:
    """Look at the first bytes of a file."""
    try:
        with system.open_regular(real_path) as file:
            first = file.read_at(0, 4)
            if first == MAGIC:
                return Start("elf")
            if first[:2] == b"#!":
                return Start("script", file.read_at(0, SCRIPT_LIMIT_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        return Start("unreadable", detail=error.strerror or str(error))
    return Start("other", detail="neither an ELF file nor a script")


def identify(system: System, real_path: str, start: Start, seen: Sequence[Program], probe: str) -> Fact[str]:
    """Return the file that executes: the file itself, or what a script was seen to run, or says it runs."""
    if start.kind == "elf":
        return Known(value=real_path, source=Source(kind="file", name=real_path))
    if start.kind == "unreadable":
        return Unknown(
            why="refused" if "ermission" in start.detail else "failed",
            detail=f"{real_path}: {start.detail}",
            source=Source(kind="file", name=real_path),
        )
    watched = Source(kind="command", name=f"{probe} (its processes in /proc)")
    relay = next((item for item in seen if _RELAYS.search(item.executable)), None)
    program = choose(system, seen)
    if program is not None:
        return Known(value=program, source=watched)
    if relay is not None:
        return Unknown(
            why="unsupported",
            detail=f"{real_path} hands over to {relay.executable}: what runs there cannot be seen from here",
            source=watched,
        )
    target = exec_target(system, real_path, start.script)
    if target is not None:
        return Known(value=target, source=Source(kind="file", name=f"the exec line of {real_path}"))
    return Unknown(
        why="failed",
        detail=f"{real_path} is a {start.kind}; what it runs was neither seen nor plain from its text",
        source=watched,
    )


def choose(system: System, seen: Sequence[Program]) -> str | None:
    """Return the program among those seen that is llama.cpp's; None rather than a doubtful one.

    It has llama.cpp's libraries mapped (an interpreter with bindings may be it too), or, when they are
    part of it, its file speaks of llama.cpp. `setsid`, `cat` and their like are seen as well, and are not.
    """
    own = [item for item in seen if any(OWN.match(os.path.basename(path)) for path in item.mapped)]
    if own:
        return _file_of(own[-1])
    others = [item for item in seen if not _OTHERS.search(item.executable)]
    files = [path for item in others if (path := _file_of(item)) is not None]
    return next((path for path in reversed(files) if speaks_of_llama(system, path)), None)


def _file_of(item: Program) -> str | None:
    """Return the file that a process runs; behind the loader (nix, guix, AppImage) the first one mapped."""
    if _LOADERS.search(item.executable):
        return next((path for path in item.mapped if not re.search(r"\.so[\d.]*$", path)), None)
    return item.executable.removesuffix(" (deleted)")


def exec_target(system: System, real_path: str, script: str) -> str | None:
    """Return the file that a plain shell wrapper executes, when its text leaves no doubt.

    Understood are assignments of literal folders, the usual ways to say "the folder of this script", and
    one last `exec` or command line with a path and "$@". Anything else gives None.
    """
    first = script.split("\n", 1)[0]
    if not re.search(r"\b(?:ba|da|z|k|a)?sh\b", first):
        return None
    values = {"0": real_path, "HOME": system.environ.get("HOME", "$HOME")}
    targets = []
    for raw in script.split("\n")[1:]:
        line = _substitute(raw.strip(), real_path)
        if not line or line.startswith("#"):
            continue
        assigned = re.match(r"(?:export\s+|local\s+|readonly\s+)?(\w+)=(.*)$", line)
        if assigned and not re.search(r'\s"?\$@', line):
            values[assigned[1]] = _expand(assigned[2], values)
        elif re.search(r'"\$@"|\$@|"\$\{@\}"', line):
            targets.append(_command_word(line, values))
    if len(targets) != 1 or targets[0] is None or "$" in targets[0]:
        return None
    path = os.path.normpath(targets[0]) if targets[0].startswith("/") else system.which(targets[0])
    if path is None:
        return None
    path = system.realpath(path)
    is_program = read_start(system, path).kind == "elf" and not _OTHERS.search(path)
    return path if is_program and speaks_of_llama(system, path) else None


_OWN_FOLDER_WORDS = re.compile(
    r"\$?\(|\)|\"|'|\b(?:cd|pwd|dirname|readlink|realpath)\b|\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?"
    r"|-f\b|-P\b|-e\b|--|&&|;|\d?>\s*/dev/null|2>&1|\s+"
)
"""Everything that the usual ways to say "the folder of this script" are made of."""


def _substitute(text: str, real_path: str) -> str:
    """Replace each `$(...)` that names the script or its folder; others stay, and leave doubt."""
    text = re.sub(r"\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}", os.path.dirname(real_path), text)
    start = text.find("$(")
    while start >= 0:
        depth, end = 0, len(text)
        for place in range(start + 1, len(text)):
            depth += (text[place] == "(") - (text[place] == ")")
            if depth == 0:
                end = place + 1
                break
        inner = text[start:end]
        if _OWN_FOLDER_WORDS.sub("", inner) == "" and re.search(r"\$\{?(?:0|BASH_SOURCE)", inner):
            path = real_path
            for _level in range(inner.count("dirname")):
                path = os.path.dirname(path)
            text = text[:start] + path + text[end:]
        start = text.find("$(", start + 1)
    return text


def _expand(text: str, values: dict[str, str]) -> str:
    text = text.strip().strip("\"'")
    return re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda found: values.get(found[1] or found[2], found[0]), text)


def _command_word(line: str, values: dict[str, str]) -> str | None:
    """Return the program of a command line, behind `exec`, `env` and assignments."""
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        return None
    while words and (words[0] in {"exec", "env", "nice", "time"} or re.match(r"\w+=", words[0])):
        words.pop(0)
    if not words or words[0] in {"if", "set", "for", "while", "case", "echo", "shift", "eval", "["}:
        return None
    return _expand(words[0], values)
