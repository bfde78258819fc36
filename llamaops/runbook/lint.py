"""What is wrong with a runbook that can be read: everything at once, each with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from llamaops.launch.settings import LOOPBACK
from llamaops.runbook.document import MAX_WALL_S, Input, Runbook, Step
from llamaops.runbook.fill import (
    NAME,
    OUTPUTS,
    Values,
    command,
    placeholders,
    texts,
    wrong_pattern,
    wrong_value,
)
from llamaops.runbook.yaml_shape import Document, Problem, parse
from llamaops.schema.boundary import BoundaryName

Accepts = Callable[[tuple[str, ...]], str | None]
"""Says what a llamaops command line gets wrong, or None; the command line's own parser answers."""

WITH_RECORD = {
    "preflight",
    "inspect",
    "verify",
    "fit",
    "diagnose",
    "smoke",
    "serve",
    "canary",
    "expose check",
}
"""Commands of llamaops that write a record and print it as one document."""
LARGEST_STATUS = 255
_LOADED: tuple[BoundaryName, ...] = ("host", "binary", "model_file", "model_load")
_ASKED: tuple[BoundaryName, ...] = ("generated_output", "api_response", "concurrency")
REACH: Mapping[str, tuple[BoundaryName, ...]] = {
    "preflight": ("host", "binary", "model_file"),
    "inspect": ("model_file",),
    "smoke": (*_LOADED, "generated_output"),
    "serve": (*_LOADED, *_ASKED),
    "verify": ("host", *_ASKED),
    "canary": (*_LOADED, "generated_output", "api_response"),
    "expose check": (),
}
"""The rungs that the record of a command can reach."""
SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "busybox", "cmd", "powershell", "pwsh"}
OPERATORS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "|&"}
SECRET_FLAGS = {"--api-key", "-hft", "--hf-token", "--password", "--token"}
_SECRET = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[bp]-)[A-Za-z0-9_-]{8,}"
    r"|-----BEGIN|://[^/\s:@]+:[^/\s@]+@|Bearer [A-Za-z0-9]"
)
_SUBSTITUTION = re.compile(r"\$\(|`|\$[A-Za-z_]")
_OPEN = re.compile(r"\$(?!\{)|\$\{[^}]*\Z")


def lint_file(path: str, content: bytes, accepts: Accepts | None = None) -> list[Problem]:
    """Return everything that is wrong with a runbook's file."""
    read = parse(content, Runbook)
    if isinstance(read, list):
        return read
    problems = list(lint(read, accepts))
    name = os.path.basename(path).rsplit(".", 1)[0]  # noqa: PTH119 - strings throughout
    if read.value.id != name:
        problems.append(read.problem(f"the id {read.value.id} differs from the file's name {name}", "id"))
    return sorted(problems)


def lint(document: Document[Runbook], accepts: Accepts | None = None) -> Iterator[Problem]:
    """Yield everything that is wrong with a runbook."""
    runbook = document.value
    yield from _frame(document)
    for name, declared in runbook.inputs.items():
        yield from _input(document, name, declared)
    used: set[str] = set()
    for index, step in enumerate(runbook.steps):
        yield from _names(document, index, step, used)
        yield from _kind(document, index, step)
        yield from _consent(document, index, step)
        yield from _words(document, index, step)
        yield from _expected(document, index, step)
        if accepts is not None and step.do not in {"command", "manual"}:
            yield from _accepted(document, index, step, accepts)
    for name in runbook.inputs:
        if name not in used:
            yield document.problem(f"the input {name} is not used", "inputs", name)


def _frame(document: Document[Runbook]) -> Iterator[Problem]:
    runbook = document.value
    if not NAME.fullmatch(runbook.id):
        yield document.problem("an id is lower case, digits and hyphens", "id")
    if not runbook.steps:
        yield document.problem("there is no step", "steps")
    if not runbook.not_covered:
        yield document.problem("say what a run that passes does not show", "not_covered")
    seen: set[str] = set()
    for index, step in enumerate(runbook.steps):
        if not NAME.fullmatch(step.id):
            yield document.problem("an id is lower case, digits and hyphens", "steps", index, "id")
        if step.id in seen:
            yield document.problem(f"two steps are called {step.id}", "steps", index, "id")
        if step.fall_back_to is not None:
            yield from _fall_back(document, index, step.fall_back_to)
        seen.add(step.id)


