"""Write the table of docs/memory.md: the estimate, the naive formula and llama-fit-params against the truth.

python -m tools.memory_table          rewrites what lies between the marks in docs/memory.md
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from msgspec.structs import replace

from llamaops.estimate.architectures import ARCHITECTURES
from llamaops.estimate.memory import Estimate
from tests.fakes.memory_truth import Case, cases, models

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def naive(case: Case) -> int:
    """Return what file size and a full cache in F16 would give."""
    model = models()[case.model]
    row = sum(
        2 * (model.key_length() + model.value_length()) * model.kv_heads(i) for i in range(model.layers)
    )
    return sum(weight.size_bytes or 0 for weight in model.weights) + case.load.context_tokens * row


def error(ours: float, truth: int) -> float:
    """Return how far a figure is off, in percent."""
    return 100 * abs(ours - truth) / truth


def shown(errors: list[float]) -> str:
    """Return median and worst."""
    if not errors:
        return "- | -"
    return f"{statistics.median(errors):.2f} | {max(errors):.2f}"


def is_exact(case: Case, made: Estimate) -> bool:
    """Return whether every part, and both sides of a card, are equal to the byte."""
    sides = made.high("host"), made.high("device")
    parts = all(made.of(part) == size for part, size in case.truth.items())
    return parts and sides == (case.host, case.device)


def rows() -> list[str]:
    """Return a line for each architecture and one for each place, all cases together."""
    fit_params = {
        (case.model, replace(case.load, outputs=0)): case.total
        for case in cases()
        if case.front_end == "fit-params"
    }
    ours: dict[str, list[float]] = defaultdict(list)
    plain: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    exact: dict[str, int] = defaultdict(int)
    for case in cases():
        if case.front_end != "server":
            continue
        made = case.estimate()
        place = "card" if case.load.has_card else "processor"
        for name in (models()[case.model].architecture, f"all, {place}"):
            ours[name].append(error(made.high(), case.total))
            plain[name].append(error(naive(case), case.total))
            exact[name] += is_exact(case, made)
            other = fit_params.get((case.model, replace(case.load, outputs=0)))
            if other is not None:
                theirs[name].append(error(other, case.total))
    lines = [
        "| architecture | cases | exact | median | worst | naive median | worst | fit-params | worst |",
        "| --- " * 9 + "|",
    ]
    lines += [
        f"| {name} | {len(ours[name])} | {exact[name]} | {shown(ours[name])} | {shown(plain[name])} "
        f"| {shown(theirs[name])} |"
        for name in sorted(ours, key=lambda key: (key.startswith("all"), key))
    ]
    names = sorted(ARCHITECTURES)
    return [*lines, "", f"Architectures whose graph is described ({len(names)}): {', '.join(names)}."]


def main() -> None:
    """Rewrite the page."""
    body = "\n".join(rows())
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
