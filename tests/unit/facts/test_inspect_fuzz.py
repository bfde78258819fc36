"""Mutated files through everything that an inspection may ask: no exception, bounded, and never an error.

LLAMAOPS_FUZZ_CASES sets the number of mutations of the test marked `slow` (ten thousand by default).
"""

from __future__ import annotations

import collections
import os
import random
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.build_names import BuildNamesFacts, collect_build_names
from llamaops.facts.companions import CompanionFacts, Use, collect_companions
from llamaops.facts.gguf_file import GgufFacts, facts_of
from llamaops.facts.gguf_probe import look
from llamaops.facts.hub import HubFacts, parse_hub
from llamaops.facts.hub_reference import HubReference
from llamaops.facts.identity_derive import identity_of
from llamaops.facts.model_identity import IdentityFacts
from llamaops.facts.quantization_names import named_mixture
from llamaops.facts.templates import TemplatesFacts, collect_templates
from llamaops.facts.tensor_values import TensorValuesFacts, collect_tensor_values
from llamaops.system import template_child as child
from tests.fakes import gguf_files as g
from tests.fakes.elf_files import make_elf
from tests.unit.checks.test_identity import LORA, VISION, WHOLE
from tests.unit.checks.test_template import ChildSystem
from tests.unit.facts.test_gguf_fuzz import mutate

SLOW_CASES = int(os.environ.get("LLAMAOPS_FUZZ_CASES", "10000"))
CASE_SECONDS = 5.0
MODEL, OTHER, PROGRAM = "/m/m-Q4_0.gguf", "/m/mmproj.gguf", "/m/llama-server"
SEEDS = [
    WHOLE.with_key("tokenizer.ggml.token_type", g.Array(g.I32, [2, 3, 3, 1, 1, 1, 1, 1])),
    WHOLE.with_key("general.base_model.count", (g.U32, 1)).with_key("general.base_model.0.name", "Base"),
    WHOLE.with_key("llama.pooling_type", (g.U32, 4)),
    replace(WHOLE, tensors=[g.FakeTensor("blk.0.attn_q.weight", (256, 2), 12, data=bytes(range(144)) * 2)]),
    LORA,
    VISION,
]
USES: list[Use] = ["mmproj", "lora", "draft"]
RENDERED = os.environ.get("LLAMAOPS_FUZZ_TEMPLATES", "") == "1"


def examine(data: bytes, other: bytes, dice: random.Random) -> collections.Counter[str]:
    """Look at a file in every way, and hold what must be true whatever it holds."""
    program = make_elf(interpreter=None) + other
    system = ChildSystem(files={MODEL: data, OTHER: other, PROGRAM: program})
    probe = look(system, MODEL)
    model = facts_of(probe)
    groups: dict[type, object] = {
        AskedFacts: AskedFacts(ctx_size=4096),
        GgufFacts: model,
        IdentityFacts: identity_of(system, probe),
        CompanionFacts: collect_companions(system, probe, {dice.choice(USES): [OTHER]}),
        BuildNamesFacts: collect_build_names(system, PROGRAM, model),
        TensorValuesFacts: collect_tensor_values(system, probe),
    }
    if RENDERED:
        groups[TemplatesFacts] = collect_templates(system, probe)
    for kind, group in groups.items():
        encoded = msgspec.json.encode(group)
        assert len(encoded) < 2**20
        assert msgspec.json.decode(encoded, type=kind) == group
    checks = all_checks(["model", "identity", "companions", "knowledge", "values", "template"])
    wanted = [check for check in checks if set(check.inputs().values()) <= set(groups)]
    findings = [run_check(check, groups) for check in wanted]
    broken = [finding.summary for finding in findings if finding is not None and finding.status == "error"]
    assert broken == []
    return collections.Counter(finding.status for finding in findings if finding is not None)


def run(cases: int, seed: int) -> collections.Counter[str]:
    dice = random.Random(seed)
    files = [file.to_bytes() for file in SEEDS]
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(cases):
        began = time.process_time()
        data, other = mutate(dice.choice(files), dice), dice.choice(files)
        counts += examine(data, mutate(other, dice) if dice.random() < 0.5 else other, dice)
        assert time.process_time() - began < CASE_SECONDS
    return counts


def test_some_mutations() -> None:
    counts = run(150, seed=1)
    assert counts["passed"] > 100
    assert counts["failed"] > 100
    assert counts["unknown"] > 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_mutations() -> None:
    print(run(SLOW_CASES, seed=2))


TOKENS = (
    "{{", "}}", "{%", "%}", "{#", "#}", "for", "in", "if", "else", "endfor", "endif", "set", "messages",
    "range(3)", "'x'", "|tojson", "|length", "loop.index", "macro", "(", ")", "[0]", "['content']", "*", "+",
    "is", "defined", "namespace(a=1)", "-", " ", "\n", "m", "=", "9", "~", "raise_exception('no')",
    "generation", "endgeneration",
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(TOKENS), max_size=24))
def test_any_template_comes_to_an_end(words: list[str]) -> None:
    conversations = child.CONVERSATIONS
    try:
        child.CONVERSATIONS = {"user": conversations["user"]}
        lines = list(child.study(" ".join(words), "<s>", "</s>"))
    finally:
        child.CONVERSATIONS = conversations
    assert isinstance(lines[0]["compiles"], bool)
    assert len(msgspec.json.encode(lines)) < 2**20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "commit": JSON,
        "author": JSON,
        "gated": JSON,
        "changed_at": JSON,
        "tags": st.lists(JSON, max_size=4),
        "card": JSON
        | st.dictionaries(st.sampled_from(["license", "base_model", "datasets", "quantized_by"]), JSON),
        "files": st.lists(
            st.fixed_dictionaries(
                {"path": st.sampled_from(["x.gguf", "README.md", "a/b"])},
                optional={"size": JSON, "sha256": JSON},
            ),
            max_size=3,
        ),
    },
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(ANSWERS)
def test_any_answer_of_a_hub_gives_facts(answer: dict[str, Any]) -> None:
    reference = HubReference(repository="a/b", file="x.gguf", revision="main")
    facts = parse_hub(reference, "https://hub", None, answer)
    assert msgspec.json.decode(msgspec.json.encode(facts), type=HubFacts) == facts
    findings = [run_check(check, {HubFacts: facts}) for check in all_checks(["hub"])]
    assert all(finding is not None and finding.status != "error" for finding in findings)
    assert any(finding is not None and finding.status != "passed" for finding in findings)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_any_file_name_says_a_mixture_or_none(name: str) -> None:
    found = named_mixture(name)
    assert found is None or found in name.upper()
