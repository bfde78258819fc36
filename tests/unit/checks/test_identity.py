"""What a model file is for, its quantization, tokenizer and context: passed, failed and not applicable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from llamaops.checks import identity as checks
from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.model_identity import IdentityFacts
from llamaops.facts.model_look import collect_model
from llamaops.facts.quantization_names import fallbacks, main_type, named_mixture
from llamaops.schema.finding import Status
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeSystem

PATH = "/models/tiny.gguf"
WHOLE = g.FakeGguf()
Q4_K, Q5_0, Q8_0, F16 = 12, 6, 8, 1


def layers(*types: int, width: int = 256) -> list[g.FakeTensor]:
    embedding = g.FakeTensor("token_embd.weight", (width, 8), 0)
    return [embedding, *(g.FakeTensor(f"blk.{i}.attn_q.weight", (width, 2), t) for i, t in enumerate(types))]


@dataclass(frozen=True)
class Case:
    """A check, a file, what was asked, and what comes of it; `says` is in summary or remedy."""

    check: str
    status: Status | None
    file: g.FakeGguf
    says: str = ""
    path: str = PATH
    asked: dict[str, Any] = field(default_factory=dict)


SERVER = {"via": "server"}
BERT = g.FakeGguf(
    keys=[*g.model_keys("bert"), ("bert.pooling_type", (g.U32, 2)), ("bert.attention.causal", False)]
)
RANK = g.FakeGguf(keys=[*g.model_keys("bert"), ("bert.pooling_type", (g.U32, 4))])
HEAD = replace(WHOLE, tensors=[*g.model_tensors(), g.FakeTensor("cls.output.weight", (32, 3))])
LORA = g.FakeGguf(
    keys=[
        ("general.type", "adapter"),
        ("general.architecture", "llama"),
        ("adapter.type", "lora"),
        ("adapter.lora.alpha", (g.F32, 16.0)),
    ],
    tensors=[
        g.FakeTensor("blk.0.attn_q.weight.lora_a", (32, 4)),
        g.FakeTensor("blk.0.attn_q.weight.lora_b", (4, 32)),
    ],
)
VISION = g.FakeGguf(
    keys=[
        ("general.type", "mmproj"),
        ("general.architecture", "clip"),
        ("clip.projector_type", "gemma3"),
        ("clip.has_vision_encoder", True),
        ("clip.vision.projection_dim", (g.U32, 32)),
    ],
    tensors=[g.FakeTensor("mm.input_projection.weight", (32, 16))],
)
USE, QUANT = "model.use-fits-the-run", "model.quantization-is-as-declared"
PARTS, TOKENS, CONTEXT = (
    "model.tokenizer-is-consistent",
    "model.special-tokens-are-there",
    "model.context-is-as-trained",
)

CASES = [
    Case(USE, "passed", WHOLE, "generates text", asked=SERVER),
    Case(USE, "failed", BERT, "embedding model (pooling cls)", asked=SERVER),
    Case(USE, "failed", BERT, "--embeddings", asked=SERVER),
    Case(USE, "passed", BERT, "embedding", asked={"via": "server", "embeddings": True}),
    Case(USE, "failed", WHOLE, "generates text", asked={"via": "server", "embeddings": True}),
    Case(USE, "failed", RANK, "--reranking", asked=SERVER),
    Case(USE, "passed", RANK, "reranker", asked={"via": "server", "reranking": True}),
    Case(USE, "failed", WHOLE, "generates text", asked={"via": "server", "reranking": True}),
    Case(USE, "failed", HEAD, "3 outputs", asked={"via": "completion"}),
    Case(USE, "passed", BERT, "embedding model", asked={"via": "inspect"}),
    Case(USE, "passed", LORA, "1 changes of rank 4 to llama", asked={"via": "inspect"}),
    Case(USE, "passed", VISION, "vision (gemma3)", asked={"via": "inspect"}),
    Case(USE, "failed", g.FakeGguf(keys=g.model_keys("eagle3")), "--model-draft", asked=SERVER),
    Case(
        USE,
        "failed",
        g.FakeGguf(keys=[*g.model_keys("llada"), ("llada.attention.causal", False)]),
        "llama-diffusion-cli",
        asked=SERVER,
    ),
    Case(USE, "unknown", replace(WHOLE, tensor_count=9)),
    Case(
        QUANT, "passed", replace(WHOLE, tensors=layers(Q4_K, Q4_K)).with_key("general.file_type", (g.U32, 15))
    ),
    Case(
        QUANT,
        "failed",
        replace(WHOLE, tensors=layers(Q8_0)).with_key("general.file_type", (g.U32, 15)),
        "Q4_K_M",
    ),
    Case(
        QUANT,
        "failed",
        replace(WHOLE, tensors=layers(F16)).without_key("general.file_type"),
        path="/m/x-Q8_0.gguf",
    ),
    Case(
        QUANT,
        "passed",
        replace(WHOLE, tensors=layers(Q8_0)).without_key("general.file_type"),
        path="/m/x-Q8_0.gguf",
    ),
    Case(QUANT, "passed", replace(WHOLE, tensors=layers(Q8_0)).without_key("general.file_type")),
    Case(
        QUANT,
        "passed",
        replace(WHOLE, tensors=layers(Q5_0, Q5_0, width=288)).with_key("general.file_type", (g.U32, 15)),
        "in place of Q4_K",
    ),
    Case(QUANT, None, LORA),
    Case(PARTS, "passed", WHOLE, "8 tokens"),
    Case(PARTS, "failed", WHOLE.with_key("tokenizer.ggml.scores", g.Array(g.F32, [0.0])), "1 scores"),
    Case(PARTS, "failed", WHOLE.without_key("tokenizer.ggml.scores"), "SentencePiece"),
    Case(PARTS, "failed", WHOLE.with_key("tokenizer.ggml.model", "gpt2"), "merge rules"),
    Case(PARTS, "failed", replace(WHOLE, tensors=[g.FakeTensor("token_embd.weight", (32, 9))]), "9 rows"),
    Case(PARTS, "failed", WHOLE.without_key("tokenizer.ggml.tokens"), "texts are absent"),
    Case(PARTS, None, WHOLE.without_key("tokenizer.ggml.model")),
    Case(PARTS, None, LORA),
    Case(TOKENS, "failed", WHOLE, "normal token"),  # the fake vocabulary has normal tokens only
    Case(
        TOKENS,
        "passed",
        WHOLE.with_key("tokenizer.ggml.token_type", g.Array(g.I32, [2, 3, 3, 1, 1, 1, 1, 1])),
    ),
    Case(TOKENS, "failed", WHOLE.without_key("tokenizer.ggml.eos_token_id"), "never stop"),
    Case(TOKENS, "failed", WHOLE.without_key("tokenizer.ggml.bos_token_id"), "add_bos_token is set"),
    Case(TOKENS, "failed", WHOLE.with_key("tokenizer.ggml.unknown_token_id", (g.U32, 2)), "unknown token 2"),
    Case(TOKENS, None, BERT),
    Case(CONTEXT, None, WHOLE),
    Case(
        CONTEXT, "failed", WHOLE, "--rope-scale 4 --yarn-orig-ctx 128", asked={"ctx_size": 512, "parallel": 1}
    ),
    Case(
        CONTEXT,
        "passed",
        WHOLE.with_key("llama.context_length", (g.U32, 512)),
        asked={"ctx_size": 512, "parallel": 1},
    ),
    Case(
        CONTEXT,
        "passed",
        WHOLE.with_key("llama.context_length", (g.U32, 512)),
        asked={"ctx_size": 1024, "parallel": 2, "kv_unified": False},
    ),
    Case(CONTEXT, "unknown", WHOLE.without_key("llama.context_length"), asked={"ctx_size": 512}),
    Case(
        CONTEXT,
        "failed",
        WHOLE.with_key("llama.rope.scaling.type", "yarn").with_key(
            "llama.attention.sliding_window", (g.U32, 64)
        ),
        "stretched with yarn; some layers see only the last 64",
        asked={"ctx_size": 512},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.status}-{case.says[:20]}")
def test_check(case: Case) -> None:
    system = FakeSystem(files={case.path: case.file.to_bytes()})
    model, identity = collect_model(system, case.path)
    (check,) = [one for one in all_checks(["identity"]) if one.id == case.check]
    groups: dict[type, object] = {
        GgufFacts: model,
        IdentityFacts: identity,
        AskedFacts: AskedFacts(**case.asked),
    }
    finding = run_check(check, groups)
    assert (finding and finding.status) == case.status, finding
    if finding is not None:
        assert case.says in f"{finding.summary} {finding.remedy}"


@pytest.mark.parametrize(
    ("name", "mixture"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("model.Q4_1.gguf", "Q4_1"),
        ("gemma-3-UD-Q4_K_XL.gguf", "Q4_K_XL"),
        ("x-IQ2_XXS.gguf", "IQ2_XXS"),
        ("x-f16.gguf", "F16"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("Qwen3-8B.gguf", None),
        ("Q4-of-the-year.gguf", None),
    ],
)
def test_what_a_file_name_says(name: str, mixture: str | None) -> None:
    assert named_mixture(name) == mixture


def test_what_a_mixture_is_made_of() -> None:
    assert [main_type(name) for name in ("Q4_K_M", "IQ3_M", "F16", "MXFP4_MOE", "Q9_X")] == [
        "Q4_K",
        "IQ3_S",
        "F16",
        "MXFP4",
        None,
    ]
    assert fallbacks("Q4_K") == ("Q5_0",)
    assert fallbacks("F16") == ()


def test_every_role_has_words() -> None:
    from typing import get_args

    from llamaops.facts.model_identity import Role

    assert set(checks.WORDS) == set(get_args(Role))
