"""Our header reader against the `gguf` package's own reader, on a file that the package wrote."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from llamaops.facts.gguf_header import read_header
from llamaops.facts.gguf_walk import Array, Text, read_bytes, read_numbers, read_strings
from llamaops.system.files import RegularFile
from tests.fakes.tiny_model import write_tiny_model


@pytest.mark.parametrize("type_name", ["F32", "F16", "Q8_0"])
def test_keys_and_tensors_are_the_same(tmp_path: Path, type_name: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", type_name=type_name)
    theirs = gguf.GGUFReader(path)
    with RegularFile(str(path)) as file:
        ours = read_header(file, str(path))
        assert ours.problems == []
        fields = {name: one for name, one in theirs.fields.items() if not name.startswith("GGUF.")}
        assert list(ours.entries) == list(fields)
        for name, entry in ours.entries.items():
            expected = fields[name].contents()
            if isinstance(entry.value, Text):
                assert read_bytes(file, entry.value).decode() == expected
            elif not isinstance(entry.value, Array):
                assert entry.value == expected
            elif entry.type_name == "array of string":
                found = read_strings(file, entry.value, range(entry.value.count))
                assert [found[number] for number in range(entry.value.count)] == expected
            else:
                assert list(read_numbers(file, entry.value)) == expected
    assert ours.data_start == theirs.data_offset
    assert [
        (one.name, one.dimensions, one.type_id, one.size_bytes, one.elements, one.offset + theirs.data_offset)
        for one in ours.tensors
    ] == [
        (
            one.name,
            tuple(map(int, one.shape)),
            int(one.tensor_type),
            int(one.n_bytes),
            int(one.n_elements),
            int(one.data_offset),
        )
        for one in theirs.tensors
    ]
