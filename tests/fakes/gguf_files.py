"""Write tiny GGUF files, right or wrong in one thing, with the standard library only."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llamaops.facts.ggml_types import BLOCKS

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {
    U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?",
    U64: "Q", I64: "q", F64: "d",
}  # fmt: skip
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
TOKENS = ("<unk>", "<s>", "</s>", "a", "b", "c", " ", "\N{LATIN SMALL LETTER E WITH ACUTE}")


@dataclass(frozen=True)
class Array:
    """An array value of some element type; `announced` is the count to write instead of the true one."""

    element_type: int
    values: Sequence[Any]
    announced: int | None = None


@dataclass(frozen=True)
class Raw:
    """Bytes to write as they are, after the type number."""

    type_id: int
    data: bytes


@dataclass(frozen=True)
class FakeTensor:
    """A tensor; `offset` and `size` replace the ones that follow from shape and type."""

    name: str
    shape: tuple[int, ...] = (32, 2)
    type_id: int = 0
    offset: int | None = None
    data: bytes | None = None
    dimension_count: int | None = None

    @property
    def size(self) -> int:
        _, elements_per_block, block_bytes = BLOCKS.get(self.type_id, ("", 1, 0))
        elements = 1
        for length in self.shape:
            elements *= length
        return elements // elements_per_block * block_bytes


# The type of a value may be left out where Python's own type says enough.
Value = Any
Keys = list[tuple[str, Value]]


def model_keys(architecture: str = "llama") -> Keys:
    """The keys of a small complete model."""
    return [
        ("general.architecture", architecture),
        ("general.type", "model"),
        ("general.name", "Tiny Test"),
        ("general.license", "apache-2.0"),
        ("general.file_type", (U32, 0)),
        (f"{architecture}.context_length", (U32, 128)),
        (f"{architecture}.embedding_length", (U32, 32)),
        (f"{architecture}.block_count", (U32, 1)),
        (f"{architecture}.feed_forward_length", (U32, 64)),
        (f"{architecture}.attention.head_count", (U32, 4)),
        (f"{architecture}.attention.head_count_kv", (U32, 2)),
        (f"{architecture}.rope.freq_base", (F32, 10000.0)),
        ("tokenizer.ggml.model", "llama"),
        ("tokenizer.ggml.pre", "default"),
        ("tokenizer.ggml.tokens", Array(STRING, TOKENS)),
        ("tokenizer.ggml.scores", Array(F32, [0.0] * len(TOKENS))),
        ("tokenizer.ggml.token_type", Array(I32, [1] * len(TOKENS))),
        ("tokenizer.ggml.bos_token_id", (U32, 1)),
        ("tokenizer.ggml.eos_token_id", (U32, 2)),
        ("tokenizer.ggml.add_bos_token", True),
        ("tokenizer.chat_template", TEMPLATE),
    ]


def model_tensors() -> list[FakeTensor]:
    return [
        FakeTensor("token_embd.weight", (32, 8), 8),
        FakeTensor("blk.0.attn_q.weight", (32, 32), 2),
        FakeTensor("output_norm.weight", (32,), 0),
    ]


@dataclass(frozen=True)
class FakeGguf:
    """A GGUF file; each field that is not None replaces what would be right."""

    keys: Keys = field(default_factory=model_keys)
    tensors: Sequence[FakeTensor] = field(default_factory=model_tensors)
    magic: bytes = b"GGUF"
    version: int = 3
    order: str = "<"
    tensor_count: int | None = None
    key_count: int | None = None
    alignment: int = 32
    fill: int = 0x5A
    tail: bytes = b""

    def with_key(self, key: str, value: Value) -> FakeGguf:
        """A copy in which one key has another value, or is new."""
        kept = [(name, old) for name, old in self.keys if name != key]
        return replace(self, keys=[*kept, (key, value)])

    def without_key(self, key: str) -> FakeGguf:
        return replace(self, keys=[(name, old) for name, old in self.keys if name != key])

    def header(self) -> bytes:
        tensor_count = len(self.tensors) if self.tensor_count is None else self.tensor_count
        key_count = len(self.keys) if self.key_count is None else self.key_count
        counts = "II" if self.version == 1 else "QQ"
        parts = [
            self.magic,
            struct.pack(self.order + "I", self.version),
            struct.pack(self.order + counts, tensor_count, key_count),
        ]
        parts += [self._string(key) + self._value(value) for key, value in self.keys]
        parts += self._tensor_table()
        return b"".join(parts)

    def data_start(self) -> int:
        return -(-len(self.header()) // self.alignment) * self.alignment

    def to_bytes(self) -> bytes:
        header = self.header()
        if not self.tensors:
            return header + self.tail
        out = bytearray(header.ljust(self.data_start(), b"\0"))
        start = len(out)
        offset = 0
        for tensor in self.tensors:
            data = tensor.data if tensor.data is not None else bytes([self.fill]) * tensor.size
            at = start + offset
            if at + len(data) > len(out):
                out += bytes(at + len(data) - len(out))
            out[at : at + len(data)] = data
            offset = -(-(offset + tensor.size) // self.alignment) * self.alignment
        if len(out) < start + offset and all(tensor.data is None for tensor in self.tensors):
            out += bytes(start + offset - len(out))  # as every writer does, the last tensor is padded too
        return bytes(out) + self.tail

    def _tensor_table(self) -> list[bytes]:
        parts, offset = [], 0
        for tensor in self.tensors:
            count = len(tensor.shape) if tensor.dimension_count is None else tensor.dimension_count
            parts.append(self._string(tensor.name) + struct.pack(self.order + "I", count))
            parts.append(struct.pack(f"{self.order}{len(tensor.shape)}Q", *tensor.shape))
            where = offset if tensor.offset is None else tensor.offset
            parts.append(struct.pack(self.order + "IQ", tensor.type_id, where))
            offset = -(-(offset + tensor.size) // self.alignment) * self.alignment
        return parts

    def _string(self, text: str | bytes) -> bytes:
        data = text.encode() if isinstance(text, str) else text
        return struct.pack(self.order + "Q", len(data)) + data

    def _value(self, value: Value) -> bytes:
        type_id, data = self._typed(value)
        return struct.pack(self.order + "I", type_id) + data

    def _typed(self, value: Value) -> tuple[int, bytes]:
        match value:
            case Raw(type_id, data):
                return type_id, data
            case Array(element_type, values, announced):
                count = len(values) if announced is None else announced
                return ARRAY, struct.pack(self.order + "IQ", element_type, count) + self._elements(
                    element_type, values
                )
            case str() | bytes():
                return STRING, self._string(value)
            case bool():
                return BOOL, struct.pack("?", value)
            case (int() as type_id, number):
                return type_id, struct.pack(self.order + CODES[type_id], number)
            case _:
                raise TypeError(value)

    def _elements(self, element_type: int, values: Sequence[Any]) -> bytes:
        if element_type == STRING:
            return b"".join(self._string(value) for value in values)
        return struct.pack(f"{self.order}{len(values)}{CODES[element_type]}", *values)


def shards(model: FakeGguf | None = None, *, count: int = 3) -> list[bytes]:
    """The files of a split model, with its metadata in the first, one tensor in each as far as they go."""
    whole = model or FakeGguf()
    per_file: list[list[FakeTensor]] = [[] for _ in range(count)]
    for index, tensor in enumerate(whole.tensors):
        per_file[min(index, count - 1)].append(tensor)
    return [
        replace(
            whole,
            keys=[*(whole.keys if number == 0 else []), *split_keys(number, count, len(whole.tensors))],
            tensors=tensors,
        ).to_bytes()
        for number, tensors in enumerate(per_file)
    ]


def split_keys(number: int, count: int, tensors: int) -> Keys:
    return [
        ("split.no", (U16, number)),
        ("split.count", (U16, count)),
        ("split.tensors.count", (I32, tensors)),
    ]


def shard_names(prefix: str, count: int = 3) -> list[str]:
    return [f"{prefix}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1)]


def big_string(length: int) -> Raw:
    """A string value that announces a length and has four bytes."""
    return Raw(STRING, struct.pack("<Q", length) + b"abcd")
