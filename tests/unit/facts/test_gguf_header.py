"""Headers, right and wrong in one thing each; a wrong one never raises and never takes memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from dataclasses import replace

import pytest

from llamaops.facts.gguf_header import Header, read_header
from llamaops.facts.gguf_walk import (
    CHUNK_BYTES,
    MANY,
    MARK_EVERY,
    Array,
    Text,
    read_bytes,
    read_numbers,
    read_strings,
)
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeOpenFile


def header_of(file: g.FakeGguf | bytes) -> Header:
    data = file if isinstance(file, bytes) else file.to_bytes()
    return read_header(FakeOpenFile(data), "/models/m.gguf")


def slugs(header: Header) -> set[str]:
    return {problem.slug for problem in header.problems}


def array(header: Header, key: str) -> Array:
    value = header.entries[key].value
    assert isinstance(value, Array)
    return value


def test_a_right_header_is_read_to_its_end() -> None:
    file = g.FakeGguf()
    header = header_of(file)
    assert header.problems == []
    assert (header.reached, header.version, header.alignment) == ("end", 3, 32)
    assert header.data_start == file.data_start()
    assert [(tensor.name, tensor.dimensions, tensor.size_bytes) for tensor in header.tensors] == [
        ("token_embd.weight", (32, 8), 272),
        ("blk.0.attn_q.weight", (32, 32), 576),
        ("output_norm.weight", (32,), 128),
    ]
    assert header.expected_bytes == len(file.to_bytes())


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        ((g.U8, 255), "u8", 255),
        ((g.I8, -1), "i8", -1),
        ((g.U16, 65535), "u16", 65535),
        ((g.I16, -2), "i16", -2),
        ((g.U32, 2**32 - 1), "u32", 2**32 - 1),
        ((g.I32, -3), "i32", -3),
        ((g.F32, 0.5), "f32", 0.5),
        ((g.U64, 2**64 - 1), "u64", 2**64 - 1),
        ((g.I64, -4), "i64", -4),
        ((g.F64, 0.25), "f64", 0.25),
        (True, "bool", True),
    ],
)
def test_scalars(value: object, name: str, expected: object) -> None:
    entry = header_of(g.FakeGguf().with_key("x", value)).entries["x"]
    assert (entry.type_name, entry.value) == (name, expected)
    assert type(entry.value) is type(expected)


def test_version_2_has_the_same_layout() -> None:
    header = header_of(replace(g.FakeGguf(), version=2))
    assert (header.reached, header.version, header.problems) == ("end", 2, [])


def test_another_alignment_moves_the_data() -> None:
    file = replace(g.FakeGguf().with_key("general.alignment", (g.U32, 1024)), alignment=1024)
    header = header_of(file)
    assert header.problems == []
    assert header.data_start == file.data_start()
    assert header.data_start is not None
    assert header.data_start % 1024 == 0


def test_strings_of_a_long_array_are_found_over_chunks_and_marks() -> None:
    words = [f"word {number} " + "x" * (number % 300) for number in range(3 * MARK_EVERY + 7)]
    data = g.FakeGguf().with_key("tokenizer.ggml.tokens", g.Array(g.STRING, words)).to_bytes()
    assert len(data) > 2 * CHUNK_BYTES
    header = header_of(data)
    assert header.problems == []
    wanted = [0, 1, MARK_EVERY - 1, MARK_EVERY, 2 * MARK_EVERY + 5, len(words) - 1, len(words), -1, 10**9]
    found = read_strings(FakeOpenFile(data), array(header, "tokenizer.ggml.tokens"), wanted)
    assert found == {number: words[number] for number in wanted if 0 <= number < len(words)}


def test_a_vocabulary_of_short_and_long_strings_is_stepped_over_exactly() -> None:
    # Above MANY the pattern decides; lengths around its limit, empty strings and NUL bytes are in it.
    dice = random.Random(4)
    words = [bytes(dice.randrange(3) for _ in range(dice.choice([0, 1, 7, 63, 64, 65]))) for _ in range(MANY)]
    words[5000] = b"x" * 70_000
    words[6000:6600] = [b"tok"] * 600
    data = g.FakeGguf().with_key("words", g.Array(g.STRING, words)).with_key("after", "here").to_bytes()
    header = header_of(data)
    assert header.problems == []
    assert "after" in header.entries
    found = read_strings(FakeOpenFile(data), array(header, "words"), range(0, MANY, 97))
    assert found == {number: words[number][:1024].decode() for number in range(0, MANY, 97)}


def test_high_bytes_of_a_length_are_not_overlooked() -> None:
    # The low byte alone would find a string of three bytes here.
    data = bytearray(g.FakeGguf().with_key("words", g.Array(g.STRING, ["tok"] * (MANY + 300))).to_bytes())
    at = data.find(struct.pack("<Q", 3) + b"tok", len(data) // 2)
    data[at + 7] = 0x40
    assert slugs(header_of(bytes(data))) == {"string-too-long"}


def test_a_string_longer_than_a_chunk_is_stepped_over() -> None:
    words = ["a", "b" * (3 * CHUNK_BYTES), "c"]
    data = g.FakeGguf().with_key("words", g.Array(g.STRING, words)).to_bytes()
    header = header_of(data)
    assert header.problems == []
    assert read_strings(FakeOpenFile(data), array(header, "words"), [2]) == {2: "c"}


def test_numbers_and_long_text_are_read_when_asked_for() -> None:
    text = "t" * 5000
    file = g.FakeGguf().with_key("n", g.Array(g.I32, [1, -2, 3])).with_key("t", text)
    data = file.to_bytes()
    header = header_of(data)
    assert read_numbers(FakeOpenFile(data), array(header, "n")) == (1, -2, 3)
    value = header.entries["t"].value
    assert isinstance(value, Text)
    assert len(value.text) == 1024
    assert read_bytes(FakeOpenFile(data), value) == text.encode()


def test_undecodable_text_is_kept_with_replacements() -> None:
    value = header_of(g.FakeGguf().with_key("x", b"\xff\xfeab")).entries["x"].value
    assert isinstance(value, Text)
    assert value.text == "\ufffd\ufffdab"


def tensors(*wrong: g.FakeTensor) -> g.FakeGguf:
    return replace(g.FakeGguf(), tensors=[*g.model_tensors(), *wrong])


def huge(count: int) -> g.FakeGguf:
    return g.FakeGguf().with_key("huge", g.Array(g.STRING, ["a"], announced=count))


WRONG: list[tuple[str, g.FakeGguf, str]] = [
    ("version 1", replace(g.FakeGguf(), version=1), "version-unsupported"),
    ("version 0", replace(g.FakeGguf(), version=0), "version-unsupported"),
    ("version 4", replace(g.FakeGguf(), version=4), "version-unsupported"),
    ("version 99", replace(g.FakeGguf(), version=99), "version-unsupported"),
    ("big-endian", replace(g.FakeGguf(), order=">"), "big-endian"),
    ("2^62 tensors", replace(g.FakeGguf(), tensor_count=2**62), "count-impossible"),
    ("2^64-1 tensors", replace(g.FakeGguf(), tensor_count=2**64 - 1), "count-impossible"),
    ("2^62 keys", replace(g.FakeGguf(), key_count=2**62), "count-impossible"),
    ("a tensor too many", replace(g.FakeGguf(), tensor_count=4), "tensor-misaligned"),
    ("string of 2^62", g.FakeGguf().with_key("x", g.big_string(2**62)), "string-too-long"),
    ("string of 2^64-1", g.FakeGguf().with_key("x", g.big_string(2**64 - 1)), "string-too-long"),
    ("string beyond the end", g.FakeGguf().with_key("x", g.big_string(2**29)), "header-truncated"),
    ("array of 2^62", huge(2**62), "count-impossible"),
    ("array of 2^29", huge(2**29), "header-truncated"),
    (
        "long string in an array",
        g.FakeGguf().with_key("x", g.Raw(g.ARRAY, struct.pack("<IQQ", g.STRING, 1, 2**62))),
        "string-too-long",
    ),
    (
        "longest string in an array",
        g.FakeGguf().with_key("x", g.Raw(g.ARRAY, struct.pack("<IQQ", g.STRING, 1, 2**64 - 1))),
        "string-too-long",
    ),
    (
        "array of arrays",
        g.FakeGguf().with_key("x", g.Raw(g.ARRAY, struct.pack("<IQ", g.ARRAY, 1))),
        "array-nested",
    ),
    ("value type 13", g.FakeGguf().with_key("x", g.Raw(13, b"")), "value-type-unknown"),
    (
        "element type 77",
        g.FakeGguf().with_key("x", g.Raw(g.ARRAY, struct.pack("<IQ", 77, 1))),
        "value-type-unknown",
    ),
    (
        "key twice",
        replace(g.FakeGguf(), keys=[*g.model_keys(), ("general.name", "again")]),
        "key-duplicate",
    ),
    ("key without a name", g.FakeGguf().with_key("", "x"), "key-empty"),
    ("alignment 33", g.FakeGguf().with_key("general.alignment", (g.U32, 33)), "alignment-invalid"),
    ("alignment 0", g.FakeGguf().with_key("general.alignment", (g.U32, 0)), "alignment-invalid"),
    ("alignment u64", g.FakeGguf().with_key("general.alignment", (g.U64, 32)), "alignment-invalid"),
    ("tensor twice", tensors(g.FakeTensor("output_norm.weight")), "tensor-duplicate"),
    ("name of 64 bytes", tensors(g.FakeTensor("n" * 64)), "tensor-name-too-long"),
    (
        "name of 33 characters",
        tensors(g.FakeTensor("\N{GREEK SMALL LETTER PI}" * 33)),
        "tensor-name-too-long",
    ),
    ("five dimensions", tensors(g.FakeTensor("t", (1, 1, 1, 1, 32))), "dimensions-impossible"),
    ("2^32 dimensions", tensors(g.FakeTensor("t", dimension_count=2**32 - 1)), "dimensions-impossible"),
    ("shape overflows", tensors(g.FakeTensor("t", (2**40, 2**40), data=b"")), "dimensions-impossible"),
    ("negative dimension", tensors(g.FakeTensor("t", (2**63, 1), data=b"")), "dimensions-impossible"),
    ("no elements", tensors(g.FakeTensor("t", (0, 32))), "dimensions-impossible"),
    ("half a block", tensors(g.FakeTensor("t", (33,), 8)), "row-not-whole-blocks"),
    ("unknown type", tensors(g.FakeTensor("t", (32,), 4711)), "type-unknown"),
    ("removed type", tensors(g.FakeTensor("t", (32,), 31)), "type-removed"),
    ("misaligned", tensors(g.FakeTensor("t", offset=1001)), "tensor-misaligned"),
    ("overlapping", tensors(g.FakeTensor("t", offset=0)), "tensor-overlap"),
    ("gap", tensors(g.FakeTensor("t", offset=2**20)), "tensor-gap"),
]


@pytest.mark.parametrize(("file", "slug"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_is_named(file: g.FakeGguf, slug: str) -> None:
    header = header_of(file)
    assert slug in slugs(header)
    for problem in header.problems:
        assert "\n" not in problem.sentence
        assert len(problem.sentence) < 300
        assert problem.place == "/models/m.gguf"


def test_a_name_of_63_bytes_is_right() -> None:
    assert header_of(tensors(g.FakeTensor("n" * 63))).problems == []


def test_a_file_cut_anywhere_in_its_header_is_truncated() -> None:
    file = g.FakeGguf()
    data, end = file.to_bytes(), len(file.header())
    for length in range(4, end):
        header = header_of(data[:length])
        assert slugs(header) <= {"header-truncated", "count-impossible"}, length
        assert header.problems, length
        assert header.reached != "end"
        assert header.expected_bytes is None


def test_only_a_few_problems_of_a_kind_are_kept() -> None:
    same = [g.FakeTensor("t") for _ in range(500)]
    header = header_of(replace(g.FakeGguf(), tensors=same))
    assert [problem.slug for problem in header.problems] == ["tensor-duplicate"] * 4


def test_more_text_than_we_keep_ends_the_reading() -> None:
    keys = [(f"{number}" + "k" * 60_000, True) for number in range(200)]
    header = header_of(replace(g.FakeGguf(), keys=keys))
    assert slugs(header) == {"beyond-our-limits"}


def test_memory_stays_small_with_a_large_vocabulary() -> None:
    words = g.Array(g.STRING, [f"token {number}" for number in range(100_000)])
    file = FakeOpenFile(g.FakeGguf().with_key("tokenizer.ggml.tokens", words).to_bytes())
    tracemalloc.start()
    try:
        header = read_header(file, "m")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert header.problems == []
    assert peak < 2 * 2**20


def test_a_file_that_shrinks_while_it_is_read_is_named() -> None:
    data = g.FakeGguf().to_bytes()
    header = read_header(FakeOpenFile(data[:400], size=len(data)), "m")
    assert slugs(header) == {"file-changed"}


def test_a_read_error_is_not_hidden() -> None:
    data = g.FakeGguf().to_bytes()
    with pytest.raises(OSError, match="Input/output error"):
        read_header(FakeOpenFile(data, failing_from=100), "m")


def test_the_end_is_not_known_behind_a_tensor_of_unknown_type() -> None:
    assert header_of(tensors(g.FakeTensor("t", (32,), 4711))).expected_bytes is None
