"""Draw memory by part against context, as a small SVG picture."""

from __future__ import annotations

from llamaops.errors import UsageError
from llamaops.estimate.memory import estimate
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load
from llamaops.estimate.room import with_context
from llamaops.record.redact import Redactor
from llamaops.system.files import write_atomic

PARTS = ("weights", "KV cache", "windowed KV cache", "indexer cache", "recurrent state", "compute", "output")
COLOURS = ("#4c72b0", "#dd8452", "#c44e52", "#ccb974", "#8172b3", "#55a868", "#937860")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 70, 40, 190, 50
STEPS = 33
GIB = 2**30


def write_plot(model: Model, load: Load, path: str, redactor: Redactor) -> str:
    """Draw a load at contexts up to the trained one; return in a sentence what became of the picture.

    A name of the model that looks like a secret is replaced, as everywhere that leaves the process.

    Raises: UsageError when the file cannot be written.
    """
    longest = max(model.trained_context, load.sequence_tokens)
    columns: list[tuple[int, list[int]]] = []
    for step in range(STEPS):
        at = with_context(load, max(256, longest * step // (STEPS - 1)))
        found = estimate(model, at)
        if not found.parts:
            return f"no picture was drawn: {found.unknown[0]}"
        columns.append((at.context_tokens, [found.of(name) for name in PARTS]))
    title = redactor.text(str(model.keys.get("general.name", model.architecture)))
    try:
        write_atomic(path, picture(title, columns).encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"--plot {path}: {error.strerror}", hint="name another folder") from error
    return "the picture shows a lower bound" if estimate(model, load).unknown else ""


def picture(title: str, columns: list[tuple[int, list[int]]]) -> str:
    """Return the picture: stacked areas, one for each part.

    Units: tokens and bytes of the columns; GiB and thousand tokens on the axes.
    """
    most_bytes = max(sum(sizes) for _, sizes in columns) or 1
    most_tokens = columns[-1][0] or 1
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(tokens: int) -> float:
        return LEFT + (right - LEFT) * tokens / most_tokens

    def y(size: float) -> float:
        return bottom - (bottom - TOP) * size / most_bytes

    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="15">{_escaped(title)}: memory by part against context</text>',
    ]
    row = 0
    for index, name in enumerate(PARTS):
        if not any(sizes[index] for _, sizes in columns):
            continue
        lower = [(x(t), y(sum(sizes[:index]))) for t, sizes in columns]
        upper = [(x(t), y(sum(sizes[: index + 1]))) for t, sizes in columns]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*lower, *reversed(upper)])
        out.append(f'<polygon points="{points}" fill="{COLOURS[index]}"/>')
        at = TOP + 10 + 22 * row
        out.append(f'<rect x="{right + 16}" y="{at}" width="12" height="12" fill="{COLOURS[index]}"/>')
        out.append(f'<text x="{right + 34}" y="{at + 11}">{name}</text>')
        row += 1
    for step in range(5):
        size, tokens = most_bytes * step / 4, most_tokens * step // 4
        out.append(f'<text x="{LEFT - 8}" y="{y(size) + 4:.1f}" text-anchor="end">{size / GIB:.2f}</text>')
        out.append(
            f'<text x="{x(tokens):.1f}" y="{bottom + 18}" text-anchor="middle">{tokens / 1000:.0f} k</text>'
        )
    out += [
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#333333"/>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">context in tokens</text>',
        f'<text x="14" y="{TOP - 10}">GiB</text>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _escaped(text: str) -> str:
    return "".join(c for c in text if c.isprintable()).replace("&", "&amp;").replace("<", "&lt;")[:80]
