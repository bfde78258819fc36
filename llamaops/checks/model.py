"""The model file: is it one, is it whole, do its parts agree, is it the kind that can be served."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.gguf_shapes import Problem
from llamaops.schema.fact import Known, Unknown

MOST_SHOWN = 3
GGUF_KINDS = frozenset({"model", "adapter", "projector", "vocabulary", "imatrix", "gguf"})
DATA_SLUGS = frozenset({"data-truncated", "zeros-at-end"})
SHARD_SLUGS = frozenset(
    {
        "shard-missing",
        "shard-unreadable",
        "shard-renamed",
        "shard-keys-absent",
        "shards-disagree",
        "shards-joined",
    }
)
TYPE_SLUGS = frozenset({"type-unknown", "type-removed"})
VERSION_SLUGS = frozenset({"version-unsupported", "big-endian"})
ADVICE_SLUGS = frozenset({"trailing-bytes", "data-all-zeros", "special-token-impossible"})
HEADER_SLUGS = frozenset(
    {
        "header-truncated", "file-changed", "string-too-long", "count-impossible", "key-empty",
        "key-duplicate", "value-type-unknown", "array-nested", "alignment-invalid", "tensor-name-too-long",
        "tensor-duplicate", "dimensions-impossible", "row-not-whole-blocks", "tensor-misaligned",
        "tensor-overlap", "tensor-gap",
    }
)  # fmt: skip

STATE_REMEDIES = {
    "absent": "check the path",
    "broken_symlink": "download the file again, or point the link to where it lies",
    "no_permission": "give the user that runs llamaops read permission on the file and entry to its folders",
    "directory": "name a .gguf file in it",
}
KIND_REMEDIES = {
    "html": "download the file itself, not its page: the address has /resolve/ instead of /blob/",
    "json": "read the message: the download was refused; log in or correct the address",
    "xml": "read the message: the download was refused; correct the address",
    "lfs_pointer": "run `git lfs pull`, or download the file itself",
    "empty": "download it again",
    "zeros": "wait for the download to end, or download it again",
    "safetensors": "convert it with convert_hf_to_gguf.py, or download a GGUF file of the model",
    "pytorch_zip": "convert it with convert_hf_to_gguf.py, or download a GGUF file of the model",
    "pickle": "convert it with convert_hf_to_gguf.py, or download a GGUF file of the model",
    "ggml_old": "download the model as GGUF: llama.cpp dropped this format in August 2023",
}
PACKED_KINDS = frozenset({"gzip", "xz", "zstd", "bzip2", "lz4", "7z", "rar", "tar", "zip"})
NOT_SERVED = {
    "adapter": "name the base model with --model and give this file with --lora",
    "projector": "name the language model with --model and give this file with --mmproj",
    "vocabulary": "download a file with weights",
    "imatrix": "name a model; this file is an input of llama-quantize",
}


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _name(facts: GgufFacts) -> str:
    return _base(facts.path.need()) or facts.path.need()


def _problems(facts: GgufFacts, slugs: frozenset[str]) -> list[Problem]:
    return [problem for problem in facts.problems.need() if problem.slug in slugs]


def _sentence(problems: list[Problem]) -> str:
    shown = [f"{_base(problem.place)}: {problem.sentence}" for problem in problems[:MOST_SHOWN]]
    more = len(problems) - MOST_SHOWN
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _judge(
    facts: GgufFacts, slugs: frozenset[str], *, good: str, expected: str, remedy: str | None
) -> Verdict:
    """Return a verdict from the problems of some kinds."""
    problems = _problems(facts, slugs)
    if not problems:
        return Verdict(holds=True, summary=good, expected=expected, observed=expected)
    sentence = _sentence(problems)
    return Verdict(holds=False, summary=sentence, expected=expected, observed=sentence, remedy=remedy)


def _need_gguf(facts: GgufFacts) -> None:
    """Raise NotKnownError unless a GGUF header was there to read."""
    facts.header_read.need()


@check(
    "model.file-is-readable",
    title="The model file is a file that we can read",
    boundary="model_file",
    remedy="name a .gguf file that this user can read",
)
def file_is_readable(facts: GgufFacts) -> Verdict:
    """Fail for a path that leads to nothing, to a folder or device, or to a file we may not read."""
    state = facts.path_state.need()
    if state == "regular":
        return Verdict(holds=True, summary=f"{_name(facts)} is a file", expected="a file", observed="a file")
    found = _problems(facts, frozenset({f"path-{state.replace('_', '-')}"}))
    words = found[0].sentence if found else state.replace("_", " ")
    return Verdict(
        holds=False,
        summary=f"{facts.path.need()}: {words}",
        expected="a file that this user can read",
        observed=words,
        remedy=STATE_REMEDIES.get(state),
    )


@check(
    "model.is-a-gguf-file",
    title="The file is GGUF",
    boundary="model_file",
    remedy="download the model as a GGUF file",
)
def is_a_gguf_file(facts: GgufFacts) -> Verdict:
    """Name a file of another form for what it is."""
    kind = facts.file_kind.need()
    if kind in GGUF_KINDS:
        return Verdict(holds=True, summary=f"{_name(facts)} is a GGUF file", expected="GGUF", observed="GGUF")
    found = _problems(facts, frozenset({"not-gguf"}))
    words = found[0].sentence if found else f"not a GGUF file but {kind}"
    remedy = "unpack it" if kind in PACKED_KINDS else KIND_REMEDIES.get(kind)
    observed = words.removeprefix("not a GGUF file but ")
    return Verdict(
        holds=False, summary=f"{_name(facts)} is {words}", expected="GGUF", observed=observed, remedy=remedy
    )


@check(
    "model.version-is-readable",
    title="llama.cpp reads this version and byte order of GGUF",
    boundary="model_file",
    remedy="download a newer conversion of the model",
)
def version_is_readable(facts: GgufFacts) -> Verdict:
    """Fail for version 1, versions after 3, and big-endian files."""
    _need_gguf(facts)
    problems = _problems(facts, VERSION_SLUGS)
    expected = "version 2 or 3, little-endian"
    if problems:
        newer = isinstance(facts.version, Known) and facts.version.value > 3  # noqa: PLR2004 - the newest known
        return Verdict(
            holds=False,
            summary=_sentence(problems),
            expected=expected,
            observed=problems[0].sentence,
            remedy="check the download; if the file is right, upgrade llama.cpp and llamaops"
            if newer
            else "turn it with `gguf-convert-endian FILE little` of the gguf package, or download another"
            if any(problem.slug == "big-endian" for problem in problems)
            else None,
        )
    version = facts.version.need()
    return Verdict(
        holds=True,
        summary=f"{_name(facts)} is GGUF version {version}",
        expected=expected,
        observed=f"version {version}",
    )


@check(
    "model.header-is-whole",
    title="The header is whole and free of contradictions",
    boundary="model_file",
    remedy="download the file again and compare its length and SHA-256 with the publisher's",
)
def header_is_whole(facts: GgufFacts) -> Verdict:
    """Fail for what the engine's own reader refuses: cut, duplicate, impossible or overlapping entries."""
    whole = facts.header_read.need()
    problems = _problems(facts, HEADER_SLUGS)
    if problems or whole:
        cut = any(problem.slug == "header-truncated" for problem in problems)
        return _judge(
            facts,
            HEADER_SLUGS,
            good=f"the header of {_name(facts)} is whole",
            expected="a whole header",
            remedy=None
            if cut
            else "get the file from another source: a converter or an attacker broke its header",
        )
    version = _sentence(_problems(facts, VERSION_SLUGS))
    if version:  # another check says so, with its own next step
        Unknown(why="unsupported", detail=version, source=facts.header_read.source).need()
    others = _sentence(_problems(facts, frozenset({"shard-unreadable"})))
    return Verdict(
        holds=False,
        summary=f"the header could not be read: {others}" if others else "the header could not be read",
        expected="a whole header",
        observed="not read to its end",
    )


