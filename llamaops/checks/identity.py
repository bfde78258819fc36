"""What the model file is for, and whether what is said about it agrees with what is in it."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts import quantization_names as names
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.gguf_shapes import SpecialToken
from llamaops.facts.model_identity import IdentityFacts, Quantization, Vocabulary
from llamaops.schema.fact import Known

ENOUGH = 0.2
SOME = 0.02
NEAR_BITS = 0.8
NORMAL = 1
RUNS = frozenset({"completion", "server", "attached"})
HOW = {
    "embedding": "start llama-server with --embeddings and ask /v1/embeddings",
    "reranker": "start llama-server with --reranking and ask /v1/rerank",
    "draft": "name the model that it proposes tokens for with --model, and this file with --model-draft",
    "speech": "use llama-tts",
    "diffusion": "use llama-diffusion-cli: llama-server generates from left to right",
}
WORDS = {
    "text": "a model that generates text",
    "embedding": "an embedding model",
    "reranker": "a reranker",
    "diffusion": "a model that generates text by diffusion",
    "draft": "a draft model: it proposes tokens for another one",
    "speech": "a model of sound",
    "lora_adapter": "a LoRA adapter",
    "control_vector": "a control vector",
    "projector": "a multimodal projector",
    "vocabulary": "a vocabulary without weights",
    "imatrix": "an importance matrix",
}
DEFAULTS = {"gpt2": "token 11", "llama": "token 2"}
"""What the engine takes for the end of a sequence where the header names none."""


@check(
    "model.use-fits-the-run",
    title="The model is of the kind that the run asks for",
    boundary="model_file",
    severity="advisory",
    remedy="name a model that generates text",
)
def use_fits_the_run(identity: IdentityFacts, asked: AskedFacts) -> Verdict:
    """Tell what a file is for, and when a run asks it for something else."""
    role = identity.role.need()
    words = WORDS[role] + _details(identity)
    fitting, wanted = "text", "a model that generates text"
    if asked.embeddings:
        fitting, wanted = "embedding", "an embedding model"
    elif asked.reranking:
        fitting, wanted = "reranker", "a reranker"
    return Verdict(
        holds=role == fitting or asked.via not in RUNS,
        summary=f"it is {words}",
        expected=wanted if asked.via in RUNS else None,
        observed=words,
        remedy=HOW.get(role),
    )


def _details(identity: IdentityFacts) -> str:
    parts = []
    if isinstance(identity.pooling, Known):
        parts.append(f"pooling {identity.pooling.value}")
    if isinstance(identity.classifier_outputs, Known):
        count = identity.classifier_outputs.value
        parts.append(f"a classification head with {count} output{'s' if count != 1 else ''}")
    if isinstance(identity.draft_layers, Known) and identity.draft_layers.value:
        parts.append(f"{identity.draft_layers.value} layers for multi-token prediction")
    if isinstance(identity.adapter, Known):
        adapter = identity.adapter.value
        rank = f" of rank {adapter.rank}" if adapter.rank else ""
        base = adapter.base_architecture or "an unnamed architecture"
        parts.append(f"{adapter.targets} changes{rank} to {base}")
    if isinstance(identity.projector, Known):
        projector = identity.projector.value
        parts.append(f"{' and '.join(projector.modalities) or 'no modality'} ({', '.join(projector.types)})")
    return f" ({'; '.join(parts)})" if parts else ""


@check(
    "model.quantization-is-as-declared",
    title="The weights are of the types that the header and the file name declare",
    boundary="model_file",
    severity="advisory",
    remedy="trust the tensors; rename the file, or download it anew from where its name is right",
)
def quantization_is_as_declared(identity: IdentityFacts) -> Verdict | NotApplicable:
    """Tell of a file type or a name that the tensors do not bear out."""
    role = identity.role.need()
    if role in {"lora_adapter", "control_vector", "vocabulary", "imatrix"}:
        return NotApplicable("it has no quantized layers")
    found = identity.quantization.need()
    claims = (("general.file_type", found.declared), ("the file name", found.named))
    wrong = [f"{who} says {claim}" for who, claim in claims if claim and not _agrees(claim, found)]
    said = ", ".join(f"{who} {claim}" for who, claim in claims if claim) or "nothing is declared"
    bits = f"{found.bits_per_layer_weight:.2f} bits per weight of the layers"
    summary = f"{found.mixture}; {bits}"
    if found.main_with_fallback:
        summary += f" (in place of {found.main_with_fallback}: rows are too short for its blocks)"
    return Verdict(
        holds=not wrong,
        summary=f"{' and '.join(wrong)}, and the layers are {summary}" if wrong else f"layers: {summary}",
        expected=said,
        observed=found.mixture,
    )


def _agrees(claim: str, found: Quantization) -> bool:
    wanted = names.main_type(claim)
    if wanted is None or wanted in {found.main_type, found.main_with_fallback}:
        return True
    share = next((one.share for one in found.types if one.type == wanted), 0.0)
    near = abs(names.bits_of(wanted) - found.bits_per_layer_weight) <= NEAR_BITS
    return share >= ENOUGH or (share >= SOME and near)


@check(
    "model.tokenizer-is-consistent",
    title="The parts of the tokenizer agree in length",
    boundary="model_file",
    severity="advisory",
    remedy="take another conversion: the engine refuses this one, or reads it wrongly",
)
def tokenizer_is_consistent(model: GgufFacts, identity: IdentityFacts) -> Verdict | NotApplicable:
    """Hold texts, scores, kinds and merge rules against each other and the embedding's rows."""
    if model.file_kind.need() not in {"model", "vocabulary"}:
        return NotApplicable("it has no tokenizer of its own")
    if not isinstance(model.tokenizer_model, Known) or model.tokenizer_model.value in {"none", "no_vocab"}:
        return NotApplicable("the model has no tokenizer")
    vocabulary = identity.vocabulary.need()
    wrong = _disagreements(vocabulary, model.tokenizer_model.value)
    tokens = f"{vocabulary.tokens} tokens" if vocabulary.tokens is not None else "no tokens"
    return Verdict(
        holds=not wrong,
        summary=f"the vocabulary has {tokens}" + (f", but {'; '.join(wrong)}" if wrong else ""),
        expected="parts of equal length",
        observed="; ".join(wrong) or "parts of equal length",
    )


