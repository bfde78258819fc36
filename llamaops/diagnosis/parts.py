"""The parts of a situation, and what kind a bare text is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

MAX_CASE_BYTES = 4 * 1024 * 1024
"""A case file or a record is read as a whole; a larger text is a log."""


class Part(msgspec.Struct):
    """One thing that an operator has, of one kind."""

    kind: str
    """One of `rule.KINDS`."""
    name: str
    """How the answer calls it."""
    text: str = ""
    """Its text, or empty when it comes as chunks."""
    chunks: Iterable[bytes] | None = None
    """The bytes of a large part, read once."""
    complaint: str = ""
    """What the operator says is wrong, where the situation came with it; it is no evidence."""
    note: str | None = None
    """What was cut or could not be read."""


_COMMAND = re.compile(
    r"(?:\$ |# )?(?:sudo |timeout \S+ |nohup |env |exec |numactl (?:--?\S+ )*)*(?:\w+=\S+ )*"
    r"(?:\S*/)?(?:llama-[\w-]+|llama|rpc-server|main|server|llamafile|docker|podman|koboldcpp|ollama)(?:\.exe)?\s+\S"
)
_HTTP = re.compile(r"(?:GET|POST|PUT|DELETE|OPTIONS|HEAD) /\S* (?:->|HTTP/)|HTTP/[\d.]+ \d{3}|[1-5]\d\d$")
_ENV = re.compile(r"(?:export )?[A-Z_][A-Z0-9_]*=")


def recognise(text: str) -> str:  # noqa: PLR0911 - one line per kind
    """Return the kind that a text most likely is; `log` when it looks like nothing else."""
    lines = [line for line in text[:65536].splitlines() if line.strip()][:40]
    if not lines:
        return "log"
    first = lines[0].strip()
    if re.match(r"\[(?:Unit|Service|Container|Install)\]$", first):
        return "unit-file"
    if _HTTP.match(first) or (first.startswith("{") and _is_answer(text)):
        return "http-response"
    if first.startswith("{") and '"messages"' in text[:65536] and '"log"' not in first:
        return "http-request"
    if any(re.match(r"\|\s*model\s*\|", line) for line in lines[:10]):
        return "bench"
    if first.startswith("$ ") or re.match(r"\w+\$ ", first):
        return "inspect"
    if all(_ENV.match(line) or line.startswith("#") for line in lines):
        return "env"
    if _COMMAND.match(first) and len(lines) <= 12:  # noqa: PLR2004 - a command line, perhaps continued
        return "command"
    return "log"


def _is_answer(text: str) -> bool:
    body = _json(text)
    return isinstance(body, dict) and bool({"error", "choices", "content", "embedding", "data"} & set(body))


def _json(text: str) -> Any:  # noqa: ANN401 - any JSON
    if len(text) > MAX_CASE_BYTES:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None


def parts_of(text: str, name: str, kind: str | None = None) -> list[Part]:
    """Return the part or parts that a text is: a case file and a record hold several.

    Args:
        text: The text.
        name: How to call it.
        kind: Its kind, where the operator named it.
    """
    if kind is not None:
        return [Part(kind, name, text)]
    found = _from_record(text, name) or _from_case(text)
    return found or [Part(recognise(text), name, text)]


def _from_case(text: str) -> list[Part] | None:
    if "input:" not in text and '"input"' not in text:
        return None
    if len(text) > MAX_CASE_BYTES:
        return None
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        case = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    given = case.get("input") if isinstance(case, dict) else None
    if not isinstance(given, list):
        return None
    parts = []
    for number, item in enumerate(given, 1):
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            kind = str(item.get("kind", "text"))
            parts.append(Part(kind, f"part {number} ({kind})", item["text"]))
    symptom = case.get("symptom") if isinstance(case, dict) else None
    if parts and isinstance(symptom, str):
        parts[0].complaint = symptom.strip()
    return parts or None


_EVIDENCE_KINDS = {"stderr": "log", "stdout": "log", "log": "log", "http": "http-response", "file": "inspect"}


def _from_record(text: str, name: str) -> list[Part] | None:
    if '"llamaops.' not in text[:4096]:
        return None
    document = _json(text)
    if not isinstance(document, dict):
        return None
    record = document.get("record") if document.get("schema") == "llamaops.document" else document
    if not isinstance(record, dict) or record.get("schema") != "llamaops.record":
        return None
    parts = []
    for item in record.get("evidence", ()):
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            kind = _EVIDENCE_KINDS.get(str(item.get("kind")), "text")
            parts.append(Part(kind, f"{name}: {item.get('label', 'evidence')}", item["text"]))
    argv = _argv_of(record)
    if argv:
        parts.append(Part("command", f"{name}: launch", argv))
    return parts


def _argv_of(record: dict[str, Any]) -> str:
    launch = record.get("facts", {}).get("launch") if isinstance(record.get("facts"), dict) else None
    argv = launch.get("argv") if isinstance(launch, dict) else None
    return " ".join(map(str, argv)) if isinstance(argv, list) else ""
