"""Names of quantization mixtures: what a file name or a header claims, and the type that it means.

Source: llama_ftype_get_default_type and tensor_type_fallback of llama.cpp (src/llama-quant.cpp).
"""

from __future__ import annotations

from llamaops.facts.ggml_types import BLOCKS

_MAIN = {
    "Q2_K_S": "Q2_K", "Q2_K_L": "Q2_K", "Q2_K_XL": "Q2_K", "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K", "Q3_K_XL": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K", "Q4_K_L": "Q4_K",
    "Q4_K_XL": "Q4_K", "Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K", "Q5_K_L": "Q5_K", "Q5_K_XL": "Q5_K",
    "Q6_K_L": "Q6_K", "Q6_K_XL": "Q6_K", "Q8_K_XL": "Q8_0", "Q4_0_4_4": "Q4_0", "Q4_0_4_8": "Q4_0",
    "Q4_0_8_8": "Q4_0", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S",
    "MXFP4_MOE": "MXFP4", "FP16": "F16", "FP32": "F32", "BF16": "BF16",
}  # fmt: skip
_FALLBACK = {
    "IQ1_S": "IQ4_NL", "IQ1_M": "IQ4_NL", "IQ2_XXS": "IQ4_NL", "IQ2_XS": "IQ4_NL", "IQ2_S": "IQ4_NL",
    "IQ3_XXS": "IQ4_NL", "IQ3_S": "IQ4_NL", "IQ4_XS": "IQ4_NL", "Q2_K": "Q4_0", "Q3_K": "Q4_0",
    "TQ1_0": "Q4_0", "TQ2_0": "Q4_0", "Q2_0": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0",
}  # fmt: skip
_NOT_A_MIXTURE = frozenset({"Q8_1", "Q8_K"})
_OLDER_FALLBACK = {"Q2_K": "IQ4_NL", "Q3_K": "IQ4_NL"}


_SEPARATORS = frozenset("-_. ")
_MORE = (
    "NVFP4",
    "MXFP4",
    "F16",
    "F32",
    "IQ1_S",
    "IQ1_M",
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "TQ1_0",
    "TQ2_0",
)


def named_mixture(file_name: str) -> str | None:
    """Return what a file name says about its quantization: the last such word of it."""
    stem = file_name.upper().removesuffix(".GGUF")
    best: tuple[int, str] | None = None
    for name in _known_names():
        at = stem.rfind(name)
        end = at + len(name)
        alone = (
            at >= 0
            and (not at or stem[at - 1] in _SEPARATORS)
            and (end == len(stem) or stem[end] in _SEPARATORS)
        )
        # The word that ends last counts, and of those the longest: Q4_K_M, not Q4_K.
        if alone and (best is None or (end, len(name)) > (best[0], len(best[1]))):
            best = (end, name)
    return best[1] if best else None


def _known_names() -> frozenset[str]:
    tensor_types = {name for name, count, _ in BLOCKS.values() if count > 1 and name not in _NOT_A_MIXTURE}
    return frozenset({*_MAIN, *_MORE, *tensor_types})


def main_type(mixture: str) -> str | None:
    """Return the tensor type that a mixture is mostly made of; None for a name that we do not know."""
    name = _MAIN.get(mixture, mixture)
    return name if any(name == known for known, _, _ in BLOCKS.values()) else None


def fallbacks(tensor_type: str) -> tuple[str, ...]:
    """Return the types that are used instead where rows are no whole number of blocks, newest rule first."""
    return tuple(
        dict.fromkeys(name for table in (_FALLBACK, _OLDER_FALLBACK) if (name := table.get(tensor_type)))
    )


def bits_of(tensor_type: str) -> float:
    """Return bits per element of a type; 0 for one that we do not know."""
    return next((8 * size / count for name, count, size in BLOCKS.values() if name == tensor_type), 0.0)
