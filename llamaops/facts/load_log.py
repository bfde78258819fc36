"""The load log: what the engine itself said while it loaded, from late 2023 to now.

`LoadLogReader` takes lines as they come and can be asked at any time; `parse_load_log` reads a whole
text. What decides how it reads:

- Since May 2026 the default verbosity hides every line of the library. A line that was not seen there
  is `not_attempted`, never `absent`.
- With `-lv 5` the fit step's dry load prints a complete first set of lines, and a bad file gives its
  errors twice. The last load of the main model counts, and the first error of the last attempt.
- `offloaded N/M layers to GPU` proves no GPU. Only the names of the buffers do.
- A listening line of releases before 2026 can come before the load; ready needs `model loaded` too.
"""

from __future__ import annotations

from llamaops.facts.load_log_lines import lines_of
from llamaops.facts.load_log_patterns import READY, READY_TAGS, compiled
from llamaops.facts.load_log_reader import LoadLogReader
from llamaops.facts.load_log_types import (
    BreakdownRow,
    LoadDevice,
    LoadFacts,
    LogLine,
    Offload,
    RequestTiming,
)
from llamaops.schema.fact import Source

__all__ = [
    "BreakdownRow",
    "LoadDevice",
    "LoadFacts",
    "LoadLogReader",
    "LogLine",
    "Offload",
    "RequestTiming",
    "listening_url",
    "parse_load_log",
]


def parse_load_log(text: str, source: Source) -> LoadFacts:
    """Read a whole load log.

    Source: standard error of llama-server or llama-completion, or standard output with --log-jsonl.
    """
    reader = LoadLogReader(source)
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()  # the end of the last line, not a line
    for line in lines:
        reader.feed(line)
    return reader.facts()


def listening_url(line: str) -> str | None:
    """Return the URL when this one line means that the server is ready, without any other line.

    For releases before October 2024, whose only line can also come before the load, ask
    `LoadLogReader.ready_url` instead: this function answers None for them.
    """
    if "listening on" not in line:
        return None
    for part in lines_of(line):
        if part.tag in READY_TAGS and not part.output:
            found = compiled(READY).match(part.message)
            if found:
                return found[1]
    return None
