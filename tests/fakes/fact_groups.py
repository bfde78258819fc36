"""Fact groups with a few known figures and everything else unknown."""

from __future__ import annotations

from typing import get_type_hints

import msgspec

from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.version_text import VersionFacts, unknown_version
from llamaops.schema.fact import Known, Source, not_attempted

SOURCE = Source(kind="file", name="made for a test")


def gguf_facts(**known: object) -> dict[type, object]:
    """Return GgufFacts with some known fields, by its type."""
    gap = not_attempted("not part of this test")
    values: dict[str, object] = {}
    for field in msgspec.structs.fields(GgufFacts):
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
            values[field.name] = gap
    values.update({name: Known(value=value, source=SOURCE) for name, value in known.items()})
    return {GgufFacts: GgufFacts(**values)}  # type: ignore[arg-type]  # every field is a fact


def binary_facts(*, build: int, commit: str) -> dict[type, object]:
    """Return BinaryFacts of which only the build is known, by its type."""
    gap = not_attempted("not part of this test")
    unknown: VersionFacts = unknown_version("not_attempted", "not part of this test", gap.source)
    version = msgspec.structs.replace(
        unknown, build=Known(value=build, source=SOURCE), commit=Known(value=commit, source=SOURCE)
    )
    values: dict[str, object] = {}
    hints = get_type_hints(BinaryFacts)
    for field in msgspec.structs.fields(BinaryFacts):
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
            fact = "Unknown" in str(hints[field.name])
            values[field.name] = gap if fact else False if hints[field.name] is bool else "named"
    return {BinaryFacts: BinaryFacts(**{**values, "version": version})}  # type: ignore[arg-type]  # as above