@check(
    "model.types-are-known",
    title="Every tensor is of a type that is known",
    boundary="model_file",
    remedy="upgrade llama.cpp and llamaops, or download another quantization",
)
def types_are_known(facts: GgufFacts) -> Verdict:
    """Fail for tensor types that are unknown or were removed; their size is not guessed."""
    types = ", ".join(group.type for group in facts.tensor_types.need())
    verdict = _judge(
        facts, TYPE_SLUGS, good=f"tensor types: {types}", expected="known tensor types", remedy=None
    )
    if verdict.holds:
        return verdict
    removed = any(problem.slug == "type-removed" for problem in _problems(facts, TYPE_SLUGS))
    remedy = "download a Q4_0 file instead: the engine repacks it when it loads" if removed else None
    return Verdict(
        holds=False,
        summary=verdict.summary,
        expected=verdict.expected,
        observed=types,
        remedy=remedy,
    )


@check(
    "model.tensor-data-is-whole",
    title="Every part is long enough for its last tensor and does not end in a hole",
    boundary="model_file",
    remedy="compare length and SHA-256 with the publisher's and download the file again",
)
def tensor_data_is_whole(facts: GgufFacts) -> Verdict:
    """Fail for a file that is shorter than its header says, or whose data ends in zeros."""
    _need_gguf(facts)
    problems = _problems(facts, DATA_SLUGS)
    partial = _problems(facts, frozenset({"download-partial"}))
    remedy = "let the download end, or start it again" if partial else None
    if problems:
        return _judge(facts, DATA_SLUGS, good="", expected="all of the tensor data", remedy=remedy)
    needed, there = facts.expected_bytes.need(), facts.file_bytes.need()
    return Verdict(
        holds=True,
        summary=f"{there} bytes are there, the last tensors end at {needed}",
        expected=f"at least {needed} bytes",
        observed=f"{there} bytes",
    )


