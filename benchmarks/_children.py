"""Run a command as a child and take what the kernel says about it: CPU time, wall time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Cost(NamedTuple):
    """What one run of a command took."""

    cpu_ms: float
    """User and system time, from wait4."""
    wall_ms: float
    peak_mib: float
    """The largest resident set."""
    status: int


def run(argv: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Run a command once, its streams on the null device.

    Raises: OSError when it cannot start.
    """
    null = os.open(os.devnull, os.O_RDWR)
    began = time.monotonic()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1, 2)]
        child = os.posix_spawn(argv[0], list(argv), environment, file_actions=actions)
    finally:
        os.close(null)
    _, status, usage = os.wait4(child, 0)
    return Cost(
        cpu_ms=1000 * (usage.ru_utime + usage.ru_stime),
        wall_ms=1000 * (time.monotonic() - began),
        peak_mib=usage.ru_maxrss / 1024,
        status=os.waitstatus_to_exitcode(status),
    )


def rounds(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], count: int
) -> dict[str, list[Cost]]:
    """Run every command in turn, round by round, so that a busy machine slows all of them alike.

    The first round fills caches and is not counted.
    """
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(count + 1):
        for name, argv in commands.items():
            cost = run(argv, environment)
            if number:
                found[name].append(cost)
    return found


def environment(**more: str) -> dict[str, str]:
    """Return our environment; compiled modules are cached, as they are after an installation."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**ours, **more}
