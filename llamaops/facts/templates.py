"""Chat templates: whether they compile, what they make of fixed conversations, and what is odd in them.

A child compiles and renders, bounded in time and memory (`system/template_child.py`): a template is a program
that somebody else wrote. The child reads the template where it lies, in the model file or a file of its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from llamaops.facts import companion_tokens, template_reading
from llamaops.facts.gguf_probe import LONGEST_TEMPLATE, TEMPLATE_KEY
from llamaops.facts.gguf_walk import Array, StopReadingError, Text, read_bytes
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.bounds import MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, known, not_attempted
from llamaops.schema.shape import Shape

if TYPE_CHECKING:
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import System
    from llamaops.system.process import Completed

BOUNDS = Bounds(wall_s=30.0, keep_bytes=4 * MIB, total_bytes=8 * MIB)
MOST_TEMPLATES = 8
LONGEST_STUDIED = MIB
LONGEST_VOCABULARY = 64 * MIB
CHILD = "template_child.py"
Outcome = Literal["rendered", "refused", "failed", "too_long", "too_slow", "not_ended"]


class Conversation(Shape, frozen=True, kw_only=True):
    """What a template made of one of the fixed conversations."""

    name: str
    """Which: `user`, `system`, `multi-turn`, `tools`, `tool-call`, `thinking-on`, ..."""
    outcome: Outcome
    """Whether there is a text, or why not; `refused` is the template's own decision."""
    detail: str = ""
    """The template's or the engine's words where there is none."""
    bytes: int | None = None
    """Length of the text."""
    sha256: str | None = None
    """Digest of the text, in hex: the template's fingerprint for this conversation."""


class Construct(Shape, frozen=True, kw_only=True):
    """Something that has no business in a chat template."""

    kind: str
    """`private-attribute`, `another-file`, `large-loop`, `power`, `repetition`, `hidden-characters`, ..."""
    line: int
    """Line of the template."""
    detail: str
    """What it is."""
    severe: bool
    """Whether it can do harm."""


class Supports(Shape, frozen=True, kw_only=True):
    """What a template has a place for, by what it rendered; none where it did not render."""

    system: bool | None
    """A system message."""
    multi_turn: bool | None
    """A conversation of several turns."""
    tools: bool | None
    """Descriptions of tools."""
    tool_calls: bool | None
    """What the model asked of a tool, and what that answered."""
    parts: bool | None
    """Content as a list of parts."""
    thinking_switch: bool | None
    """`enable_thinking` changes what it renders."""
    reasoning: bool | None
    """Earlier reasoning is shown to the model again."""
    generation_prompt: bool | None
    """`add_generation_prompt` changes what it renders."""
    any_order: bool | None
    """Two messages of a user in a row."""


class TemplateFacts(Shape, frozen=True, kw_only=True):
    """One chat template."""

    name: str
    """`default`, the name of a variant, or the path of a file."""
    origin: Literal["model", "file"]
    """Whether it is the model's own."""
    bytes: Fact[int]
    """Length of its text."""
    sha256: Fact[str]
    """Digest of its text in hex."""
    compiles: Fact[bool]
    """Whether jinja2 compiles it in its immutable sandbox."""
    error: str | None
    """Why it does not compile."""
    conversations: tuple[Conversation, ...]
    """What it made of each of the fixed conversations."""
    supports: Fact[Supports]
    """What it has a place for."""
    constructs: tuple[Construct, ...]
    """What has no business in it."""
    variables: tuple[str, ...]
    """Variables it uses beyond those that every chat has."""
    turn_end: Fact[str]
    """The marker after an assistant's message."""
    turn_end_token: Fact[bool]
    """Whether that marker is one token of the vocabulary."""
    starts_with_bos: Fact[bool]
    """Whether its text begins with the first token itself."""


class TemplatesFacts(Shape, frozen=True, kw_only=True):
    """The templates of a model, and those that were named."""

    templates: Fact[tuple[TemplateFacts, ...]]
    """Each template; the default one first."""


class _Place(msgspec.Struct, frozen=True):
    """Where a template lies."""

    name: str
    origin: Literal["model", "file"]
    path: str
    offset: int
    length: int


def collect_templates(system: System, probe: Probe, files: Sequence[str] = ()) -> TemplatesFacts:
    """Study the templates of a model and further ones in files, each in a bounded child."""
    source = Source(kind="file", name=probe.path)
    places: list[_Place] = []
    found: list[TemplateFacts] = []
    for path in files:
        try:
            with system.open_regular(path) as file:
                places.append(_Place(path, "file", path, 0, file.size_bytes))
        except OSError as error:
            gap = unknown_from_os_error(Source(kind="file", name=path), error)
            found.append(_not_studied(_Place(path, "file", path, 0, 0), gap, gap))
    places += _own_templates(probe)
    found += [_study(system, probe, place) for place in places[:MOST_TEMPLATES]]
    if not found:
        detail = f"{probe.path}: there is no chat template"
        return TemplatesFacts(templates=Unknown(why="absent", detail=detail, source=source))
    return TemplatesFacts(templates=known(tuple(found), source))


def _own_templates(probe: Probe) -> list[_Place]:
    main = probe.main
    if main is None or main.header is None:
        return []
    places = [
        _Place(key[len(TEMPLATE_KEY) + 1 :][:64] or "default", "model", main.path, value.offset, value.length)
        for key, entry in main.header.entries.items()
        if key == TEMPLATE_KEY or key.startswith(f"{TEMPLATE_KEY}.")
        if isinstance(value := entry.value, Text)
    ]
    return sorted(places, key=lambda place: place.name != "default")


