"""Open a model file and its companions, and take from them what the facts are made of."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import msgspec

from llamaops.facts import file_sniff, gguf_shards
from llamaops.facts.ggml_types import SCALARS
from llamaops.facts.gguf_extent import check_extent
from llamaops.facts.gguf_header import Entry, Header, read_header
from llamaops.facts.gguf_shapes import ChatTemplate, FileKind, PathState, Problem
from llamaops.facts.gguf_walk import Array, Text, read_bytes, read_numbers, read_strings
from llamaops.facts.observe import unknown_from_os_error
from llamaops.facts.short_digest import short_sha256
from llamaops.schema.fact import Source, Unknown, Why

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import OpenFile, System

MOST_ARRAYS = 64
LONGEST_TEMPLATE = 8 * 2**20
ELEMENT_BYTES = {number: size for number, (_, _, size) in SCALARS.items()}
TEMPLATE_KEY = "tokenizer.chat_template"
TOKEN_ID = "_token_id"  # noqa: S105 - the end of a key's name
SHOWN_NAMES = 5

STATE_WORDS: dict[PathState, str] = {
    "absent": "there is no such file",
    "broken_symlink": "a symbolic link to a file that is not there",
    "no_permission": "we are not allowed to read it",
    "directory": "a directory",
    "fifo": "a FIFO (named pipe)",
    "socket": "a socket",
    "character_device": "a character device",
    "block_device": "a block device",
}


class Part(msgspec.Struct, kw_only=True):
    """One file of the model; `header` is None for a file that is not GGUF or could not be read."""

    path: str
    number: int = 1
    file_bytes: int = 0
    header: Header | None = None


class Probe(msgspec.Struct, kw_only=True):
    """What looking at a path gave."""

    path: str
    state: PathState | Unknown = "regular"
    kind: FileKind | None = None
    why: Why = "failed"
    detail: str = ""
    problems: list[Problem] = msgspec.field(default_factory=list)
    parts: list[Part] = msgspec.field(default_factory=list)
    missing: str = ""
    """Which parts are not there, in words; empty when all are."""
    first_is_missing: bool = False
    numbers: dict[str, tuple[int | float | bool, ...]] = msgspec.field(default_factory=dict)
    texts: dict[int, str] = msgspec.field(default_factory=dict)
    token_kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """The kind of each special token, by its role."""
    templates: dict[str, ChatTemplate] = msgspec.field(default_factory=dict)
    engine_path: str = ""

    @property
    def main(self) -> Part | None:
        """Return the part with the metadata: the first, or the one that was named where that is missing."""
        if self.parts and not self.first_is_missing:
            return self.parts[0]
        return next((part for part in self.parts if part.path == self.path), None)

    @property
    def file_bytes(self) -> int | None:
        """Return the length of all parts that are there."""
        return sum(part.file_bytes for part in self.parts) if self.parts else None

    def add(self, slug: str, sentence: str, place: str | None = None) -> None:
        """Add a problem."""
        self.problems.append(Problem(slug=slug, sentence=sentence, place=place or self.path))

    def refuse(self, why: Why, words: str, slug: str) -> None:
        """Say why nothing can be known but the file itself."""
        self.why = why
        self.detail = f"{self.path}: {words}"
        self.add(slug, words)


def look(system: System, path: str) -> Probe:
    """Look at a path: what it is, and if it is GGUF the headers of all its parts."""
    probe = Probe(path=path, engine_path=path)
    siblings = names_beside(system, path)
    probe.state = _path_state(system, path, siblings)
    if isinstance(probe.state, Unknown):
        probe.refuse(probe.state.why, probe.state.detail.removeprefix(f"{path}: "), "not-readable")
    elif probe.state != "regular":
        _refuse_state(probe, probe.state, system, siblings)
    else:
        _look_at_files(probe, system, siblings)
        sign = file_sniff.partial_sign(path, siblings)
        if sign is not None:
            probe.add("download-partial", f"a download that has not ended: {sign}")
    return probe


def names_beside(system: System, path: str) -> frozenset[str]:
    """Return the names in the folder of a file; empty when it cannot be read."""
    try:
        return frozenset(system.list_dir(os.path.dirname(path) or "."))
    except OSError:
        return frozenset()


def _path_state(system: System, path: str, siblings: frozenset[str]) -> PathState | Unknown:
    try:
        state = file_sniff.path_state_of(system.stat(path).st_mode)
        if state == "regular" and not system.access(path, os.R_OK):
            return "no_permission"
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EPERM}:
            return "no_permission"
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return "broken_symlink" if os.path.basename(path) in siblings else "absent"
        return unknown_from_os_error(Source(kind="file", name=path), error)
    except ValueError:  # a NUL in the path
        return "absent"
    return state


def _refuse_state(probe: Probe, state: PathState, system: System, siblings: frozenset[str]) -> None:
    words = STATE_WORDS[state]
    why: Why = "refused" if state == "no_permission" else "absent" if state == "absent" else "unsupported"
    if state == "broken_symlink":
        words += f": {system.realpath(probe.path)}"
    elif state == "directory":
        words += _gguf_files_in(system, probe.path)
    elif state == "absent" and (partial := file_sniff.partial_beside(probe.path, siblings)):
        words += f", but an unfinished download of it: {partial}"
    probe.refuse(why, words, f"path-{state.replace('_', '-')}")


def _gguf_files_in(system: System, path: str) -> str:
    try:
        names = [name for name in system.list_dir(path) if name.lower().endswith(".gguf")]
    except OSError:
        return ""
    if not names:
        return " without any .gguf file"
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f" with {', '.join(names[:SHOWN_NAMES])}{more}"


def _look_at_files(probe: Probe, system: System, siblings: frozenset[str]) -> None:
    named = _read_part(probe, system, Part(path=probe.path))
    if named.header is None:
        return
    split = gguf_shards.parse_shard_name(probe.path)
    if split is not None and split.count > 1 and _is_split(named.header):
        _look_at_shards(probe, system, siblings, named, split)
    else:
        probe.parts = [named]
    found: list[Problem] = []
    for part in probe.parts:
        if part.header is not None:
            name = gguf_shards.parse_shard_name(part.path)
            found += part.header.problems + gguf_shards.judge_split(name, part.header)
    probe.problems = found + probe.problems
    probe.kind = kind_of(probe)


def _is_split(header: Header) -> bool:
    # A file cut in its keys may hold split keys that were not reached: its name decides.
    return gguf_shards.whole_number(header, "split.count") is not None or header.reached != "end"


def _read_part(probe: Probe, system: System, part: Part) -> Part:
    """Read one file: its header, and of the part with the metadata what the facts need."""
    try:
        with system.open_regular(part.path) as file:
            part.file_bytes = file.size_bytes
            header = read_header(file, part.path)
            if header.magic != b"GGUF":
                _refuse_kind(probe, file, part)
                return part
            part.header = header
            check_extent(file, header)
            if "general.architecture" in header.entries or not probe.numbers:
                _take(probe, file, header)
    except OSError as error:
        unknown = unknown_from_os_error(Source(kind="file", name=part.path), error)
        if part.path == probe.path:
            probe.refuse(unknown.why, unknown.detail.removeprefix(f"{part.path}: "), "not-readable")
        else:
            probe.add("shard-unreadable", f"a part of the model: {unknown.detail}", part.path)
    return part


def _refuse_kind(probe: Probe, file: OpenFile, part: Part) -> None:
    kind, words = file_sniff.sniff(file.read_at(0, file_sniff.HEAD_BYTES), file.size_bytes)
    if part.path != probe.path:
        probe.add("shard-unreadable", f"a part of the model is {words}", part.path)
        return
    probe.kind = kind
    probe.parts = [part]
    probe.refuse("unsupported", f"not a GGUF file but {words}", "not-gguf")


def _look_at_shards(
    probe: Probe, system: System, siblings: frozenset[str], named: Part, split: gguf_shards.ShardName
) -> None:
    """Read the headers of all other parts and hold them against each other."""
    named.number = split.number
    probe.engine_path = split.path(1)
    if split.count > gguf_shards.MOST_SHARDS:
        probe.parts = [named]
        probe.first_is_missing = split.number != 1
        probe.missing = f"{split.count} are more than the {gguf_shards.MOST_SHARDS} that we look at"
        probe.add("beyond-our-limits", probe.missing)
        return
    absent = []
    for number in range(1, split.count + 1):
        path = split.path(number)
        if number == split.number:
            probe.parts.append(named)
        elif siblings and os.path.basename(path) not in siblings:
            absent.append(number)
        else:
            probe.parts.append(_read_part(probe, system, Part(path=path, number=number)))
    if absent:
        _report_missing(probe, split, absent)
    headers = [part.header for part in probe.parts if part.header is not None]
    if not absent and len(headers) == len(probe.parts):
        probe.problems += gguf_shards.judge_agreement(headers)


def _report_missing(probe: Probe, split: gguf_shards.ShardName, absent: list[int]) -> None:
    probe.first_is_missing = 1 in absent
    shown = ", ".join(os.path.basename(split.path(number)) for number in absent[:SHOWN_NAMES])
    more = f" and {len(absent) - SHOWN_NAMES} more" if len(absent) > SHOWN_NAMES else ""
    probe.missing = f"{len(absent)} of {split.count} are not there: {shown}{more}"
    probe.add("shard-missing", f"of the model's parts {probe.missing}")


def kind_of(probe: Probe) -> FileKind:
    """Return what kind of GGUF file it is, from its type, architecture and keys."""
    main = probe.main
    if main is None or main.header is None:
        return "gguf"
    header = main.header
    declared = _text(header, "general.type")
    architecture = _text(header, "general.architecture")
    if declared == "adapter" or architecture == "controlvector" or "adapter.type" in header.entries:
        return "adapter"
    if declared == "mmproj" or architecture == "clip":
        return "projector"
    if declared == "imatrix" or "imatrix.datasets" in header.entries:
        return "imatrix"
    if header.reached != "end" or probe.first_is_missing:
        return "gguf"
    if not any(part.header.tensors for part in probe.parts if part.header is not None) and not probe.missing:
        return "vocabulary" if "tokenizer.ggml.model" in header.entries else "gguf"
    return "model" if architecture else "gguf"


def _text(header: Header, key: str) -> str:
    entry = header.entries.get(key)
    return entry.value.text if entry is not None and isinstance(entry.value, Text) else ""


def special_ids(header: Header) -> dict[str, int]:
    """Return the numbers of the special tokens by their role."""
    ids = {}
    for key, entry in header.entries.items():
        if key.startswith("tokenizer.ggml.") and key.endswith(TOKEN_ID) and type(entry.value) is int:
            role = key[len("tokenizer.ggml.") : -len(TOKEN_ID)][:64]
            if -1 <= entry.value < 2**32 - 1:  # -1 says that there is none
                ids["separator" if role == "seperator" else role] = entry.value
    return {role: number for role, number in ids.items() if number >= 0}


def _take(probe: Probe, file: OpenFile, header: Header) -> None:
    """Take the few elements that facts need: numbers per layer, special tokens, templates."""
    left = MOST_ARRAYS
    for key, entry in header.entries.items():
        value = entry.value
        if key.startswith(TEMPLATE_KEY) and isinstance(value, Text):
            template = _template(file, key, value)
            probe.templates[template.name] = template
        elif isinstance(value, Array) and not key.startswith("tokenizer.") and left > 0:
            left -= 1
            probe.numbers[key] = read_numbers(file, value)
    tokens = header.entries.get("tokenizer.ggml.tokens")
    if isinstance(tokens, Entry) and isinstance(tokens.value, Array):
        ids = special_ids(header)
        probe.texts = read_strings(file, tokens.value, ids.values())
        probe.token_kinds = _kinds(file, header, ids)
        for role, number in ids.items():
            if number >= tokens.value.count:
                size = tokens.value.count
                sentence = f"the {role} token is {number}, the vocabulary has {size} tokens"
                probe.add("special-token-impossible", sentence, header.place)


def _kinds(file: OpenFile, header: Header, ids: dict[str, int]) -> dict[str, int]:
    entry = header.entries.get("tokenizer.ggml.token_type")
    if entry is None or not isinstance(entry.value, Array):
        return {}
    kinds = entry.value
    found = {}
    for role, number in ids.items():
        if number < kinds.count:
            one = Array(
                kinds.element_type, 1, kinds.offset + number * ELEMENT_BYTES.get(kinds.element_type, 0)
            )
            read = read_numbers(file, one)
            if read and type(read[0]) is int:
                found[role] = read[0]
    return found


def _template(file: OpenFile, key: str, value: Text) -> ChatTemplate:
    name = key[len(TEMPLATE_KEY) + 1 :][:64] or "default"
    data = read_bytes(file, value, limit_bytes=LONGEST_TEMPLATE)
    return ChatTemplate(name=name, bytes=value.length, sha256=short_sha256(data))


def read_template(system: System, path: str) -> bytes | None:
    """Return the text of the default chat template of a model, of whichever part of it is named.

    Raises: OSError when the file cannot be read.
    """
    split = gguf_shards.parse_shard_name(path)
    with system.open_regular(path if split is None else split.path(1)) as file:
        entry = read_header(file, path).entries.get(TEMPLATE_KEY)
        if entry is None or not isinstance(entry.value, Text):
            return None
        return read_bytes(file, entry.value, limit_bytes=LONGEST_TEMPLATE)
