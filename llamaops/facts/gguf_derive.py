"""Turn what was read of a model's files into facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llamaops.facts import gguf_probe
from llamaops.facts.ggml_types import FILE_TYPES, type_name
from llamaops.facts.gguf_header import INT64_MAX, Entry, Header, Tensor
from llamaops.facts.gguf_probe import Part, Probe
from llamaops.facts.gguf_shapes import MetadataValue, RopeScaling, ShardFacts, SpecialToken, TensorType
from llamaops.facts.gguf_walk import Array, Text
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why, known

MOST_METADATA = 256
CUT_CHARACTERS = 200
GUESSED_FILE_TYPE = 1024

AnyFact = Fact[Any]
PerLayer = int | tuple[int, ...]


class Reading:
    """Turns what was read into facts."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.source = Source(kind="file", name=probe.main.path if probe.main else probe.path)
        self.header = self._header()

    def _header(self) -> Header | Unknown:
        main = self.probe.main
        if main is not None and main.header is not None:
            return main.header
        return Unknown(why=self.probe.why, detail=self.probe.detail, source=self.source)

    @property
    def read(self) -> Header:
        """Return the header; only for callers that have made sure that there is one."""
        assert isinstance(self.header, Header)  # noqa: S101 - narrows a type that `observed` is only called with
        return self.header

    def unknown(self, why: Why, detail: str) -> Unknown:
        """Return a fact that is not known."""
        return Unknown(why=why, detail=f"{self.source.name}: {detail}", source=self.source)

    def lacking(self, key: str) -> Unknown:
        """Return why a key has no value: absent, or not reached."""
        if self.read.reached in {"magic", "counts", "keys"}:
            return self.unknown("unparsed", f"the header could not be read to its end, {key} was not reached")
        if self.probe.first_is_missing:
            return self.unknown("absent", f"the first part of the model is not there, which holds {key}")
        return self.unknown("absent", f"there is no key {key}")

    def entry(self, key: str, *types: type) -> Entry | Unknown:
        """Return a value of the types wanted."""
        entry = self.read.entries.get(key)
        if entry is None:
            return self.lacking(key)
        if type(entry.value) not in types:
            return self.unknown("unparsed", f"{key} is of type {entry.type_name}")
        return entry

    def text(self, key: str) -> Fact[str]:
        """Return a text."""
        entry = self.entry(key, Text)
        return entry if isinstance(entry, Unknown) else known(_shown(entry), self.source)

    def number(self, key: str) -> Fact[int]:
        """Return a whole number."""
        entry = self.entry(key, int)
        if isinstance(entry, Unknown):
            return entry
        if not isinstance(entry.value, int) or not 0 <= entry.value <= INT64_MAX:
            return self.unknown("unparsed", f"{key} is {_shown(entry)}")
        return known(entry.value, self.source)

    def flag(self, key: str) -> Fact[bool]:
        """Return a boolean."""
        entry = self.entry(key, bool)
        return entry if isinstance(entry, Unknown) else known(bool(entry.value), self.source)

    def real(self, key: str) -> Fact[float]:
        """Return a finite number."""
        entry = self.entry(key, float, int)
        if isinstance(entry, Unknown):
            return entry
        value = entry.value
        if not isinstance(value, float | int) or not abs(value) < float("inf"):
            return self.unknown("unparsed", f"{key} is {_shown(entry)}")
        return known(float(value), self.source)

    def per_layer(self, key: str) -> Fact[PerLayer]:
        """Return a whole number, or one per layer."""
        entry = self.entry(key, int, Array)
        if isinstance(entry, Unknown):
            return entry
        if not isinstance(entry.value, Array):
            return _widen(self.number(key))
        numbers = self.probe.numbers.get(key, ())
        if len(numbers) != entry.value.count or not all(
            type(n) is int and 0 <= n <= INT64_MAX for n in numbers
        ):
            return self.unknown(
                "unparsed", f"{key} is an {entry.type_name} with {entry.value.count} elements"
            )
        return known(tuple(int(n) for n in numbers), self.source)

    def probe_declared(self) -> str | None:
        """Return the declared mixture in words; None where the header has none that we know."""
        fact = _declared_file_type(self)
        return fact.value if isinstance(fact, Known) and not fact.value.startswith("unknown") else None

    def architecture_key(self, name: str) -> str:
        """Return the name of a key that belongs to the architecture."""
        entry = self.read.entries.get("general.architecture")
        text = entry.value.text if entry and isinstance(entry.value, Text) else "ARCH"
        return f"{text}.{name}"


