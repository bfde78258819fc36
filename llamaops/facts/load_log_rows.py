"""Single rows of a load log: the memory table, and the level of a raw line."""

from __future__ import annotations

from llamaops.facts.load_log_buffers import MIB
from llamaops.facts.load_log_patterns import ERROR_TEXT, FIT_FAILED, NOT_AN_ERROR, WARNING_TEXT, compiled
from llamaops.facts.load_log_types import BreakdownRow

NAME_CHARS = 300


def level_by_text(text: str) -> str | None:
    """Return `error` or `warn` for a line without a level whose text says so."""
    if any(words in text for words in NOT_AN_ERROR):
        return None
    if compiled(WARNING_TEXT).match(text):
        return "warn"
    if FIT_FAILED in text:
        return "error"
    return "error" if compiled(ERROR_TEXT).match(text) else None


def structured_row(row: dict[str, object]) -> BreakdownRow | None:
    """Read a row of the JSON record, or None for one in another form."""
    kind, name = row.get("kind"), row.get("name")
    if kind not in {"device", "host", "buffer_type"} or not isinstance(name, str):
        return None

    def mib(key: str) -> int:
        value = row.get(key)
        return int(value * MIB) if isinstance(value, int | float) and abs(value) < 2**40 else 0

    return BreakdownRow(
        kind=kind,
        name=name[:NAME_CHARS],
        model_bytes=mib("model"),
        context_bytes=mib("context"),
        compute_bytes=mib("compute"),
    )


def printed_row(name: str, columns: str) -> BreakdownRow | None:
    """Read `24105 = 24105 + ( 109 =    68 +      28 +      12) +        -109` or `118 = 92 + 11 + 15`."""
    sums = compiled(r".*?(\d{1,12}) =\s+(\d{1,12}) \+\s+(\d{1,12}) \+\s+(\d{1,12})\)?").match(
        columns.rsplit("(", maxsplit=1)[-1]
    )
    if sums is None:
        return None
    short = name.split(" (", maxsplit=1)[0].strip()
    kind = "device" if "(" in columns else ("host" if short == "Host" else "buffer_type")
    return BreakdownRow(
        kind=kind,  # type: ignore[arg-type]  # a literal on the line above
        name=short[:NAME_CHARS],
        model_bytes=int(sums[2]) * MIB,
        context_bytes=int(sums[3]) * MIB,
        compute_bytes=int(sums[4]) * MIB,
    )
