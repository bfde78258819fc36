"""Let an installed engine project its own memory, and end it before it loads anything.

Source: llama-server prints a memory breakdown (of a run without allocation) before it loads, at a verbosity
that shows it; llama-fit-params prints the same for a program that reserves results for a whole batch.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from llamaops.estimate.fit_facts import EngineAnswer
from llamaops.facts.binary_probe import ask, read_help
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Source, Unknown, known
from llamaops.system.free_port import free_port
from llamaops.system.machine import Machine
from llamaops.system.server_process import ServerProcess, StopPolicy

if TYPE_CHECKING:
    from llamaops.facts.capabilities import Capabilities
    from llamaops.launch.settings import LaunchSettings

WAIT_S = 60.0
MOST_LINES = 64
MOST_ERROR = 200
FIT_PARAMS = "llama-fit-params"
_ENDS = ("projected to use", "load_tensors: loading", "listening on", "failed to fit params")


def ask_engine(
    machine: Machine, program: str, model_path: str, settings: LaunchSettings
) -> Fact[EngineAnswer]:
    """Return what the engine projects; it is stopped as soon as its projection is out.

    Raises: nothing for what the engine does.
    """
    speaks_for = Path(program).name
    capabilities = read_help(ask(machine, program, "--help"))
    if isinstance(capabilities, Unknown):
        return msgspec.structs.replace(
            capabilities,
            detail=f"no flag is passed to a program whose --help cannot be read: {capabilities.detail}",
        )
    argv, lacking = projection_argv(program, model_path, settings, free_port("127.0.0.1"), capabilities.value)
    source = Source(kind="command", name=" ".join(argv))
    if lacking:
        return Unknown(
            why="unsupported",
            detail=f"{speaks_for} has no {' and no '.join(lacking)}: it cannot be asked for the same load",
            source=capabilities.source,
        )
    lines: list[str] = []
    errors: list[str] = []
    done = threading.Event()

    def on_line(line: str) -> None:
        if "memory breakdown" in line or "|   - " in line:
            lines.append(line)
        if "error" in line.lower() and not errors:
            errors.append(line.strip()[:MOST_ERROR])
        if any(mark in line for mark in _ENDS) or len(lines) >= MOST_LINES:
            done.set()
            process.changed.set()

    process = ServerProcess(
        argv,
        env=machine.child_environment(),
        keep_bytes=MIB,
        on_line=on_line,
        policy=StopPolicy(first_s=1.0, second_s=0.5),
    )
    with process:
        if process.start() is not None:
            return Unknown(why="failed", detail=f"{program} did not start", source=source)
        deadline = machine.clock.monotonic() + WAIT_S
        while not done.is_set() and process.poll() is None and machine.clock.monotonic() < deadline:
            process.wait_change(0.5)
        process.stop()
        for evidence in process.evidence():
            machine.keep(evidence)
    answer = read_breakdown(lines, program, source, is_fit_params=speaks_for.startswith(FIT_PARAMS))
    if isinstance(answer, Unknown) and errors:
        return msgspec.structs.replace(answer, detail=f"{program} printed no projection but: {errors[0]}")
    return answer


def projection_argv(
    program: str, model_path: str, settings: LaunchSettings, port: int, capabilities: Capabilities
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the command line that makes an engine print its projection, and the flags that it lacks for it.

    What only saves time is left out where the program's help does not have it.
    """
    words: list[tuple[str, ...]] = [("-m", model_path), ("-lv", "4")]
    if not Path(program).name.startswith(FIT_PARAMS):
        words += [("--host", "127.0.0.1"), ("--port", str(port))]
        words += [("--no-warmup",)] if capabilities.has("--no-warmup") else []
    words += [
        (flag, str(value))
        for flag, value in (
            ("-c", settings.ctx_size), ("-np", settings.parallel), ("-b", settings.batch_size),
            ("-ub", settings.ubatch_size), ("-fa", settings.flash_attn), ("-ctk", settings.cache_type_k),
            ("-ctv", settings.cache_type_v), ("-ngl", settings.n_gpu_layers),
        )
        if value is not None
    ]  # fmt: skip
    if settings.kv_unified is not None:
        words.append(("-kvu",) if settings.kv_unified else ("-no-kvu",))
    if settings.embeddings:
        words.append(("--embeddings",))
    lacking = tuple(flag for flag, *_ in words if not capabilities.has(flag))
    return (program, *(word for group in words for word in group)), lacking


def read_breakdown(
    lines: list[str], program: str, source: Source, *, is_fit_params: bool = False
) -> Fact[EngineAnswer]:
    """Add up the rows of the last breakdown: `self = model + context + compute`, one for each place."""
    import re

    last = max((i for i, line in enumerate(lines) if "memory breakdown" in line), default=-1)
    rows = [
        [int(number) for number in found[-1]]
        for line in lines[last + 1 :]
        if (found := re.findall(r"(\d+)\s*=\s*(\d+)\s*\+\s*(\d+)\s*\+\s*(\d+)", line))
    ]
    if last < 0 or not rows:
        return Unknown(
            why="unsupported",
            detail=f"{program} printed no projection: this build has none, or it failed before",
            source=source,
        )
    return known(
        EngineAnswer(
            program=program,
            front_end="fit-params" if is_fit_params else "server",
            model_mib=sum(row[1] for row in rows),
            context_mib=sum(row[2] for row in rows),
            compute_mib=sum(row[3] for row in rows),
        ),
        source,
    )
