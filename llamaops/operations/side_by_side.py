"""Run independent probes at the same time, and leave none running when interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llamaops.system import guard, parallel


def side_by_side(tasks: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Run each task in a thread of its own and return the results by name.

    Raises: what a task raised (a defect of ours). When we are interrupted, every child of this run is
    killed first, so that no thread goes on.
    """
    pending = {name: parallel.start(task) for name, task in tasks.items()}
    try:
        return {name: call.result() for name, call in pending.items()}
    except BaseException:
        guard.stop_run()
        raise