@check(
    "model.download-has-ended",
    title="The file is not an unfinished download",
    boundary="model_file",
    remedy="let the download end, or start it again; then name the finished file",
)
def download_has_ended(facts: GgufFacts) -> Verdict:
    """Fail for a name or a companion that a download program leaves only while it is at work."""
    facts.file_kind.need()
    return _judge(
        facts,
        frozenset({"download-partial"}),
        good=f"no sign of an unfinished download at {_name(facts)}",
        expected="a finished download",
        remedy=None,
    )


@check(
    "model.shards-agree",
    title="All parts of a split model are there and agree",
    boundary="model_file",
    remedy="put all parts of one download into one folder under their original names",
)
def shards_agree(facts: GgufFacts) -> Verdict | NotApplicable:
    """Fail for missing, renamed, joined, unreadable or contradicting parts."""
    _need_gguf(facts)
    problems = _problems(facts, SHARD_SLUGS)
    parts = facts.shards.need()
    if not problems and len(parts) == 1:
        return NotApplicable("the model is one file")
    joined = any(problem.slug == "shards-joined" for problem in problems)
    remedy = (
        "parts cannot be joined with cat: name the first part, or merge them with `llama-gguf-split --merge`"
    )
    return _judge(
        facts,
        SHARD_SLUGS,
        good=f"all {len(parts)} parts are there and agree",
        expected="all parts, in agreement",
        remedy=remedy if joined else None,
    )


@check(
    "model.first-shard-is-named",
    title="The first part of a split model is the one that is named",
    boundary="model_file",
    severity="advisory",
    remedy="name the first part: llama.cpp loads a split model only from there",
)
def first_shard_is_named(facts: GgufFacts) -> Verdict | NotApplicable:
    """Tell which part llama.cpp has to be given."""
    if facts.file_kind.need() not in GGUF_KINDS:
        return NotApplicable("it is not a GGUF file")
    first, named = facts.engine_path.need(), facts.path.need()
    if first == named:
        return NotApplicable("the file that was named is the one to load")
    return Verdict(
        holds=False,
        summary=f"{_base(named)} is not the first part; llama.cpp loads {_base(first)}",
        expected=_base(first),
        observed=_base(named),
        remedy=f"give {first} to llama.cpp",
    )


@check(
    "model.is-a-model",
    title="The file is a model, not something that belongs to one",
    boundary="model_file",
    remedy="name the model itself",
)
def is_a_model(facts: GgufFacts) -> Verdict:
    """Fail for a LoRA adapter, a projector, a vocabulary or an importance matrix."""
    _need_gguf(facts)
    kind = facts.file_kind.need()
    if kind == "gguf":
        nameless = _without_architecture(facts)
        if nameless is not None:
            return Verdict(
                holds=False,
                summary=f"{_name(facts)} names no architecture: {nameless}",
                expected="general.architecture, without which no engine loads it",
                observed=nameless,
                remedy="get the file from another source: a converter or an attacker broke its header",
            )
        facts.architecture.need()
        facts.tensor_count.need()
        return Verdict(
            holds=False,
            summary=f"{_name(facts)} has neither tensors nor a tokenizer",
            expected="a model",
            observed="a GGUF file without tensors",
        )
    architecture = facts.architecture.value if isinstance(facts.architecture, Known) else None
    shown = f"{kind} of architecture {architecture!r}" if architecture else kind
    return Verdict(
        holds=kind == "model",
        summary=f"{_name(facts)} is {'an' if shown[0] in 'aeiou' else 'a'} {shown}",
        expected="model",
        observed=kind,
        remedy=NOT_SERVED.get(kind),
    )


