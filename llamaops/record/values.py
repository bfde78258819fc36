"""Read the value that stands after a name, and say whether there is anything in it to hide."""

# ruff: noqa: SIM905 - words read better one after the other

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from functools import cache


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


LONGEST_VALUE = 8192
_MOST_ESCAPED_QUOTES = 512

# Words that stand where a value could, and are none.
_NO_VALUES = frozenset(
    """null none nil true false undefined empty unset set missing required optional invalid valid unknown
    redacted hidden masked removed omitted key token password secret string str int bool file path value
    yes no on off is was are not and or for from in with to the a an by of via at if when must has have had
    should can could will would bearer basic digest argument option flag variable header environment
    authentication authorization authenticated unauthorized default disabled enabled provided expected
    given api_key apikey api-key changed rotated loaded present absent failed error incorrect wrong
    expired denied fname n tokens keys passwords secrets mismatch number text word words
    string bytes object anything something nothing""".split()
)
_MASKED = r"""(?xi) [*\u2022\u25cf.\#?_~=-]{2,} | x{3,} | \u2022{3,}.* | .*\*{3,}.* | <[^<>]*> | \[[^\[\]]*\]
    | \(.*\) | \{\{?.*
    | \\*\$\{[A-Za-z_]\w*(?:[:?-][^}]*)?\} | \\*\$\$?[A-Z_][A-Z0-9_]* | \$\(.*\)? | %[A-Za-z_]+% | %%?[sdv]
    | \.\.\. | -+ | !(?:secret|vault|ref|env)\b.* | env: .*"""
_PATH = (
    r"(?:~|\.{1,2})?/(?:etc|usr|var|home|run|opt|srv|root|mnt|data|models?|tmp|Users|proc|dev"
    r"|workspace|app|secrets?|certs?)"
    r"(?:/.*)?|[A-Za-z]:\\.*|(?:~|\.{1,2})/.*|[\w./-]+\.(?:pem|key|crt|cer|txt|json|ya?ml|toml|env"
    r"|conf|cfg|gguf|jinja|log|pub)"
)


def looks_secret(value: str) -> bool:
    """Say whether a value looks like a key: long, of letters and digits, and nothing that one can read."""
    if len(value) < 16 or not _re(r"[\w+/=.~:%@!*#-]+").fullmatch(value):
        return False
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return not (
        _re(_PATH).fullmatch(value)
        or "://" in value
        or _re(r"[a-z]+\d{0,3}(?:[._/-]+[a-z]+\d{0,3})*").fullmatch(value)
    )


def names_a_file(value: str) -> bool:
    """Say whether a value is the path of a file, which may be told."""
    return _re(_PATH).fullmatch(value) is not None


def is_no_value(value: str) -> bool:
    """Say whether there is nothing to hide: empty, masked already, a variable, or a word of prose."""
    bare = value.strip().strip("\"'").rstrip(".,;:!?")
    if (
        not bare
        or bare.lower() in _NO_VALUES
        or (bare.isupper() and bare in ("KEY", "TOKEN", "PASSWORD", "SECRET", "FNAME"))
    ):
        return True
    return _re(_MASKED).fullmatch(bare) is not None or bare.startswith("-----BEGIN")


OPEN = r"'\"'\"'|'\\''|\\*[\"'`]|%22|%27"
_BARE = r"(?:[^\s\"'`\\;<\0]|\\(?![nrt\"'`\\])|;(?=\S)|<(?![\w-]+>|/)){1,4096}+"
_BARE_IN_QUERY = r"[^\s\"'`\\;<>&#\0]{1,4096}+"


def value_at(text: str, at: int, *, in_query: bool = False) -> tuple[int, int]:
    """Return where the value that begins at a place starts and ends, its quotes not counted."""
    opening = _re(OPEN).match(text, at)
    if opening is not None:
        start = opening.end()
        end = _closing(text, start, opening[0])
        if end is not None:
            return start, end
        at = start
    match = _re(_BARE_IN_QUERY if in_query else _BARE).match(text, at)
    if match is None:
        return at, at
    value = match[0]
    cut = _re(r",(?:[\"'\s]|$)|,(?=[\w-]+[=:])").search(value)
    if cut is not None:
        value = value[: cut.start()]
    while value and (value[-1] in ".,:" or (value[-1] in ")]}" and not any(c in value for c in "([{"))):
        value = value[:-1]
    return at, at + len(value)


def _closing(text: str, start: int, quote: str) -> int | None:
    """Return where a quoted value ends: at the same quote, escaped as often as the one that opened it."""
    limit = min(len(text), start + LONGEST_VALUE)
    if quote in ("'\"'\"'", "'\\''") or quote.startswith("%"):
        end = text.find(quote, start, limit)
        return end if end >= 0 else None
    mark, depth = quote[-1], len(quote) - 1
    end = text.find(mark, start, limit)
    for _quote in range(_MOST_ESCAPED_QUOTES):
        if end < 0:
            break
        before = text[max(start, end - 64) : end]
        escapes = len(before) - len(before.rstrip("\\"))
        if escapes <= depth or (depth == 0 and escapes % 2 == 0):
            # One that is escaped less closes something further out, and this value with it.
            return end - escapes if escapes <= depth else end
        end = text.find(mark, end + 1, limit)
    return None
