"""The pages of the runbooks for the documentation's site, and its table of contents.

python -m llamaops.runbook.site DOCS writes DOCS/runbooks/*.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from llamaops.runbook.document import Runbook
from llamaops.runbook.load import find_shipped, load
from llamaops.runbook.page import runbook_page

AREAS: Mapping[str, str] = {
    "install": "Install",
    "models": "Models and memory",
    "serving": "Inference and serving",
    "performance": "Performance",
    "troubleshooting": "Troubleshooting",
}
"""The order in which an operator meets them."""
INTRODUCTION = (
    "What an operator does with llama.cpp, in the order of need. Each is a file that llamaops runs: "
    "`llamaops runbook plan NAME` shows what it would do, `llamaops runbook run NAME` does it, asking "
    "before whatever changes something. Your own go into `./runbooks` or the folder of "
    "`LLAMAOPS_RUNBOOKS`; the [form](writing.md) is published as a JSON Schema."
)


def shipped() -> list[Runbook]:
    """Return the shipped runbooks in the order of the site."""
    found = [load(item.path).runbook for item in find_shipped()]
    return sorted(found, key=lambda runbook: (list(AREAS).index(runbook.area), runbook.title))


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    books = shipped()
    made = {f"{book.id}.md": runbook_page(book, generated=True) for book in books}
    return {**made, "index.md": _index(books)}


def _index(books: list[Runbook]) -> str:
    lines = [
        "<!-- Made from the runbooks by `make generate`. -->",
        "",
        "# Runbooks",
        "",
        INTRODUCTION,
        "",
    ]
    for area, title in AREAS.items():
        lines += [f"## {title}", ""]
        lines += [f"- [{book.title}]({book.id}.md)" for book in books if book.area == area]
        lines.append("")
    return "\n".join(lines)


def write(docs: str) -> None:
    """Write the pages below a folder, and remove those of runbooks that are gone."""
    folder = os.path.join(docs, "runbooks")  # noqa: PTH118 - strings throughout
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    made = pages()
    for name in os.listdir(folder):  # noqa: PTH208
        if name.endswith(".md") and name not in {*made, "writing.md"}:
            os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118
    for name, text in made.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
            file.write(text)


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else "docs")
