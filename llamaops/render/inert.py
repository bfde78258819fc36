"""Make text from outside harmless for a screen and for Markdown."""

from __future__ import annotations

# C0 and C1 controls, and the marks that reverse or hide text, are shown as escapes.
_SHOWN = {
    number: f"\\x{number:02x}" for number in (*range(0x20), *range(0x7F, 0xA0)) if number not in {0x09, 0x0A}
}
_SHOWN.update(
    {
        number: f"\\u{number:04x}"
        for number in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029, 0xFEFF)
    }
)
# Bytes of a file name that are no UTF-8 (PEP 383), which a strict stream could not write.
_SHOWN.update({number: f"\\x{number - 0xDC00:02x}" for number in range(0xDC80, 0xDD00)})


def inert(text: str) -> str:
    """Return text with control characters shown instead of sent; tabs and line ends stay."""
    return text.translate(_SHOWN)


def one_line(text: str, limit: int | None = None) -> str:
    """Return text as one line, at most `limit` characters long."""
    line = " ".join(inert(text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    line = one_line(text)
    for character in "\\`|<>*_[]":
        line = line.replace(character, "\\" + character)
    return line


def fence(text: str) -> str:
    """Return text as a fenced block that its own content cannot close."""
    clean = inert(text)
    longest = 0
    run = 0
    for character in clean:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    bar = "`" * max(3, longest + 1)
    return f"{bar}text\n{clean.rstrip(chr(10))}\n{bar}"