def _fall_back(document: Document[Runbook], index: int, name: str) -> Iterator[Problem]:
    place = ("steps", index, "fall_back_to")
    earlier = next((step for step in document.value.steps[:index] if step.id == name), None)
    if earlier is None:
        yield document.problem(f"{name} is no earlier step", *place)
    elif earlier.changes is not None or earlier.do == "manual" or earlier.background:
        yield document.problem(f"{name} cannot be run once more: it changes something or stays", *place)


def _input(document: Document[Runbook], name: str, declared: Input) -> Iterator[Problem]:
    place = ("inputs", name)
    if not NAME.fullmatch(name):
        yield document.problem("the name of an input is lower case, digits and hyphens", *place)
    if (declared.kind == "choice") != bool(declared.choices):
        yield document.problem("`choices` belong to the kind choice, and it needs them", *place)
    if declared.pattern is not None and (problem := wrong_pattern(declared.pattern)):
        yield document.problem(f"the pattern {problem}", *place, "pattern")
        return
    if declared.default is not None:
        if _SECRET.search(str(declared.default)):
            yield document.problem("this looks like a secret: use a file", *place, "default")
        if declared.optional:
            yield document.problem("an input with a default need not be optional", *place, "optional")
        if problem := wrong_value(declared, str(declared.default)):
            yield document.problem(f"the default {problem}", *place, "default")


def _names(document: Document[Runbook], index: int, step: Step, used: set[str]) -> Iterator[Problem]:
    """Check the placeholders of one step."""
    runbook = document.value
    given = {
        f"steps.{earlier.id}.{output}"
        for earlier in runbook.steps[:index]
        for output in OUTPUTS
        if output != "url" or earlier.background
    }
    for place, text in texts(step):
        if _OPEN.search(text):
            yield document.problem("a $ begins a placeholder: write ${name}", "steps", index, *place)
        for name in placeholders(text):
            used.add(name)
            if name not in runbook.inputs and name not in given:
                yield document.problem(
                    f"${{{name}}} is given by no input and no earlier step", "steps", index, *place
                )


def _kind(document: Document[Runbook], index: int, step: Step) -> Iterator[Problem]:
    """Check that a step has what its kind needs and nothing else."""
    here = ("steps", index)
    allowed = {"command": {"argv", "cwd"}, "manual": {"says"}}.get(step.do, {"args", "options", "flags"})
    for field in ("argv", "cwd", "says", "args", "options", "flags"):
        if getattr(step, field) and field not in allowed:
            yield document.problem(f"{field} does not belong to do: {step.do}", *here, field)
    if step.do == "command" and not step.argv:
        yield document.problem("a command needs its argv", *here)
    if step.do == "manual" and not step.says:
        yield document.problem("a manual step says what has to be done", *here)
    if step.do == "command" and step.bounds is None:
        yield document.problem("a command needs bounds", *here)
    if step.bounds is not None and not 0 < step.bounds.wall_s <= MAX_WALL_S:
        yield document.problem(
            f"wall_s has to be above 0 and at most {MAX_WALL_S}", *here, "bounds", "wall_s"
        )
    if step.background and step.do != "serve":
        yield document.problem("only serve can stay in the background", *here, "background")
    if step.do == "serve" and not step.background and step.options.get("once") is not True:
        yield document.problem("serve needs background: true, or the option once: it would never end", *here)
    host = step.options.get("host", "127.0.0.1")
    if step.do == "serve" and host not in LOOPBACK and "decisions" not in step.options:
        yield document.problem(
            "serving beyond this machine needs the option decisions", *here, "options", "host"
        )
    if step.do in {"command", "manual"} and (step.expect.boundary or step.expect.findings):
        yield document.problem(
            "only a command of llamaops has a record with boundaries and findings", *here, "expect"
        )