def _disagreements(vocabulary: Vocabulary, tokenizer: str) -> list[str]:
    tokens = vocabulary.tokens
    if tokens is None:
        return ["its texts are absent"]
    wrong = [
        f"{count} {what}"
        for what, count in (
            ("scores", vocabulary.scores),
            ("kinds", vocabulary.kinds),
            ("rows in the token embedding", vocabulary.embedding_rows),
        )
        if count is not None and count != tokens
    ]
    if tokenizer == "gpt2" and not vocabulary.merges:
        wrong.append("no merge rules, which a byte-pair vocabulary needs")
    if tokenizer == "llama" and vocabulary.scores is None:
        wrong.append("no scores, which a SentencePiece vocabulary needs")
    return wrong


@check(
    "model.special-tokens-are-there",
    title="The tokens that begin and end a text are named, and are special ones",
    boundary="model_file",
    severity="advisory",
    remedy="take another conversion, or set the number with --override-kv tokenizer.ggml.ROLE_token_id=int:N",
)
def special_tokens_are_there(model: GgufFacts, identity: IdentityFacts) -> Verdict | NotApplicable:
    """Tell of a missing end of sequence, a token to add that is not named, and tokens of a wrong kind."""
    if identity.role.need() != "text" or not isinstance(model.tokenizer_model, Known):
        return NotApplicable("it generates no text with a tokenizer of its own")
    tokens = model.special_tokens.value if isinstance(model.special_tokens, Known) else ()
    vocabulary = identity.vocabulary.need()
    odd = _odd(tokens, vocabulary, model.tokenizer_model.value)
    wrong = [*_missing(model, {token.role for token in tokens}), *odd]
    shown = ", ".join(f"{token.role} {token.id} {token.text!r:.40}" for token in tokens) or "none"
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) if wrong else f"special tokens: {shown}",
        expected="named special tokens",
        observed=shown,
    )


