"""The few facts that the short summary shows: one table, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from llamaops.render.inert import one_line
from llamaops.render.view import shown

Format = Callable[[Any], str]


def _bytes(value: Any) -> str:  # noqa: ANN401 - plain data of a record
    return f"{value / 2**20:,.1f} MiB ({value:,} bytes)"


def _types(value: Any) -> str:  # noqa: ANN401
    parts = [f"{item['type']} {100 * item['share']:.1f} %" for item in value if item.get("share") is not None]
    return ", ".join(parts[:6]) or shown([item["type"] for item in value])


def _present(value: Any) -> str:  # noqa: ANN401
    return f"present, {value['bytes']:,} bytes, sha256 {value['sha256'][:12]}…"


def _parts(value: Any) -> str:  # noqa: ANN401
    return f"{len(value)}"


def _text(value: Any) -> str:  # noqa: ANN401
    return f"“{one_line(str(value).strip(), 160)}”"


def _rate(value: Any) -> str:  # noqa: ANN401
    return f"{value:,.1f} tokens/s"


def _seconds(value: Any) -> str:  # noqa: ANN401
    return f"{1000 * value:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def _process_memory(value: Any) -> str:  # noqa: ANN401
    own, files = value["own_bytes"] / 2**20, value["file_bytes"] / 2**20
    return f"{own:,.1f} MiB of its own, {files:,.1f} MiB of files"


def _lag(value: Any) -> str:  # noqa: ANN401
    return f"{_seconds(value)} (since the log's listening line)"


def _latency(value: Any) -> str:  # noqa: ANN401
    return f"{_seconds(value)} (median between chunks)"


def _vectors(value: Any) -> str:  # noqa: ANN401
    return f"{value['dimension']} numbers each, different texts {value['different_similarity']:.3f} alike"


def _ranks(value: Any) -> str:  # noqa: ANN401
    return f"relevant document {value['relevant_score']:.2f}, other {value['other_score']:.2f}"


def _router_models(value: Any) -> str:  # noqa: ANN401
    return ", ".join(
        f"{item['name']} {item['state_after'] or item['state_before'] or 'not listed'}"
        f"{' (not asked)' if item['why_not'] else ''}"
        for item in value
    )


def _listeners(value: Any) -> str:  # noqa: ANN401
    return ", ".join(f"pid {item['pid']} on {item['address']}:{item['port']}" for item in value[:4])


def _devices(value: Any) -> str:  # noqa: ANN401
    return ", ".join(f"{item['name']} ({item['description']})" for item in value) or "none but the CPU"


def _buffers(value: Any) -> str:  # noqa: ANN401
    return ", ".join(
        f"{item['name']} {item['size_bytes'] / 2**20:,.2f} MiB" for item in value if item["size_bytes"]
    )


def _fit_parts(value: Any) -> str:  # noqa: ANN401
    def one(part: Any) -> str:  # noqa: ANN401
        low, high = part["low_bytes"] / 2**20, part["high_bytes"] / 2**20
        span = f"{high:,.1f}" if low == high else f"{low:,.1f} to {high:,.1f}"
        return f"{part['name']} {span} MiB on the {part['place']}"

    return ", ".join(one(part) for part in value)


def _room(value: Any) -> str:  # noqa: ANN401
    def said(word: str, what: Any) -> str:  # noqa: ANN401
        return f"{word} {what:,}" if isinstance(what, int) else f"{word} {what or 'none'}"

    if not any(value.values()):
        return "nothing: no context, no slot and no cache type fits with the rest as planned"
    return ", ".join(
        (
            said("context up to", value["context_tokens"]),
            said("slots up to", value["slots"]),
            said("cache type", value["cache_type"]),
        )
    )


def _engine(value: Any) -> str:  # noqa: ANN401
    total = value["model_mib"] + value["context_mib"] + value["compute_mib"]
    return (
        f"{total:,.0f} MiB = {value['model_mib']:,.0f} model + {value['context_mib']:,.0f} context"
        f" + {value['compute_mib']:,.0f} compute ({value['front_end']})"
    )


def _bases(value: Any) -> str:  # noqa: ANN401
    return ", ".join(item.get("repo_url") or item.get("name") or "unnamed" for item in value)


def _names(value: Any) -> str:  # noqa: ANN401
    return ", ".join(str(item) for item in value)


def _place(value: Any) -> str:  # noqa: ANN401
    return f"{value.get('repository') or 'a hub'} at {value.get('revision') or 'an unknown revision'}"


def _digests(value: Any) -> str:  # noqa: ANN401
    known = [item for item in value if item["sha256"].get("state") == "known"]
    return ", ".join(
        f"{item['sha256']['value']} ({'computed now' if item['computed_now'] else 'remembered'})"
        for item in known
    )


def _supports(value: Any) -> str:  # noqa: ANN401
    first = value[0]["supports"] if value else {}
    found = first.get("value", {}) if first.get("state") == "known" else {}
    return ", ".join(name.replace("_", " ") for name, holds in found.items() if holds) or "nothing"


def _rounds(value: Any) -> str:  # noqa: ANN401
    best = max(value, key=lambda item: item["side_by_side"])
    waits = [item["waited_s"] for item in best["requests"] if item["waited_s"] is not None]
    longest = f"; longest wait {_seconds(max(waits))}" if waits else ""
    return f"{len(best['requests'])} sent, {best['side_by_side']} side by side{longest}"


def _late(value: Any) -> str:  # noqa: ANN401
    return f"{value['pieces_after']} pieces of the running request came after the late one's first"


def _endpoints(value: Any) -> str:  # noqa: ANN401
    kinds = [item["meaning"].replace("_", " ") for item in value]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


# Label, path below the facts, format, and the commands whose summary shows it (none: every command's).
# A row whose fact is not known is left out: the summary shows what was seen, and the findings and gaps
# say what was not.
Row = tuple[str, str, Format, tuple[str, ...]]
HOST = ("preflight",)
MODEL = ("inspect",)
FETCH = ("fetch",)
FIT = ("fit",)
ROWS: tuple[Row, ...] = (
    ("system", "host.os.name", shown, HOST),
    ("processor", "host.cpu.model", shown, HOST),
    ("usable CPUs", "host.cpu.effective_cpus", shown, HOST),
    ("usable memory", "host.memory.effective_available_bytes", _bytes, HOST),
    ("memory bound by", "host.memory.bound_by", shown, HOST),
    ("model file", "model.path", shown, ()),
    ("model name", "model.name", shown, ()),
    ("architecture", "model.architecture", shown, MODEL),
    ("kind", "identity.role", shown, MODEL),
    ("parameters", "model.parameter_count", shown, MODEL),
    ("tensor data", "model.tensor_bytes", _bytes, MODEL),
    ("types by bytes", "model.tensor_types", _types, MODEL),
    ("bits per weight", "model.bits_per_weight", shown, MODEL),
    ("layers are", "identity.quantization.mixture", shown, MODEL),
    ("trained context", "model.context_length_tokens", shown, MODEL),
    ("layers", "model.block_count", shown, MODEL),
    ("attention heads", "model.head_count", shown, MODEL),
    ("KV heads", "model.head_count_kv", shown, MODEL),
    ("vocabulary", "model.vocabulary_size", shown, MODEL),
    ("tokenizer", "model.tokenizer_model", shown, MODEL),
    ("chat template", "model.chat_template", _present, MODEL),
    ("shards", "model.shards", _parts, MODEL),
    ("stated licence", "identity.provenance.licence", shown, MODEL),
    ("stated base", "identity.provenance.base_models", _bases, MODEL),
    ("came from", "identity.hub", _place, MODEL),
    ("SHA-256", "digests.files", _digests, MODEL),
    ("template has", "templates.templates", _supports, MODEL),
    ("repository", "hub.repository", shown, FETCH),
    ("commit", "hub.commit", shown, FETCH),
    ("card's licence", "hub.licence", shown, FETCH),
    ("card's base models", "hub.base_models", _names, FETCH),
    ("quantized by", "hub.quantizer", shown, FETCH),
    ("SHA-256", "digests.files", _digests, FETCH),
    ("program", "binary.path", shown, ()),
    ("build", "binary.version.text", shown, ()),
    ("devices listed", "binary.devices", _devices, ()),
    ("plan", "launch.plan", shown, ()),
    ("settings", "fit.plan", shown, FIT),
    ("memory by part", "fit.parts", _fit_parts, FIT),
    ("host memory needed", "fit.host_bytes", _bytes, ()),
    ("card memory needed", "fit.device_bytes", _bytes, FIT),
    ("host memory free", "fit.host_available_bytes", _bytes, FIT),
    ("fits up to", "fit.room", _room, FIT),
    ("engine projects", "fit.engine", _engine, FIT),
    ("weights lie in", "load.weight_buffers", _buffers, ()),
    ("path", "generation.chosen_via", shown, ()),
    ("raw text", "generation.raw.text", _text, ()),
    ("raw tokens", "generation.raw.generated_tokens", shown, ()),
    ("prompt processing", "generation.raw.prompt_processing_per_s", _rate, ()),
    ("token generation", "generation.raw.token_generation_per_s", _rate, ()),
    ("chat text", "generation.chat.text", _text, ()),
    ("ready after", "lifecycle.ready_s", _seconds, ()),
    ("known ready after", "lifecycle.ready_lag_s", _lag, ()),
    ("held when ready", "lifecycle.memory_when_ready", _process_memory, ()),
    ("server's build", "server.props.build_info", shown, ()),
    ("chat answer", "server.chat.text", _text, ()),
    ("time to first token", "server.chat_stream.first_token_s", _seconds, ()),
    ("vectors", "server.embeddings", _vectors, ()),
    ("ranks", "server.rerank", _ranks, ()),
    ("router's models", "router.models", _router_models, ()),
    ("woken in", "sleep.woken.elapsed_s", _seconds, ()),
    ("who answers", "owner.listeners", _listeners, ()),
    ("verdict", "canary.verdict", shown, ()),
    ("requests at once", "concurrency.rounds", _rounds, ()),
    ("late request", "concurrency.late", _late, ()),
    ("endpoints", "surface.rows", _endpoints, ()),
    ("inter-token latency", "server.chat_stream.inter_piece_median_s", _latency, ()),
)


def highlights(command: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for each row of the table that a command shows, then one per program found."""
    for label, path, form, commands in ROWS:
        value = lookup(facts, path) if not commands or command in commands else None
        if value not in (None, "", [], ()):
            yield label, one_line(form(value), 220)
    for program in lookup(facts, "binaries.found") or []:
        build = lookup(program, "version.text") or "build unknown"
        devices = lookup(program, "devices")
        listed = f"; devices: {_devices(devices)}" if devices is not None else ""
        yield program["role"], one_line(f"{program['path']} ({build}{listed})", 220)


def lookup(value: Any, path: str) -> Any:  # noqa: ANN401 - plain data of a record
    """Return what lies at a dotted path, known facts opened on the way; None when it is not known."""
    for name in path.split("."):
        value = _opened(value)
        value = value.get(name) if isinstance(value, dict) else None
    return _opened(value)


def _opened(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict) and value.get("state") == "known":
        return value["value"]
    return None if isinstance(value, dict) and value.get("state") == "unknown" else value