def _expected(document: Document[Runbook], index: int, step: Step) -> Iterator[Problem]:
    """Refuse expectations that can never hold, and checks that do not exist."""
    here = ("steps", index, "expect")
    if not step.expect.status or not all(0 <= status <= LARGEST_STATUS for status in step.expect.status):
        yield document.problem(
            f"status is a list of exit statuses from 0 to {LARGEST_STATUS}", *here, "status"
        )
    reach = REACH.get(step.do)
    if step.expect.boundary is not None and reach is not None and step.expect.boundary not in reach:
        said = ", ".join(reach) or "no boundary"
        yield document.problem(
            f"{step.do} never reaches {step.expect.boundary}, only {said}", *here, "boundary"
        )
    for text in {*step.expect.output} & {*step.expect.absent}:
        yield document.problem(f"{text!r} cannot be in the output and absent from it", *here, "absent")
    if step.expect.findings:
        yield from _findings(document, index, step)


def _findings(document: Document[Runbook], index: int, step: Step) -> Iterator[Problem]:
    import difflib

    from llamaops.checks.registry import all_checks

    known = [check.id for check in all_checks()]
    for name in step.expect.findings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield document.problem(
                f"there is no check {name}{hint}", "steps", index, "expect", "findings", name
            )


def _consent(document: Document[Runbook], index: int, step: Step) -> Iterator[Problem]:
    here = ("steps", index)
    if step.do == "command" and step.reads_only == (step.changes is not None):
        yield document.problem("a command says either reads_only: true or what it changes", *here)
    if step.do != "command" and step.reads_only:
        yield document.problem("reads_only belongs to do: command", *here, "reads_only")
    writes = step.do == "expose render" and "output" in step.options
    if (step.do == "fetch" or writes) and step.changes is None:
        yield document.problem(f"{step.do} changes something: say what", *here)


def _words(document: Document[Runbook], index: int, step: Step) -> Iterator[Problem]:
    """Refuse a shell, what only a shell reads, and secrets on a command line."""
    if step.argv:
        programs = [os.path.basename(word) for word in step.argv[:3]]  # noqa: PTH119
        shell = next(
            (name for name in programs[: 3 if programs[0] in {"env", "sudo"} else 1] if name in SHELLS), None
        )
        if shell is not None:
            yield document.problem(
                f"no shell runs in a runbook, and {shell} is one", "steps", index, "argv", 0
            )
    for place, text in texts(step):
        if _SECRET.search(text):
            yield document.problem("this looks like a secret: use a file", "steps", index, *place)
        if place[0] not in {"argv", "flags", "args"}:
            continue
        if text in OPERATORS:
            yield document.problem(
                f"{text} means something to a shell only, and none runs", "steps", index, *place
            )
        elif _SUBSTITUTION.search(text):
            yield document.problem("a shell's substitution does nothing: none runs", "steps", index, *place)
        if text.split("=", 1)[0] in SECRET_FLAGS:
            yield document.problem(
                f"{text.split('=', 1)[0]} shows a secret to every user: use a file", "steps", index, *place
            )


def _accepted(document: Document[Runbook], index: int, step: Step, accepts: Accepts) -> Iterator[Problem]:
    stand_ins = {
        name: "1" if declared.kind == "number" else (declared.choices or ("stand-in",))[0]
        for name, declared in document.value.inputs.items()
    }
    stand_ins |= {
        name: "http://127.0.0.1:1"
        for name, declared in document.value.inputs.items()
        if declared.kind == "url"
    }
    try:
        words = command(step, Values(stand_ins, planned=True))
    except Exception:  # noqa: BLE001 - an unknown placeholder is said above
        return
    if problem := accepts(words):
        yield document.problem(problem, "steps", index)
