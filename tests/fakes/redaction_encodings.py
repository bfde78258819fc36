"""Ways a secret is written down on its way into a log, and ways a terminal cuts it; for tests."""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote

Encoding = Callable[[random.Random, str], str]


def _base64(r: random.Random, text: str) -> str:
    around = r.choice(("", "", "x", "ab", "user:", "{'k': '"))
    data = (around + text + r.choice(("", "", "z", "'}"))).encode()
    coded = r.choice((base64.b64encode, base64.urlsafe_b64encode))(data).decode()
    return coded.rstrip("=") if r.random() < 0.5 else coded


def _percent(r: random.Random, text: str) -> str:
    coded = quote(text, safe=r.choice(("", "/", "/:")))
    return re.sub("%..", lambda m: m[0].lower(), coded) if r.random() < 0.5 else coded


def _json(r: random.Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=r.random() < 0.5)[1:-1]


def _repr(r: random.Random, text: str) -> str:
    return repr(text)[1:-1]


def _shell(r: random.Random, text: str) -> str:
    return r.choice((shlex.quote(text), text.replace("'", "'\\''"), re.sub(r'(["\\$`])', r"\\\1", text)))


def _unit(r: random.Random, text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")


def _compose(r: random.Random, text: str) -> str:
    return json.dumps(text)[1:-1].replace("$", "$$")


ENCODINGS: dict[str, Encoding] = {
    "base64": _base64, "percent": _percent, "json": _json, "repr": _repr, "shell": _shell,
    "unit": _unit, "compose": _compose,
}  # fmt: skip


def encode(r: random.Random, text: str, names: list[str]) -> str:
    for name in names:
        text = ENCODINGS[name](r, text)
    return text


def stamp(r: random.Random) -> str:
    return f"0.{r.randint(0, 59):02d}.{r.randint(100, 999)}.{r.randint(100, 999)}"


def cut(r: random.Random, before: str, text: str, after: str, how: str) -> tuple[str, list[str]]:
    """Return a text with the value cut, and the pieces of five characters and more."""
    at = r.randint(1, max(1, len(text) - 1))
    first, second = text[:at], text[at:]
    if how == "colour":
        body = before + first + r.choice(("\x1b[0m", "\x1b[1;31m", "\x1b[0m\x1b[33m")) + second + after
    elif how == "columns":
        pad = (80 - (len(before) + at)) % 80
        line = "." * pad + before + text + after
        body = "\n".join(line[i : i + 80] for i in range(0, len(line), 80))
        start = pad + len(before)
        marks = [
            start,
            *(p for p in range(80, len(line), 80) if start < p < start + len(text)),
            start + len(text),
        ]
        pieces = [line[a:b] for a, b in pairwise(marks)]
        return body, [piece for piece in pieces if len(piece) >= 5]
    else:
        part = r.choice(("", "srv  update_slots: ", "load_tensors: "))
        body = f"{before}{first}\n{stamp(r)} I {part}{second}{after}"
    return body, [piece for piece in (first, second) if len(piece) >= 5]


CUTS = ("colour", "columns", "stamp")