def _without_architecture(facts: GgufFacts) -> str | None:
    """Return why a header that was read to its end names no architecture; None where it may, or names one."""
    read = isinstance(facts.header_read, Known) and facts.header_read.value
    if not read or _problems(facts, frozenset({"shard-missing", "shard-unreadable"})):
        return None
    if isinstance(facts.architecture, Known):
        return None if facts.architecture.value else "general.architecture is empty"
    return facts.architecture.detail.removeprefix(f"{facts.architecture.source.name}: ")


@check(
    "model.has-a-tokenizer",
    title="The model has a tokenizer",
    boundary="model_file",
    severity="advisory",
    remedy="use a conversion that includes the tokenizer",
)
def has_a_tokenizer(facts: GgufFacts) -> Verdict | NotApplicable:
    """Fail for a model without a tokenizer or pre-tokenizer; llama.cpp then guesses or refuses."""
    if facts.file_kind.need() != "model":
        return NotApplicable("only a model needs a tokenizer")
    if isinstance(facts.tokenizer_model, Unknown) and facts.tokenizer_model.why != "absent":
        facts.tokenizer_model.need()
    model = facts.tokenizer_model.value if isinstance(facts.tokenizer_model, Known) else None
    pre = facts.pre_tokenizer.value if isinstance(facts.pre_tokenizer, Known) else None
    needs_pre = model == "gpt2"  # byte-pair vocabularies only: the others have one way to split text
    lacking = "tokenizer" if model is None else "pre-tokenizer"
    holds = model is not None and (pre is not None or not needs_pre)
    shown = f"tokenizer {model}, pre-tokenizer {pre or 'none'}"
    return Verdict(
        holds=holds,
        summary=f"{_name(facts)}: {shown}" if holds else f"{_name(facts)} has no {lacking}: {shown}",
        expected="a tokenizer and what it needs",
        observed=shown,
    )


@check(
    "model.has-a-chat-template",
    title="The model has a chat template",
    boundary="model_file",
    severity="advisory",
    remedy="for chat give one with --chat-template-file; without one llama.cpp falls back to ChatML",
)
def has_a_chat_template(facts: GgufFacts) -> Verdict | NotApplicable:
    """Tell that a conversation will be put into a form that the model may not know."""
    if facts.file_kind.need() != "model":
        return NotApplicable("only a model has a chat template")
    template = facts.chat_template
    if isinstance(template, Unknown) and template.why != "absent":
        template.need()
    holds = isinstance(template, Known)
    observed = f"a template of {template.value.bytes} bytes" if isinstance(template, Known) else "none"
    return Verdict(
        holds=holds,
        summary=f"{_name(facts)} has {observed if holds else 'no chat template'}",
        expected="a chat template",
        observed=observed,
    )


@check(
    "model.metadata-is-consistent",
    title="What the header declares agrees with its tensors",
    boundary="model_file",
    severity="advisory",
    remedy="trust the tensors, and prefer another conversion where it matters",
)
def metadata_is_consistent(facts: GgufFacts) -> Verdict | NotApplicable:
    """Tell of heads that do not divide, of tokens beyond the vocabulary, and the like."""
    if facts.file_kind.need() != "model":
        return NotApplicable("only a model is held against its metadata")
    facts.tensor_types.need()
    found = [f"{problem.sentence}" for problem in _problems(facts, ADVICE_SLUGS)]
    heads = _heads(facts)
    found += [heads] if heads else []
    if not found:
        return Verdict(
            holds=True, summary="metadata and tensors agree", expected="agreement", observed="agreement"
        )
    sentence = "; ".join(found[:MOST_SHOWN])
    return Verdict(
        holds=False, summary=f"{_name(facts)}: {sentence}", expected="agreement", observed=sentence
    )


def _heads(facts: GgufFacts) -> str | None:
    heads, shared, width = facts.head_count, facts.head_count_kv, facts.embedding_length
    if isinstance(heads, Unknown) or isinstance(width, Unknown) or not isinstance(heads.value, int):
        return None
    explicit = isinstance(facts.key_length, Known) and facts.key_length.source.kind == "file"
    if heads.value and width.value % heads.value and not explicit:
        return f"embedding length {width.value} is not a multiple of {heads.value} heads"
    per_group = shared.value if isinstance(shared, Known) and isinstance(shared.value, int) else 0
    if per_group and heads.value % per_group:
        return f"{heads.value} heads are not a multiple of {per_group} heads of keys and values"
    return None
