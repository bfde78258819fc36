"""Make text that no file can hold as UTF-8 one that can be written.

Python keeps the bytes of a file name or argument that are no UTF-8 as half surrogates (PEP 383). One name of
that kind in a folder, or in our own path, must not cost the operator the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def are_writable(texts: Iterable[str]) -> bool:
    """Say whether all these texts can be written as UTF-8."""
    whole = "".join(texts)
    if whole.isascii():
        return True
    try:
        whole.encode()
    except UnicodeEncodeError:
        return False
    return True


def writable(data: Any) -> Any:  # noqa: ANN401 - plain data
    r"""Return plain data, keys included, with such bytes written as `\xff`, other surrogates as `\ud800`."""
    if isinstance(data, str):
        return "".join(map(_shown, data))
    if isinstance(data, dict):
        return {writable(key): writable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [writable(item) for item in data]
    return data


_FIRST, _LAST = 0xD800, 0xDFFF
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF


def _shown(character: str) -> str:
    number = ord(character)
    if not _FIRST <= number <= _LAST:
        return character
    return f"\\x{number - 0xDC00:02x}" if _FIRST_BYTE <= number <= _LAST_BYTE else f"\\u{number:04x}"