def _widen(fact: Fact[int]) -> Fact[PerLayer]:
    return fact if isinstance(fact, Unknown) else known(fact.value, fact.source)


def observed(reading: Reading) -> dict[str, AnyFact]:
    """Return every fact that the headers give; none where there is no header."""
    header = reading.header
    if isinstance(header, Unknown):
        return {}
    there = {
        "header_read": _header_read(reading),
        "version": _or_unparsed(reading, header.version, "its version was not read"),
        "alignment_bytes": _or_unparsed(reading, header.alignment, "its alignment was not read"),
        "engine_path": known(reading.probe.engine_path, reading.source),
        "architecture": reading.text("general.architecture"),
        "name": reading.text("general.name"),
        "declared_file_type": _declared_file_type(reading),
        "shards": known(tuple(_shard(part) for part in reading.probe.parts), reading.source),
        "metadata": known(_metadata(header), reading.source),
    }
    return there | _tensor_facts(reading) | _architecture_facts(reading) | _tokenizer_facts(reading)


def _header_read(reading: Reading) -> AnyFact:
    for part in reading.probe.parts:
        for problem in part.header.problems if part.header else ():
            if problem.slug == "beyond-our-limits":
                return Unknown(why="unsupported", detail=problem.sentence, source=reading.source)
    whole = all(part.header is not None and part.header.reached == "end" for part in reading.probe.parts)
    return known(whole, reading.source)


def _or_unparsed(reading: Reading, value: int | None, detail: str) -> AnyFact:
    return reading.unknown("unparsed", detail) if value is None else known(value, reading.source)


def _declared_file_type(reading: Reading) -> AnyFact:
    number = reading.number("general.file_type")
    if isinstance(number, Unknown):
        return number
    declared = number.value & ~GUESSED_FILE_TYPE
    return known(FILE_TYPES.get(declared, f"unknown file type {declared}"), number.source)


def _shard(part: Part) -> ShardFacts:
    header = part.header
    return ShardFacts(
        path=part.path,
        number=part.number,
        file_bytes=part.file_bytes,
        expected_bytes=None if header is None else header.expected_bytes,
        tensor_count=None if header is None else header.tensor_count,
    )


def _metadata(header: Header) -> tuple[MetadataValue, ...]:
    shown = (item for item in header.entries.items() if not item[0].startswith("tokenizer.chat_template"))
    return tuple(
        MetadataValue(key=key[:CUT_CHARACTERS], type=entry.type_name, value=_shown(entry))
        for (key, entry), _ in zip(shown, range(MOST_METADATA), strict=False)
    )


def _shown(entry: Entry) -> str:
    match entry.value:
        case Text(text=text):
            return text[:CUT_CHARACTERS]
        case Array(count=count):
            return f"{count} elements"
        case bool(value):
            return "true" if value else "false"
        case value:
            return str(value)


def _tensor_facts(reading: Reading) -> dict[str, AnyFact]:
    """Return what the tables of tensors of all parts add up to."""
    names = (
        "tensor_count",
        "tensor_bytes",
        "parameter_count",
        "expected_bytes",
        "tensor_types",
        "bits_per_weight",
    )
    parts = [part.header for part in reading.probe.parts if part.header is not None]
    if reading.probe.missing:
        reason = reading.unknown("absent", f"of the model's parts {reading.probe.missing}")
        return dict.fromkeys(names, reason)
    if any(header.reached != "end" for header in parts) or len(parts) != len(reading.probe.parts):
        return dict.fromkeys(names, reading.unknown("unparsed", "the table of tensors could not be read"))
    tensors = [tensor for header in parts for tensor in header.tensors]
    sizes = _total(tensor.size_bytes for tensor in tensors)
    elements = _total(tensor.elements for tensor in tensors)
    expected = _total(header.expected_bytes for header in parts)
    no_size = reading.unknown("unsupported", "a tensor has a type or shape without a known size")
    per_weight = sizes * 8 / elements if sizes is not None and elements else None
    return {
        "tensor_count": known(len(tensors), reading.source),
        "tensor_bytes": no_size if sizes is None else known(sizes, reading.source),
        "parameter_count": no_size if elements is None else known(elements, reading.source),
        "expected_bytes": no_size if expected is None else known(expected, reading.source),
        "tensor_types": known(_tensor_types(tensors, sizes), reading.source),
        "bits_per_weight": no_size
        if per_weight is None
        else known(per_weight, Source(kind="computed", name="tensor_bytes * 8 / parameter_count")),
    }


