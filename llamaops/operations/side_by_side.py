"""Run independent probes at the same time, and leave none running when interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llamaops.system import guard, parallel


def side_by_side(
    tasks: Mapping[str, Callable[[], Any]], *, done: Callable[[str, Any], None] | None = None
) -> dict[str, Any]:
    """Run each task in a thread of its own and return the results by name.

    Args:
        tasks: Name to task, started in this order: the one that takes longest comes first.
        done: Called in this thread with each name and result, the last one first.

    Raises: what a task raised (a defect of ours). When we are interrupted, every child of this run is
    killed first, so that no thread goes on.
    """
    pending = {name: parallel.start(task) for name, task in tasks.items()}
    results: dict[str, Any] = {}
    try:
        for name in reversed(pending):
            results[name] = pending[name].result()
            if done is not None:
                done(name, results[name])
    except BaseException:
        guard.stop_run()
        raise
    return results
