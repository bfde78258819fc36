"""Whether projector, adapter and draft fit: by width, architecture, shapes and tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.companion_tokens import first_difference
from llamaops.facts.companions import CompanionFacts, Use, collect_companions
from llamaops.facts.gguf_probe import look
from llamaops.facts.gguf_walk import Array
from llamaops.schema.finding import Finding
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeOpenFile, FakeSystem
from tests.unit.checks.test_identity import LORA, VISION, WHOLE

MODEL = "/m/model.gguf"
OTHER = "/m/other.gguf"
WIDE = replace(VISION, tensors=[g.FakeTensor("mm.input_projection.weight", (64, 16))])
NEW = replace(
    VISION.with_key("clip.projector_type", "brandnew"), tensors=[g.FakeTensor("mm.x.weight", (16, 48))]
)
FEW = [text + "x" if text == " " else text for text in g.TOKENS]


def judge(
    other: g.FakeGguf | bytes, use: Use, *, model: g.FakeGguf = WHOLE, name: str = OTHER
) -> dict[str, Finding]:
    data = other if isinstance(other, bytes) else other.to_bytes()
    system = FakeSystem(files={MODEL: model.to_bytes(), name: data})
    named: dict[Use, list[str]] = {use: [name]} if name == OTHER else {}
    facts = collect_companions(system, look(system, MODEL), named)
    found = (run_check(check, {CompanionFacts: facts}) for check in all_checks(["companions"]))
    return {finding.check: finding for finding in found if finding is not None}


@pytest.mark.parametrize(
    ("other", "use", "status", "says"),
    [
        (VISION, "mmproj", "passed", "width of the embedding"),
        (WIDE, "mmproj", "failed", "the model has 32, this file 64"),
        (NEW, "mmproj", "failed", "none of its matrices"),
        (WHOLE, "mmproj", "failed", "no projector but model"),
        (b"<html>", "mmproj", "failed", "html"),
        (LORA, "lora", "passed", "shapes of 2 tensors"),
        (
            LORA.with_key("general.architecture", "qwen2"),
            "lora",
            "failed",
            "the model has llama, this file qwen2",
        ),
        (replace(LORA, tensors=LORA.tensors[:1]), "lora", "failed", "no second matrix"),
        (
            replace(LORA, tensors=[replace(one, name=f"x{one.name}") for one in LORA.tensors]),
            "lora",
            "failed",
            "not in",
        ),
        (
            replace(LORA, tensors=[replace(LORA.tensors[0], shape=(64, 4)), LORA.tensors[1]]),
            "lora",
            "failed",
            "[64, 4]",
        ),
        (WHOLE, "draft", "passed", "8 tokens of equal text"),
        (WHOLE.with_key("tokenizer.ggml.model", "gpt2"), "draft", "failed", "tokenizer"),
        (WHOLE.with_key("tokenizer.ggml.bos_token_id", (g.U32, 3)), "draft", "failed", "bos token"),
        (
            WHOLE.with_key("tokenizer.ggml.tokens", g.Array(g.STRING, FEW)),
            "draft",
            "failed",
            "token 6 has another",
        ),
        (WHOLE.with_key("tokenizer.ggml.tokens", g.Array(g.STRING, ["a"] * 200)), "draft", "failed", "200"),
        (WHOLE.without_key("tokenizer.ggml.tokens"), "draft", "unknown", "none of its own"),
        (LORA, "draft", "failed", "no model but adapter"),
    ],
)
def test_a_companion_that_was_named(other: g.FakeGguf | bytes, use: Use, status: str, says: str) -> None:
    finding = judge(other, use)["model.companions-fit"]
    assert (finding.status, finding.severity) == (status, "required")
    assert says in finding.summary


def test_what_lies_beside_is_told_and_decides_nothing() -> None:
    found = judge(WIDE, "mmproj", name="/m/mmproj-wide.gguf")
    assert list(found) == ["model.companions-beside-fit"]
    assert found["model.companions-beside-fit"].severity == "advisory"
    assert found["model.companions-beside-fit"].status == "failed"
    assert judge(VISION, "mmproj", name="/m/mmproj-x.gguf")["model.companions-beside-fit"].status == "passed"
    assert judge(VISION, "mmproj", name="/m/another.gguf") == {}


def strings(texts: list[str]) -> tuple[FakeOpenFile, Array]:
    data = b"".join(len(text.encode()).to_bytes(8, "little") + text.encode() for text in texts)
    offsets, at = [], 0
    for index, text in enumerate(texts):
        if index % 2048 == 0:
            offsets.append(at)
        at += 8 + len(text.encode())
    return FakeOpenFile(data), Array(g.STRING, len(texts), 0, tuple(offsets))


@pytest.mark.parametrize("changed", [None, 0, 4, 5, 6, 2047, 2048, 5000, 5999])
def test_the_first_token_that_differs(changed: int | None) -> None:
    texts = [f"token {number}" for number in range(6000)]
    other = [f"another{number}" if number == changed else text for number, text in enumerate(texts)]
    one, ours = strings(texts)
    two, theirs = strings(other)
    expected = None if changed is None or changed < 5 else changed
    assert first_difference(one, ours, two, theirs) == expected
    assert first_difference(one, ours, *strings(texts[:5990])) is None
