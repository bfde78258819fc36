"""All parts together: the facts that rules ask about, each with the line it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from llamaops.diagnosis import exchange
from llamaops.diagnosis.amounts import amounts
from llamaops.diagnosis.bench_rows import bench_facts
from llamaops.diagnosis.command_line import CommandLine, command_lines
from llamaops.diagnosis.expression import Value
from llamaops.diagnosis.nodes import missing_groups
from llamaops.diagnosis.scanned import SHOWN_CHARS, Hit, Scanned
from llamaops.facts.load_log import LoadFacts
from llamaops.schema.fact import Known

_TIMING = re.compile(r"(prompt )?eval time\s*=.*?([\d.]+) tokens per second")
_EXIT = (
    re.compile(r"(?:exited with|exit) (?:code|status)[ =:]*(-?\d{1,10})\b", re.IGNORECASE),
    re.compile(r'"?ExitCode"?[:=] ?(-?\d{1,10})\b'),
    re.compile(r"Main process exited, code=(?:exited|killed|dumped), status=(\d{1,5})/"),
    re.compile(r"\bstatus=(\d{1,5})/[A-Z]"),
    re.compile(r"(?:rc|exit_status|returncode|exit_code)\"?[ =:]+(-?\d{1,10})\b"),
)
_ASKED_STATUS = re.compile(
    r"^\s*\$ .*(?:\.State\.ExitCode|echo \$\?|ExecMainStatus).*\n\s*(?:\w+=)?(-?\d{1,10})\b", re.MULTILINE
)
_TOLD = (
    re.compile(
        r"\b[A-Z0-9_]*(?:API_KEY|TOKEN|SECRET|PASSWORD|PASSWD)[A-Z0-9_]*"
        r"[\"']? ?[=:] ?[\"']?([^\s\"'$<{}\],;]{6,})"
    ),
    re.compile(r"--(?:api-key|hf-token|token|password)[ =][\"']?([^\s\"'$<-][^\s\"'$<]{2,})"),
    re.compile(r"\s-hft[ =]([^\s$<]{6,})"),
    re.compile(r"https?://[^\s/:@]+:([^\s/@$]{4,})@"),
    re.compile(r"[?&](?:api[_-]?key|token|access_token)=([^\s&\"'$]{6,})", re.IGNORECASE),
    re.compile(r"\b(hf_[A-Za-z0-9]{12,}|sk-[A-Za-z0-9_-]{16,})\b"),
)
"""What gives a secret away by its place or its form."""
_BEARER = re.compile(r"bearer[ :]+([^\s\"'$<{]{6,})", re.IGNORECASE)
MAX_SECRET_TEXT = 1_000_000


class Situation(msgspec.Struct):
    """What the parts say together."""

    scans: tuple[Scanned, ...]
    facts: dict[str, Value]
    secrets: tuple[str, ...]
    commands: tuple[CommandLine, ...]
    places: dict[str, Hit] = {}
    """The lines that facts are from, where one line tells a fact."""


NO_SIGNAL = -1
"""The signal of a line that is named for a fact in it."""


def situation_of(scans: Sequence[Scanned]) -> Situation:
    """Collect the facts of all parts."""
    facts: dict[str, Value] = {}
    secrets: list[str] = []
    commands: list[CommandLine] = []
    for scan in scans:
        text = scan.part.text
        if scan.load is not None:
            facts |= _of_log(scan.load)
        for command in command_lines(text, whole=scan.part.kind == "command"):
            commands.append(command)
            secrets += command.secrets
            facts |= _of_command(command)
        secrets += _secrets_in(text[:MAX_SECRET_TEXT])
        if scan.part.kind in {"http-response", "text"}:
            facts |= dict(exchange.facts_of(exchange.answers(text)))
        if scan.part.kind == "http-request":
            facts |= dict(exchange.request_facts(text))
        facts |= dict(_exit_status(text, scan.part.kind))
        facts |= dict(_timings(text))
        if scan.part.kind in {"bench", "inspect", "text"}:
            facts |= dict(bench_facts(text[:MAX_SECRET_TEXT]))
    places = _amounts(scans, facts) | _groups(scans, facts)
    facts["kinds"] = " ".join(sorted({scan.part.kind for scan in scans}))
    hidden = tuple(sorted(set(secrets), key=len, reverse=True))
    return Situation(tuple(scans), facts, hidden, tuple(commands), places)


def _amounts(scans: Sequence[Scanned], facts: dict[str, Value]) -> dict[str, Hit]:
    """Add amounts of memory and counts of cores; one that is told in two ways is not known."""
    seen: dict[str, dict[float, Hit]] = {}
    for index, scan in enumerate(scans):
        kind = scan.part.kind
        for name, value, number, line in amounts(scan.part.text[:MAX_SECRET_TEXT], kind):
            hit = Hit(NO_SIGNAL, index, number, line[:4096], line.strip()[:SHOWN_CHARS], kind)
            seen.setdefault(name, {}).setdefault(round(value, 2), hit)
    known = {name: next(iter(values.items())) for name, values in seen.items() if len(values) == 1}
    facts |= {name: value for name, (value, _) in known.items()}
    sockets, per_socket = facts.get("sockets", 1.0), facts.get("cores_per_socket")
    if isinstance(per_socket, float) and isinstance(sockets, float):
        facts.setdefault("cores_physical", per_socket * sockets)
    return {name: hit for name, (_, hit) in known.items()}


def _groups(scans: Sequence[Scanned], facts: dict[str, Value]) -> dict[str, Hit]:
    """Add the group of a device node that the process is not in."""
    for index, scan in enumerate(scans):
        if scan.part.kind not in {"inspect", "host-facts", "text"}:
            continue
        for group, number, line in missing_groups(scan.part.text[:MAX_SECRET_TEXT]):
            facts["device_group_missing"] = group
            shown = line.strip()[:SHOWN_CHARS]
            return {"device_group_missing": Hit(NO_SIGNAL, index, number, line[:4096], shown, scan.part.kind)}
    return {}


def _secrets_in(text: str) -> list[str]:
    found = [value for pattern in _TOLD for value in pattern.findall(text)]
    # A word after "bearer" may be prose; a key has digits or dashes, or is long.
    found += [v for v in _BEARER.findall(text) if any(c.isdigit() or c in "-_" for c in v)]
    return [value for value in found if not value.startswith(("/", "."))]


def _exit_status(text: str, kind: str) -> Iterable[tuple[str, Value]]:
    tail = text[-65536:]
    # A command whose format asks for the status prints nothing but it.
    for pattern in (*_EXIT, *((_ASKED_STATUS,) if kind in {"inspect", "host-facts"} else ())):
        found = pattern.findall(tail)
        if found:
            yield "exit_status", int(found[-1])
            return


def _timings(text: str) -> Iterable[tuple[str, Value]]:
    for prompt, rate in _TIMING.findall(text[-262144:]):
        yield ("prompt_per_s" if prompt else "eval_per_s"), float(rate)


def _of_command(command: CommandLine) -> dict[str, Value]:
    facts: dict[str, Value] = {f"cmd_{name}": value for name, value in command.flags.items()}
    if command.program is not None:
        facts["program"] = command.program
        facts["has_command"] = True
        for name in (
            "jinja",
            "mmproj",
            "embeddings",
            "reranking",
            "ngl",
            "ctx",
            "host",
            "port",
            "api_key_file",
        ):
            facts[f"has_{name}"] = name in command.flags
    return facts


def _of_log(load: LoadFacts) -> dict[str, Value]:
    facts: dict[str, Value] = {}
    simple = (
        "build_number", "n_ctx_train", "graph_splits", "n_ctx", "n_ctx_seq", "n_batch", "n_ubatch",
        "n_seq_max", "kv_unified", "flash_attention", "n_slots",
        "n_ctx_slot", "kv_type_k", "kv_type_v", "model_loaded",
        "router_mode", "library_lines", "weights_on_devices_bytes", "weights_on_host_bytes", "thinking",
    )  # fmt: skip
    for name in simple:
        fact = getattr(load, name)
        if isinstance(fact, Known):
            facts[name] = fact.value
    if isinstance(load.offload, Known):
        facts["offload_layers"], facts["offload_of"] = load.offload.value.layers, load.offload.value.of
    if isinstance(load.devices_present, Known):
        devices = [d for d in load.devices_present.value if d.name not in {"CPU", "BLAS"}]
        facts["devices_listed"] = len(devices)
        facts["software_device"] = bool(devices) and all(d.software for d in devices)
    if load.listening:
        facts["listening"] = load.listening[-1]
    return facts
