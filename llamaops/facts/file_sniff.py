"""Name a file that is not GGUF for what it is, from its first bytes and its name."""

from __future__ import annotations

import os
import stat

from llamaops.facts.gguf_shapes import FileKind, PathState

HEAD_BYTES = 4096
LONGEST_MESSAGE = 80

# (offset, bytes there, kind, what to call it)
MAGICS: tuple[tuple[int, bytes, FileKind, str], ...] = (
    (0, b"version https://git-lfs.github.com/spec/", "lfs_pointer", "a git LFS pointer"),
    (0, b"\x1f\x8b", "gzip", "a gzip archive"),
    (0, b"\xfd7zXZ\x00", "xz", "an xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "zstd", "a zstd archive"),
    (0, b"BZh", "bzip2", "a bzip2 archive"),
    (0, b"\x04\x22\x4d\x18", "lz4", "an lz4 archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "rar", "a rar archive"),
    (257, b"ustar", "tar", "a tar archive"),
    (0, b"lmgg", "ggml_old", "a model in the old ggml format of early 2023"),
    (0, b"fmgg", "ggml_old", "a model in the old ggmf format of early 2023"),
    (0, b"tjgg", "ggml_old", "a model in the old ggjt format of 2023"),
    (0, b"algg", "ggml_old", "a LoRA adapter in the old ggla format of 2023"),
    (0, b"ggml", "ggml_old", "a model in the old ggml format of early 2023, byte-swapped"),
    (0, b"ggjt", "ggml_old", "a model in the old ggjt format of 2023, byte-swapped"),
    (0, b"ggmf", "ggml_old", "a model in the old ggmf format of early 2023, byte-swapped"),
    (0, b"ggla", "ggml_old", "a LoRA adapter in the old ggla format of 2023, byte-swapped"),
    (0, b"nsgg", "llama_state", "a saved session of llama.cpp"),
    (0, b"qsgg", "llama_state", "a saved sequence state of llama.cpp"),
    (0, b"\x7fELF", "executable", "an ELF program or library"),
    (0, b"MZ", "executable", "a Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "executable", "a macOS program or library"),
    (0, b"\xca\xfe\xba\xbe", "executable", "a macOS program or library"),
    (0, b"#!", "executable", "a script"),
    (0, b"%PDF", "pdf", "a PDF document"),
    (0, b"\x89HDF\r\n", "hdf5", "an HDF5 file (Keras or another framework)"),
    (0, b"\x93NUMPY", "numpy", "a NumPy array"),
    (0, b"\x89PNG", "image", "a PNG image"),
    (0, b"\xff\xd8\xff", "image", "a JPEG image"),
    (0, b"GIF8", "image", "a GIF image"),
    (0, b"SQLite format 3\x00", "sqlite", "an SQLite database"),
)

PARTIAL_SUFFIXES = (
    ".part", ".partial", ".incomplete", ".crdownload", ".download", ".downloadinprogress", ".tmp", ".aria2",
    ".opdownload", ".!qb", ".filepart", ".unfinished",
)  # fmt: skip


def sniff(head: bytes, size: int) -> tuple[FileKind, str]:
    """Return what a file is that does not start with GGUF, for a script and in words."""
    if not head:
        return "empty", "an empty file"
    for offset, magic, kind, words in MAGICS:
        if head.startswith(magic, offset):
            return kind, words + (_lfs_details(head) if kind == "lfs_pointer" else "")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(head)
    if _is_safetensors(head, size):
        return "safetensors", "a safetensors file, to be converted to GGUF"
    if head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        return "pickle", "a Python pickle (a PyTorch checkpoint of the old form), to be converted to GGUF"
    if not head.strip(b"\0"):
        return "zeros", "a file that starts with zeros: space reserved for a download, not the download"
    return _sniff_text(head) or ("binary", f"a binary file that starts with {head[:8].hex(' ')}")


def _zip(head: bytes) -> tuple[FileKind, str]:
    if b"data.pkl" in head or b"/version" in head or b"archive/" in head:
        return "pytorch_zip", "a PyTorch checkpoint (zip), to be converted to GGUF"
    return "zip", "a zip archive"


def _is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:8], "little")
    return head[8:9] == b"{" and 2 <= length <= max(size, 100_000_000) and (b'"' in head[9:64] or length <= 8)  # noqa: PLR2004 - `{}` padded to 8


def _lfs_details(head: bytes) -> str:
    for line in head.split(b"\n")[:8]:
        if line.startswith(b"size ") and line[5:].strip().isdigit():
            return f" to a file of {int(line[5:25])} bytes"
    return ""


def _sniff_text(head: bytes) -> tuple[FileKind, str] | None:
    text = _decode(head)
    if text is None:
        return None
    start = text.lstrip("\ufeff \t\r\n")
    lower = start[:1024].lower()
    if lower.startswith("<") and any(tag in lower for tag in ("<!doctype html", "<html", "<head", "<body")):
        return "html", "an HTML page" + _inside(start, "<title>", "</title>", "titled")
    if lower.startswith("<"):
        return "xml", "an XML document" + _inside(start, "<Message>", "</Message>", "with the message")
    if start[:1] in {"{", "["}:
        return "json", "a JSON document" + _json_message(start)
    return "text", "a text file" + _said(text)


def _said(text: str) -> str:
    """Return a short message of a server such as `Entry not found`; no other text is repeated.

    A file that was named by mistake can hold a secret: anything but a few plain words is left out.
    """
    words = text.strip("\ufeff \t\r\n")
    plain = all(character.isalpha() or character in " .,'!" for character in words)
    return f" that says {words!r}" if plain and " " in words and len(words) <= LONGEST_MESSAGE else ""


def _decode(head: bytes) -> str | None:
    """Return the text of a file's start, None when it is not text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace")
    if any(byte < 9 or 13 < byte < 27 for byte in head):  # noqa: PLR2004 - control characters but tab and line ends
        return None
    text = head.decode("utf-8", "replace")
    # Latin-1 text is text too; a binary file would be full of undecodable bytes.
    return None if text.count("\ufffd") > len(text) // 8 + 1 else text


def _inside(text: str, start: str, end: str, words: str) -> str:
    at = text.lower().find(start.lower())
    stop = text.lower().find(end.lower(), at)
    if at < 0 or stop < 0:
        return ""
    inside = " ".join(text[at + len(start) : stop].split())[:80]
    return f" {words} {inside!r}" if inside else ""


def _json_message(text: str) -> str:
    for key in ('"message"', '"error"', '"detail"'):
        at = text.find(key)
        value = text[at + len(key) :].lstrip(": \t\r\n") if at >= 0 else ""
        if value.startswith('"') and '"' in value[1:]:
            return f" with the {key.strip(chr(34))} {value[1 : value.index(chr(34), 1)][:80]!r}"
    return ""


def path_state_of(mode: int) -> PathState:
    """Return what a path leads to, from the mode that stat gave."""
    special: tuple[tuple[bool, PathState], ...] = (
        (stat.S_ISDIR(mode), "directory"),
        (stat.S_ISFIFO(mode), "fifo"),
        (stat.S_ISSOCK(mode), "socket"),
        (stat.S_ISCHR(mode), "character_device"),
        (stat.S_ISBLK(mode), "block_device"),
    )
    return next((state for holds, state in special if holds), "regular")


def partial_sign(path: str, siblings: frozenset[str]) -> str | None:
    """Return the sign that a file is a download that has not ended, or None.

    Args:
        path: The file.
        siblings: The names in its folder.
    """
    name = os.path.basename(path)
    if name.lower().endswith(PARTIAL_SUFFIXES):
        return f"the name ends with {os.path.splitext(name)[1]}"
    # aria2 keeps its state beside a file that already has its final name and length.
    if f"{name}.aria2" in siblings:
        return f"{name}.aria2 lies beside it"
    return None


def partial_beside(path: str, siblings: frozenset[str]) -> str | None:
    """Return the name of an unfinished download of a file that is not there, or None."""
    name = os.path.basename(path)
    return next((other for other in sorted(siblings) if _is_partial_of(other, name)), None)


def _is_partial_of(other: str, name: str) -> bool:
    return other.startswith(name) and other != name and other.lower().endswith(PARTIAL_SUFFIXES)
