"""Whether projector, adapter and draft fit the model."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.companions import Companion, CompanionFacts
from llamaops.schema.fact import Unknown

FLAGS = {"mmproj": "--mmproj", "lora": "--lora", "draft": "--model-draft"}
NEEDED = {"mmproj": "projector", "lora": "adapter", "draft": "model"}


def _name(companion: Companion) -> str:
    return companion.path.rsplit("/", 1)[-1]


def _problems(companion: Companion) -> list[str]:
    kind = companion.kind
    needed = NEEDED[companion.used_as]
    if isinstance(kind, Unknown):
        return [kind.detail]
    if kind.value != needed:
        return [f"it is no {needed} but {kind.value}"]
    return list(companion.differs)


@check(
    "model.companions-fit",
    title="The projector, adapter or draft that was named fits the model",
    boundary="model_file",
    remedy="take the file that was published with this model",
)
def companions_fit(companions: CompanionFacts) -> Verdict | NotApplicable:
    """Fail for a companion of another architecture, width or vocabulary than the model's."""
    if not companions.asked:
        return NotApplicable("none was named")
    wrong = [
        f"{FLAGS[one.used_as]} {_name(one)}: {'; '.join(problems)}"
        for one in companions.asked
        if (problems := _problems(one))
    ]
    for one in companions.asked:
        if not wrong and not one.agrees:
            reason = ", ".join(one.not_compared) or "nothing in them can be compared"
            Unknown(why="unsupported", detail=f"{_name(one)}: {reason}", source=one.kind.source).need()
    agreed = [f"{_name(one)}: {', '.join(one.agrees)}" for one in companions.asked]
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong or agreed),
        expected="companions of this model",
        observed="; ".join(wrong or agreed),
    )


@check(
    "model.companions-beside-fit",
    title="What lies beside the model and seems to belong to it fits it",
    boundary="model_file",
    severity="advisory",
    remedy="do not name it with this model; keep each model in a folder of its own",
)
def companions_beside_fit(companions: CompanionFacts) -> Verdict | NotApplicable:
    """Tell which projectors, adapters and drafts lie beside the model, and which of them do not fit."""
    beside = companions.beside
    if isinstance(beside, Unknown) or not beside.value:
        return NotApplicable("nothing of the kind lies beside the model")
    wrong = [f"{_name(one)}: {'; '.join(problems)}" for one in beside.value if (problems := _problems(one))]
    fitting = [f"{_name(one)} ({FLAGS[one.used_as]})" for one in beside.value if not _problems(one)]
    return Verdict(
        holds=not wrong,
        summary="; ".join([*wrong, *(f"{name} fits" for name in fitting)]),
        expected="companions of this model",
        observed=", ".join(fitting) or "none that fits",
    )
