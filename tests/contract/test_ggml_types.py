"""Our table of block sizes against the `gguf` package."""

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, LlamaFileType

from llamaops.facts.ggml_types import ARRAY, BLOCKS, FILE_TYPES, SCALARS, STRING, tensor_bytes, type_name

# ggml keeps Q8_1 in 36 bytes (two half floats, 32 values); the package counts two full floats. The type is
# an intermediate of multiplications and never stored in a file.
KNOWN_DIFFERENCES = {"Q8_1": (32, 40)}


def test_every_type_of_the_package_has_the_same_block() -> None:
    assert len(GGML_QUANT_SIZES) > 30
    for number, block in GGML_QUANT_SIZES.items():
        name, elements, size = BLOCKS[int(number)]
        assert name == GGMLQuantizationType(number).name
        assert (elements, size) == block or KNOWN_DIFFERENCES.get(name) == block, name


def test_file_types_have_the_same_numbers() -> None:
    for member in LlamaFileType:
        if member is not LlamaFileType.GUESSED:
            assert FILE_TYPES[int(member)] == member.name.removeprefix("MOSTLY_").removeprefix("ALL_")


def test_value_types_have_the_same_numbers() -> None:
    long_names = {"u": "UINT", "i": "INT", "f": "FLOAT"}
    for number, (name, _, size) in SCALARS.items():
        expected = "BOOL" if name == "bool" else f"{long_names[name[0]]}{size * 8}"
        assert GGUFValueType(number).name == expected
    assert (GGUFValueType.STRING, GGUFValueType.ARRAY) == (STRING, ARRAY)
    assert {int(member) for member in GGUFValueType} == {*SCALARS, STRING, ARRAY}


def test_a_size_is_not_guessed() -> None:
    assert tensor_bytes(12, (256, 3)) == 432
    assert tensor_bytes(12, (255, 3)) is None
    assert tensor_bytes(99, (256, 3)) is None
    assert type_name(99) == "unknown type 99"
    assert type_name(31) == "Q4_0_4_4 (removed)"
