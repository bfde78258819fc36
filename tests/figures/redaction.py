"""Print how much of a corpus redaction removes, and how much of ordinary text it touches.

    python -m tests.figures.redaction [--seeds 1 2 3] [--count 440] [--corpus FILE.jsonl ...]

Without a corpus it makes its own (tests/fakes/redaction_corpus.py). A corpus is JSON lines with `text`,
`secrets`, `given`, and optionally `encoded`, `keep`, `kind`, `context`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from llamaops.record.redact import Redactor
from llamaops.record.secrets import collect_secrets
from tests.fakes.redaction_corpus import Entry, given_values, ordinary, planted


class Figures:
    """Counts of entries and of failures, by group, kind and context."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.bad: Counter[tuple[str, str, str]] = Counter()
        self.examples: list[tuple[str, Entry, str]] = []

    def share(self, group: str) -> float:
        """Return the share of a group's entries that came out right, in percent."""
        seen = sum(count for key, count in self.seen.items() if key[0] == group)
        bad = sum(count for key, count in self.bad.items() if key[0] == group)
        return 100.0 * (seen - bad) / seen if seen else 100.0

    def add(self, group: str, entry: Entry, result: str, good: bool) -> None:
        """Count an entry."""
        self.seen[group, entry.kind, entry.context] += 1
        if not good:
            self.bad[group, entry.kind, entry.context] += 1
            self.examples.append((group, entry, result))


def measure(entries: Iterable[Entry], given: Iterable[str], figures: Figures | None = None) -> Figures:
    """Redact every entry by itself and count."""
    figures = figures or Figures()
    environ = {f"LLAMAOPS_TEST_SECRET_{index}": value for index, value in enumerate(given)}
    redactor = Redactor(collect_secrets(environ, host="made-up-host-0"))
    for entry in entries:
        result = redactor.text(entry.text)
        redactor.forget()
        if entry.kind == "ordinary":
            figures.add("ordinary", entry, result, result == entry.text)
        else:
            gone = not any(secret in result for secret in entry.secrets)
            kept = all(part in result for part in entry.keep)
            figures.add("given" if entry.given else "others", entry, result, gone)
            figures.add("kept parts", entry, result, kept)
    return figures


def read_corpus(path: Path) -> tuple[list[Entry], list[str]]:
    """Return the entries of a file, and the values its tool is told."""
    entries, given = [], set()
    for line in path.read_text("utf-8").splitlines():
        item = json.loads(line)
        if item["given"]:
            given.update(item["secrets"])
        entries.append(
            Entry(
                item.get("kind", "?") if item["secrets"] else "ordinary",
                item.get("context", "?"),
                item["text"],
                [*item["secrets"], *item.get("encoded", [])],
                item["given"],
                item.get("keep", []),
            )
        )
    return entries, sorted(given)


def lines(figures: Figures) -> Iterator[str]:
    """Yield the table."""
    for group, label in (
        ("given", "given values gone"), ("others", "other secrets and identifiers gone"),
        ("ordinary", "ordinary texts unchanged"), ("kept parts", "parts around them kept"),
    ):  # fmt: skip
        count = sum(n for key, n in figures.seen.items() if key[0] == group)
        yield f"{label:36} {figures.share(group):7.2f} %  of {count}"
    for (group, kind, context), bad in sorted(figures.bad.items()):
        yield f"  missed: {group} / {kind} / {context}: {bad} of {figures.seen[group, kind, context]}"


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure redaction on corpora.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--count", type=int, default=440)
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--show", action="store_true", help="print what was missed (values are made up)")
    args = parser.parse_args()
    figures = Figures()
    for path in args.corpus:
        measure(*read_corpus(path), figures)
    for seed in args.seeds if not args.corpus else []:
        entries = list(planted(seed, args.count))
        measure([*entries, *ordinary(seed, 5 * args.count)], given_values(entries), figures)
    print("\n".join(lines(figures)))
    if args.show:
        for group, entry, result in figures.examples:
            print("---", group, entry.kind, entry.context, entry.secrets, entry.text, "=>", result, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
