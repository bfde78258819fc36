"""What a build knows, read from the names in its files, without running it.

Architectures, pre-tokenizers and tensor types are tables of texts in llama.cpp, which the compiler keeps in
the read-only data of libllama and libggml (or of a static program). A name that ends another text there may
be that text's end only: such a find is kept apart. Source: src/llama-arch.cpp, src/llama-vocab.cpp, ggml.c.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from llamaops.facts.libraries import Loader
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known, Source, Unknown, known
from llamaops.schema.shape import Shape

if TYPE_CHECKING:
    from llamaops.facts.gguf_file import GgufFacts
    from llamaops.system.ports import OpenFile, System

CHUNK_BYTES = 4 * MIB
OVERLAP_BYTES = 256
MOST_BYTES = 256 * MIB
LONGEST_NAME = 64

NameKind = Literal["architecture", "pre_tokenizer", "tensor_type"]
Found = Literal["whole", "ending", "absent"]

# Names that every build since 2023 or 2024 has: without most of them the tables cannot be read.
ANCHORS: dict[NameKind, tuple[str, ...]] = {
    "architecture": ("falcon", "gpt2", "mpt", "starcoder", "baichuan", "bloom", "stablelm", "refact"),
    "pre_tokenizer": ("llama-bpe", "deepseek-coder", "gpt-2", "command-r", "falcon", "starcoder"),
    "tensor_type": ("q4_0", "q4_1", "q8_0", "q4_K", "q6_K", "q5_K"),
}
MOST_MISSING = 2
PRE_KEY, MODEL_KEY = "tokenizer.ggml.pre", "tokenizer.ggml.model"
"""Keys of the header that a build reads; the first since pre-tokenizers exist, April 2024."""
NO_PRE_TOKENIZERS = (
    "this build is older than pre-tokenizers (April 2024): it cuts the text of every such model by one rule"
)
_LIBRARIES: dict[NameKind, tuple[str, ...]] = {
    "architecture": ("libllama.",),
    "pre_tokenizer": ("libllama.",),
    "tensor_type": ("libggml-base.", "libggml.", "libllama."),
}
_KERNELS = {
    "vulkan": rb"\0mul_mat_vec_([a-z0-9_]{2,10})_f32_f32(?=\0)",
    "cpu": rb"\0ggml_vec_dot_([A-Za-z0-9_]{2,10}?)(?:_q8_[01K])?(_generic)?(?=\0)",
}


class BuildName(Shape, frozen=True, kw_only=True):
    """A name that the model needs, looked for in the build."""

    kind: NameKind
    """What it is the name of."""
    name: str
    """As it is written in the build."""
    found: Fact[Found]
    """`whole`: a text of its own; `ending`: only the end of another text; `absent`: nowhere."""


class Kernels(Shape, frozen=True, kw_only=True):
    """Tensor types that a back end multiplies with, by the names of its kernels."""

    backend: str
    """`cpu` or `vulkan`."""
    path: str
    """Library that was read."""
    types: tuple[str, ...]
    """Types with a kernel."""
    generic: tuple[str, ...] = ()
    """Of these, types with portable code only: slow on a processor."""


class BuildNamesFacts(Shape, frozen=True, kw_only=True):
    """What the names in a build's files say about a model."""

    program: str
    """The program."""
    names: tuple[BuildName, ...]
    """Names that the model needs."""
    kernels: tuple[Kernels, ...]
    """Back ends whose kernels could be read."""


def type_text(tensor_type: str) -> str:
    """Return how ggml writes a tensor type: Q4_K is q4_K, IQ2_XXS is iq2_xxs."""
    lower = tensor_type.lower()
    return f"{lower[:-1]}K" if lower.endswith("_k") else lower


def needed_names(model: GgufFacts) -> list[tuple[NameKind, str]]:
    """Return the names that a build has to know for this model."""
    needed: list[tuple[NameKind, str]] = []
    if isinstance(model.architecture, Known):
        needed.append(("architecture", model.architecture.value))
    bpe = isinstance(model.tokenizer_model, Known) and model.tokenizer_model.value == "gpt2"
    if bpe and isinstance(model.pre_tokenizer, Known) and model.pre_tokenizer.value != "default":
        needed.append(("pre_tokenizer", model.pre_tokenizer.value))
    types = model.tensor_types.value if isinstance(model.tensor_types, Known) else ()
    needed += [("tensor_type", type_text(one.type)) for one in types if " " not in one.type]
    return [(kind, name) for kind, name in needed if 0 < len(name.encode()) <= LONGEST_NAME]


def collect_build_names(system: System, program: str, model: GgufFacts) -> BuildNamesFacts:
    """Look for the names that a model needs in the files of a program; nothing is run.

    Args:
        system: The machine.
        program: The program; symbolic links are followed, scripts are not.
        model: The model.
    """
    real = system.realpath(program)
    libraries = _own_libraries(system, real)
    names: list[BuildName] = []
    needed = needed_names(model)
    for kind in ANCHORS:
        wanted = [name for one, name in needed if one == kind]
        if wanted:
            names += _look_for(system, kind, wanted, _file_of(kind, libraries, real))
    return BuildNamesFacts(program=program, names=tuple(names), kernels=tuple(_kernels(system, libraries)))