def _total(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total if total <= INT64_MAX else None


def _tensor_types(tensors: list[Tensor], total_bytes: int | None) -> tuple[TensorType, ...]:
    groups: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.type_id, []).append(tensor)
    types = []
    for type_id, group in groups.items():
        size = _total(tensor.size_bytes for tensor in group)
        share = size / total_bytes if size is not None and total_bytes else None
        types.append(TensorType(type=type_name(type_id), tensors=len(group), bytes=size, share=share))
    return tuple(sorted(types, key=lambda one: (-(one.bytes or 0), one.type)))


def _architecture_facts(reading: Reading) -> dict[str, AnyFact]:
    key = reading.architecture_key
    there: dict[str, AnyFact] = {
        "context_length_tokens": reading.number(key("context_length")),
        "embedding_length": reading.number(key("embedding_length")),
        "block_count": reading.number(key("block_count")),
        "head_count": reading.per_layer(key("attention.head_count")),
        "head_count_kv": reading.per_layer(key("attention.head_count_kv")),
        "feed_forward_length": reading.per_layer(key("feed_forward_length")),
        "expert_count": reading.number(key("expert_count")),
        "expert_used_count": reading.number(key("expert_used_count")),
        "sliding_window_tokens": reading.number(key("attention.sliding_window")),
        "rope_freq_base": reading.real(key("rope.freq_base")),
        "rope_scaling": _rope_scaling(reading),
    }
    for name in ("key_length", "value_length"):
        there[name] = _head_length(reading, key(f"attention.{name}"), there)
    return there


def _head_length(reading: Reading, key: str, there: dict[str, AnyFact]) -> AnyFact:
    """Return the length in the header, else embedding length / heads, as the engine does."""
    given = reading.number(key)
    embedding, heads = there["embedding_length"], there["head_count"]
    if isinstance(given, Known) or isinstance(embedding, Unknown) or isinstance(heads, Unknown):
        return given
    if given.why != "absent" or not isinstance(heads.value, int) or not isinstance(embedding.value, int):
        return given
    if heads.value == 0:
        return given
    formula = Source(kind="computed", name="embedding_length / head_count")
    return known(embedding.value // heads.value, formula)


def _rope_scaling(reading: Reading) -> AnyFact:
    key = reading.architecture_key
    kind = reading.text(key("rope.scaling.type"))
    factor = reading.real(key("rope.scaling.factor"))
    trained = reading.number(key("rope.scaling.original_context_length"))
    if isinstance(kind, Unknown) and isinstance(factor, Unknown) and isinstance(trained, Unknown):
        return kind
    scaling = RopeScaling(
        type=kind.value if isinstance(kind, Known) else None,
        factor=factor.value if isinstance(factor, Known) else None,
        original_context_tokens=trained.value if isinstance(trained, Known) else None,
    )
    return known(scaling, reading.source)


def _tokenizer_facts(reading: Reading) -> dict[str, AnyFact]:
    probe = reading.probe
    default = probe.templates.get("default")
    variants = tuple(template for name, template in probe.templates.items() if name != "default")
    return {
        "vocabulary_size": _vocabulary_size(reading),
        "tokenizer_model": reading.text("tokenizer.ggml.model"),
        "pre_tokenizer": reading.text("tokenizer.ggml.pre"),
        "add_bos_token": reading.flag("tokenizer.ggml.add_bos_token"),
        "add_eos_token": reading.flag("tokenizer.ggml.add_eos_token"),
        "special_tokens": _special_tokens(reading),
        "chat_template": reading.lacking("tokenizer.chat_template")
        if default is None
        else known(default, reading.source),
        "chat_templates": reading.lacking("tokenizer.chat_template.*")
        if not variants
        else known(variants, reading.source),
    }


def _vocabulary_size(reading: Reading) -> AnyFact:
    entry = reading.entry("tokenizer.ggml.tokens", Array)
    if isinstance(entry, Entry) and isinstance(entry.value, Array):
        return known(entry.value.count, reading.source)
    return reading.number(reading.architecture_key("vocab_size"))


def _special_tokens(reading: Reading) -> AnyFact:
    ids = gguf_probe.special_ids(reading.read)
    if not ids:
        return reading.lacking("tokenizer.ggml.*_token_id")
    tokens = (SpecialToken(role=role, id=id_, text=reading.probe.texts.get(id_)) for role, id_ in ids.items())
    return known(tuple(tokens), reading.source)
