"""Whether the values of the tensors can be weights."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.tensor_values import OddTensor, TensorValuesFacts
from llamaops.schema.fact import Source, Unknown

MOST_SHOWN = 5


def _shown(odd: list[OddTensor], total: int) -> str:
    parts = []
    for one in odd[:MOST_SHOWN]:
        counts = [f"{one.nan} NaN"] * bool(one.nan) + [f"{one.infinite} infinite"] * bool(one.infinite)
        if one.constant is not None and not counts:
            counts = ["all zero" if one.constant == 0 else f"all {one.constant:g}"]
        parts.append(f"{one.name} ({one.type}, {one.elements} values: {', '.join(counts)})")
    more = f", and {total - MOST_SHOWN} more" if total > MOST_SHOWN else ""
    return ", ".join(parts) + more


@check(
    "model.tensor-values-are-finite",
    title="No tensor has a value that is not a number, or infinite",
    boundary="model_file",
    remedy="do not use this file: quantize the model anew, or download it from another source",
)
def tensor_values_are_finite(values: TensorValuesFacts) -> Verdict:
    """Fail for NaN and infinity; unknown where the values of some tensors could not be read."""
    odd = [one for one in values.odd.need() if one.nan or one.infinite]
    read = f"{values.elements} values of {values.tensors_read} tensors"
    if not odd and values.not_read:
        detail = f"{read} are finite; not read: {'; '.join(values.not_read[:MOST_SHOWN])}"
        Unknown(why="unsupported", detail=detail, source=Source(kind="library", name=values.reader)).need()
    shown = _shown(odd, len(odd))
    return Verdict(
        holds=not odd,
        summary=shown or f"{read} are finite ({values.reader})",
        expected="finite values",
        observed=shown or "finite values",
    )


@check(
    "model.tensor-values-differ",
    title="No matrix has one value throughout",
    boundary="model_file",
    severity="advisory",
    remedy="compare with another download: a matrix of zeros is a hole, unless its publisher wanted it",
)
def tensor_values_differ(values: TensorValuesFacts) -> Verdict | NotApplicable:
    """Tell of matrices that are all zero or constant; vectors such as biases may be."""
    found = [one for one in values.odd.need() if one.constant is not None]
    if not values.tensors_read:
        return NotApplicable("no tensor was read")
    matrices = [one for one in found if one.matrix]
    vectors = len(found) - len(matrices)
    note = f"; {vectors} vectors have one value throughout, as biases and norms may" if vectors else ""
    return Verdict(
        holds=not matrices,
        summary=(_shown(matrices, len(matrices)) or "no matrix has one value throughout") + note,
        expected="values that differ",
        observed=_shown(matrices, len(matrices)) or "values that differ",
    )