def _missing(model: GgufFacts, roles: set[str]) -> list[str]:
    wrong = []
    tokenizer = model.tokenizer_model.need()
    if not roles & {"eos", "eot"}:
        default = DEFAULTS.get(tokenizer, "none")
        wrong.append(f"no token ends a sequence (the engine takes {default}): generation may never stop")
    for flag, role in ((model.add_bos_token, "bos"), (model.add_eos_token, "eos")):
        if isinstance(flag, Known) and flag.value and role not in roles:
            wrong.append(f"add_{role}_token is set, and no {role} token is named")
    return wrong


def _odd(tokens: tuple[SpecialToken, ...], vocabulary: Vocabulary, tokenizer: str) -> list[str]:
    kinds = {one.role: one.kind for one in vocabulary.special_kinds}
    ending = [token for token in tokens if token.role in {"bos", "eos", "eot", "eom"}]
    wrong = [
        f"{token.role} {token.id} {token.text!r:.40} is a normal token: a prompt's text can be taken for it"
        for token in ending
        if kinds.get(token.role) == NORMAL
    ]
    by_role = {token.role: token.id for token in tokens}
    # A byte-pair vocabulary has no unknown text, and may give its token any number.
    if tokenizer != "gpt2" and "eos" in by_role and by_role["eos"] == by_role.get("unknown"):
        wrong.append(f"the end of a sequence is the unknown token {by_role['eos']}")
    return wrong + [f"{token.role} {token.id} has no text" for token in ending if token.text == ""]


@check(
    "model.context-is-as-trained",
    title="No slot gets a longer context than the model was trained for",
    boundary="model_file",
    severity="advisory",
    remedy="ask for no more tokens for each slot than the trained length",
)
def context_is_as_trained(model: GgufFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Tell what a longer context than the trained one would mean."""
    if not asked.ctx_size:
        return NotApplicable("no context was asked for")
    from llamaops.launch.settings import LaunchSettings, resolve  # most inspections ask for no context

    trained = model.context_length_tokens.need()
    settings = LaunchSettings(
        model_path="asked",
        ctx_size=asked.ctx_size,
        parallel=1 if asked.via == "completion" else asked.parallel,
        kv_unified=asked.kv_unified,
    )
    plan = resolve(settings, n_ctx_train=trained)
    longer = plan.n_ctx_seq is not None and plan.n_ctx_seq > trained
    summary = f"a slot has {plan.n_ctx_seq} tokens, the model was trained for {trained}{_stretched(model)}"
    if longer:
        summary += "; the server gives a slot no more than that, and memory is paid for all of it"
    factor = (plan.n_ctx_seq or 0) / trained if trained else 0
    return Verdict(
        holds=not longer,
        summary=summary,
        expected=f"at most {trained} tokens",
        observed=f"{plan.n_ctx_seq} tokens",
        remedy=f"ask for --ctx-size {trained}; if its publisher says that it can be stretched, "
        f"--rope-scaling yarn --rope-scale {factor:.3g} --yarn-orig-ctx {trained}",
    )


def _stretched(model: GgufFacts) -> str:
    parts = []
    if isinstance(model.rope_scaling, Known) and model.rope_scaling.value.type not in {None, "none"}:
        scaling = model.rope_scaling.value
        first = f" from {scaling.original_context_tokens}" if scaling.original_context_tokens else ""
        by = f" by {scaling.factor:g}" if scaling.factor else ""
        parts.append(f"stretched{by}{first} with {scaling.type}")
    if isinstance(model.sliding_window_tokens, Known) and model.sliding_window_tokens.value:
        parts.append(f"some layers see only the last {model.sliding_window_tokens.value}")
    return f" ({'; '.join(parts)})" if parts else ""
