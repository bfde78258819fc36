"""Parts of a situation that this host has: a unit's journal, and a process. Bounded and read-only."""

from __future__ import annotations

import os
import re

from llamaops.diagnosis.parts import Part
from llamaops.errors import UsageError
from llamaops.schema.bounds import MIB, Bounds
from llamaops.system.machine import Machine
from llamaops.system.process import NotStarted

JOURNAL_LINES = 20_000
BOUNDS = Bounds(wall_s=30, keep_bytes=8 * MIB, total_bytes=64 * MIB)
SHOWN = (
    "ExecStart,Environment,EnvironmentFiles,MemoryMax,MemoryPeak,LimitMEMLOCK,LimitNOFILE,LimitAS,TasksMax,"
    "CPUQuotaPerSecUSec,ProtectHome,PrivateDevices,User,Result,NRestarts,ExecMainCode,ExecMainStatus"
)
_VARIABLE = re.compile(r"(?:LLAMA|GGML|CUDA|HIP|ROCR|HSA|NVIDIA|VK|ONEAPI|AIP|OMP|GOMP)_?\w*=")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW")


def parts_of_unit(machine: Machine, unit: str) -> list[Part]:
    """Return the end of a unit's journal and its settings.

    Raises: UsageError for what is no name of a unit, and where there is no journal to read.
    """
    if not re.fullmatch(r"[\w@.:\\-]{1,255}", unit) or unit.startswith("-"):
        raise UsageError(f"{unit} is not the name of a unit")
    journal = machine.run(
        ["journalctl", f"--unit={unit}", "--lines", str(JOURNAL_LINES), "--output=short-iso", "--no-pager"],
        bounds=BOUNDS,
    )
    if isinstance(journal.end, NotStarted):
        raise UsageError("journalctl is not installed here", hint="give the log as a file, or by pipe")
    parts = [Part("log", f"journal of {unit}", journal.stdout.text, note=journal.stderr.text[:300] or None)]
    for argv, kind, name in (
        (["systemctl", "cat", "--no-pager", unit], "unit-file", f"unit {unit}"),
        (["systemctl", "show", "--no-pager", f"--property={SHOWN}", unit], "inspect", f"state of {unit}"),
    ):
        done = machine.run(argv, bounds=BOUNDS)
        if done.stdout.text.strip():
            parts.append(Part(kind, name, done.stdout.text))
    return parts


def parts_of_process(machine: Machine, pid: int) -> list[Part]:
    """Return what /proc says of a process: command line, limits, memory, variables of the engine, its log.

    Raises: UsageError for a process that is not there.
    """
    root = f"/proc/{pid}"
    try:
        argv = machine.read_text(f"{root}/cmdline", limit_bytes=256 * 1024)
    except OSError as error:
        raise UsageError(f"no process {pid} can be read: {error.strerror}") from error
    parts = [Part("command", f"command line of {pid}", argv.replace("\0", " ").strip())]
    facts = []
    for name in ("limits", "status", "cgroup", "oom_score"):
        text = _read(machine, f"{root}/{name}")
        if text:
            facts.append(f"$ cat /proc/PID/{name}\n{text}")
    parts.append(Part("host-facts", f"limits of {pid}", "\n".join(facts)))
    variables = [v for v in _read(machine, f"{root}/environ").split("\0") if _VARIABLE.match(v)]
    if variables:
        parts.append(Part("env", f"environment of {pid}", "\n".join(map(_masked, variables))))
    log = _log_of(machine, root)
    if log is not None:
        parts.append(log)
    return parts


def _read(machine: Machine, path: str) -> str:
    try:
        return machine.read_text(path, limit_bytes=256 * 1024)
    except OSError:
        return ""


def _masked(variable: str) -> str:
    name, _, value = variable.partition("=")
    return f"{name}=${name}" if _SECRET_NAME.search(name) and value else variable


def _log_of(machine: Machine, root: str) -> Part | None:
    """Return the end of the file that standard error (or output) goes to."""
    for number in (2, 1):
        path = machine.realpath(f"{root}/fd/{number}")
        try:
            size = machine.stat(path).st_size
            if path.startswith("/proc/") or not os.path.isfile(path):  # noqa: PTH113 - strings throughout
                continue
            start = max(0, size - 8 * MIB)
            data = machine.read_bytes(path, limit_bytes=8 * MIB, offset=start)
        except OSError:
            continue
        note = "the last 8 MiB only" if start else None
        return Part("log", "its log", data.decode("utf-8", "replace"), note=note)
    return None