def _study(system: System, probe: Probe, place: _Place) -> TemplateFacts:
    source = Source(kind="file", name=place.path)
    try:
        with system.open_regular(place.path) as file:
            data = read_bytes(file, Text(place.offset, place.length, ""), limit_bytes=LONGEST_TEMPLATE)
    except OSError as error:
        gap = unknown_from_os_error(source, error)
        return _not_studied(place, gap, gap)
    digest = known(hashlib.sha256(data).hexdigest(), source)
    if place.length > LONGEST_STUDIED:
        detail = f"{place.name}: {place.length} bytes are more than the {LONGEST_STUDIED} that we compile"
        return _not_studied(place, Unknown(why="unsupported", detail=detail, source=source), digest)
    if importlib.util.find_spec("jinja2") is None:
        detail = "jinja2 is not installed: pip install jinja2"
        return _not_studied(place, Unknown(why="unsupported", detail=detail, source=source), digest)
    done = system.run(_argv(place, probe), bounds=BOUNDS)
    return _facts(system, probe, place, digest, done)


def _argv(place: _Place, probe: Probe) -> list[str]:
    import llamaops.system

    child = os.path.join(os.path.dirname(os.path.abspath(llamaops.system.__file__)), CHILD)
    bos, eos = (_argument(_token_text(probe, role)) for role in ("bos", "eos"))
    return [sys.executable, "-I", child, place.path, str(place.offset), str(place.length), bos, eos]


def _argument(text: str) -> str:
    return text.replace("\0", "")[:256]


def _token_text(probe: Probe, role: str) -> str:
    from llamaops.facts.gguf_probe import special_ids

    header = probe.main.header if probe.main is not None else None
    number = special_ids(header).get(role) if header is not None else None
    return probe.texts.get(number, "") if number is not None else ""


def _not_studied(place: _Place, gap: Unknown, digest: Fact[str]) -> TemplateFacts:
    return TemplateFacts(
        name=place.name,
        origin=place.origin,
        bytes=known(place.length, digest.source) if isinstance(digest, Known) else digest,
        sha256=digest,
        compiles=gap,
        error=None,
        conversations=(),
        supports=gap,
        constructs=(),
        variables=(),
        turn_end=gap,
        turn_end_token=gap,
        starts_with_bos=gap,
    )


def _facts(system: System, probe: Probe, place: _Place, digest: Fact[str], done: Completed) -> TemplateFacts:
    source = Source(kind="library", name=f"jinja2's immutable sandbox on {place.name}")
    lines = list(_lines(done.stdout.text))
    head = lines[0] if lines else {}
    if "compiles" not in head:
        said = (done.stderr.text.strip().splitlines() or ["nothing"])[-1][:200]
        detail = f"the child that compiles templates did not answer in time or at all; it said {said}"
        return _not_studied(place, Unknown(why="failed", detail=detail, source=source), digest)
    reading = template_reading.Reading(lines, source)
    line = f" (line {head['line']})" if head.get("line") else ""
    ending = reading.turn_end()
    token = _is_one_token(system, probe, ending) if isinstance(ending, Known) else ending
    return TemplateFacts(
        name=place.name,
        origin=place.origin,
        bytes=known(place.length, digest.source),
        sha256=digest,
        compiles=known(bool(head["compiles"]), source),
        error=None if head["compiles"] else f"{head.get('detail', '')}{line}",
        conversations=tuple(msgspec.convert(one, Conversation) for one in reading.outcomes()),
        supports=_supports(reading, source),
        constructs=tuple(msgspec.convert(one, Construct) for one in head.get("constructs", ())),
        variables=tuple(head.get("variables", ())),
        turn_end=ending,
        turn_end_token=token,
        starts_with_bos=reading.starts_with(_token_text(probe, "bos")),
    )


def _supports(reading: template_reading.Reading, source: Source) -> Fact[Supports]:
    if not reading.texts:
        return Unknown(why="failed", detail="the template rendered no conversation", source=source)
    return known(Supports(**reading.supports()), source)


def _lines(text: str) -> Iterable[dict[str, Any]]:
    for line in text.splitlines():
        try:
            found = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(found, dict):
            yield found


def _is_one_token(system: System, probe: Probe, ending: Known[str]) -> Fact[bool]:
    """Look for a text among the tokens, without making objects of them."""
    main = probe.main
    entry = main.header.entries.get("tokenizer.ggml.tokens") if main is not None and main.header else None
    if main is None or entry is None or not isinstance(entry.value, Array) or not entry.value.marks:
        return not_attempted("the model has no vocabulary of its own")
    source = Source(kind="file", name=main.path)
    wanted = ending.value.encode()
    wanted = len(wanted).to_bytes(8, "little") + wanted
    try:
        with system.open_regular(main.path) as file:
            start = entry.value.offset
            end = min(
                companion_tokens.offset_of(file, entry.value, entry.value.count), start + LONGEST_VOCABULARY
            )
            for at in range(start, end, MIB):
                if wanted in file.read_at(at, min(MIB + len(wanted), end - at)):
                    return known(True, source)  # noqa: FBT003 - a fact's value
    except StopReadingError as error:
        return Unknown(why="unparsed", detail=str(error), source=source)
    except OSError as error:
        return unknown_from_os_error(source, error)
    return known(False, source)  # noqa: FBT003 - a fact's value