def _own_libraries(system: System, program: str) -> dict[str, str]:
    """Return llama.cpp's own libraries by name: those that are linked, and those that lie beside them."""
    loader = Loader(system)
    found = {name: path for name, (path, _header) in loader.follow(program).own.items()}
    folders = {os.path.dirname(program), *(os.path.dirname(path) for path in found.values())}
    starts: tuple[str, ...] = ("libggml-",)
    if loader.read_elf(program) is None and not _is_script(system, program):
        # Of another format we cannot tell what it is linked with: take what an installation has beside it.
        starts = ("libggml", "libllama.")
        folders.add(os.path.join(os.path.dirname(os.path.dirname(program)), "lib"))
    for folder in sorted(folders):
        for name in sorted(loader.listing(folder)):
            if name.startswith(starts) and name.endswith((".so", ".dylib")):
                found.setdefault(name, system.realpath(os.path.join(folder, name)))
    return found


def _is_script(system: System, program: str) -> bool:
    try:
        return system.read_bytes(program, limit_bytes=2) in {b"#!", b""}
    except OSError:
        return True


def _file_of(kind: NameKind, libraries: dict[str, str], program: str) -> str:
    for start in _LIBRARIES[kind]:
        found = next((path for name, path in sorted(libraries.items()) if name.startswith(start)), None)
        if found is not None:
            return found
    return program


def _look_for(system: System, kind: NameKind, wanted: list[str], path: str) -> list[BuildName]:
    source = Source(kind="file", name=f"texts in {path}")
    anchors = ANCHORS[kind]
    symbols = {name: f"dequantize_row_{name}" for name in wanted} if kind == "tensor_type" else {}
    try:
        with system.open_regular(path) as file:
            if file.size_bytes > MOST_BYTES:
                raise OSError(27, f"{file.size_bytes} bytes are more than the {MOST_BYTES} that we read")  # noqa: TRY301 - one way out
            found = find_names(file, {*wanted, *anchors, *symbols.values(), PRE_KEY, MODEL_KEY})
    except OSError as error:
        gap = unknown_from_os_error(source, error)
        return [BuildName(kind=kind, name=name, found=gap) for name in wanted]
    if kind == "pre_tokenizer" and found[PRE_KEY] == "absent" and found[MODEL_KEY] != "absent":
        gap = Unknown(why="unsupported", detail=f"{path}: {NO_PRE_TOKENIZERS}", source=source)
        return [BuildName(kind=kind, name=name, found=gap) for name in wanted]
    missing = [name for name in anchors if found[name] == "absent"]
    if len(missing) > MOST_MISSING:
        detail = f"{path}: {len(missing)} of {len(anchors)} names that every build has are not there: "
        gap = Unknown(why="unparsed", detail=f"{detail}its texts cannot be read", source=source)
        return [BuildName(kind=kind, name=name, found=gap) for name in wanted]
    return [
        BuildName(kind=kind, name=name, found=known(_best(found, name, symbols.get(name)), source))
        for name in wanted
    ]


def _best(found: dict[str, Found], name: str, symbol: str | None) -> Found:
    """Return what was found; the function that reads a type's blocks shows that it is known."""
    return "whole" if symbol is not None and found[symbol] == "whole" else found[name]


def find_names(file: OpenFile, names: Iterable[str]) -> dict[str, Found]:
    """Look for texts that end with a zero byte, in one bounded pass over a file.

    Raises: OSError.
    """
    found: dict[str, Found] = dict.fromkeys(names, "absent")
    encoded = {name: name.encode() + b"\0" for name in found}
    for data in _chunks(file):
        for name, text in encoded.items():
            if found[name] != "whole" and text in data:
                found[name] = "whole" if b"\0" + text in data else "ending"
    return found


def _chunks(file: OpenFile) -> Iterable[bytes]:
    """Yield a file in chunks that overlap, at most `MOST_BYTES` of it."""
    end = min(file.size_bytes, MOST_BYTES)
    for at in range(0, end, CHUNK_BYTES):
        yield file.read_at(at, min(CHUNK_BYTES + OVERLAP_BYTES, end - at))


def _kernels(system: System, libraries: dict[str, str]) -> Iterable[Kernels]:
    for backend, pattern in _KERNELS.items():
        path = next(
            (p for name, p in sorted(libraries.items()) if name.startswith(f"libggml-{backend}")), None
        )
        if path is None:
            continue
        try:
            with system.open_regular(path) as file:
                names = {match.groups() for data in _chunks(file) for match in re.finditer(pattern, data)}
        except OSError:
            continue
        types = {groups[0].decode() for groups in names}
        generic = {groups[0].decode() for groups in names if len(groups) > 1 and groups[1]}
        if "q4_0" in types:  # else its names are not kept, and nothing follows from their absence
            # Without code for the processor, the portable one takes its name and has none of its own.
            floats = {"f32", "f16", "bf16"}
            slow = types - generic - floats if backend == "cpu" and generic else set()
            yield Kernels(backend=backend, path=path, types=tuple(sorted(types)), generic=tuple(sorted(slow)))
