# ruff: noqa: E501 - a table is read by its rows
"""What the lines of a load log mean, as data: one row per message, with the years it was seen in.

A row has a `needle` (a plain substring, tested first because it is cheap), the tags that may write the
message (empty: any), a pattern for the message, and what it tells. `Reader` methods of the same name
take the groups. Releases from late 2023 to late 2026 are covered; add a row for a new wording and keep
the old one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

Era = Literal["2023", "2024", "2025", "2026"]


class Pattern(NamedTuple):
    """One message of the engine."""

    name: str
    """What it tells; the name of the reader's method."""
    needle: str
    """A substring that every such line has."""
    regex: str
    """Matched at the start of the message."""
    tags: tuple[str, ...] = ()
    """Tags or function names that write it; a trailing `*` is a prefix. Empty: any."""
    eras: tuple[Era, ...] = ()
    """When it was written like this; empty for a wording that never changed."""
    where: Literal["message", "text"] = "message"
    """Whether the pattern is matched on the message or on the line with its tag."""


_SIZE = r"([\d.]{1,20}) Mi?B"
_WEIGHT_TAGS = ("load_tensors", "llm_load_tensors", "llama_model_load_internal")
_CONTEXT_TAGS = ("llama_context", "llama_new_context_with_model", "llama_init_from_model")
_PROGRAM_TAGS = ("srv", "main", "common_params_print_info", "cmn", "common_param")

PATTERNS: tuple[Pattern, ...] = (
    # The program and what it runs on.
    Pattern("verbosity_seen", "verbosity = ", r".*?verbosity = (\d{1,10})\b", _PROGRAM_TAGS, ("2026",)),
    Pattern("build", "build ", r"(?:common_params_print_info: )?build (\d{1,10}) \(([^()]{1,80})\)", _PROGRAM_TAGS, ("2026",)),
    Pattern("build", "build", r"build: (\d{1,10}) \(([^()]{1,80})\)", (), ("2024", "2025"), "text"),
    Pattern("build", "build = ", r"build = (\d{1,10}) \(([^()]{1,80})\)", ("main",), ("2023", "2024")),
    Pattern("build_2024", "build info", r"build info$", ("main",), ("2024",)),
    Pattern("device_table", "device_info:", r"device_info:", (), ("2026",)),
    Pattern("device_row", " MiB free)", r"\s*- (\S{1,80})\s*: (.*) \((\d{1,12}) MiB, (\d{1,12}) MiB free\)", ("cmn", "common_param", ""), ("2026",)),
    Pattern("device_count", "found ", r"found (\d{1,4}) (CUDA|ROCm|MUSA) devices", ("ggml_cuda_init", "ggml_init_cublas")),
    Pattern("device_numbered", "Device ", r"\s*Device (\d{1,4}): ([^,]{1,200}), ", ("", "Device")),
    Pattern("device_vulkan", "ggml_vulkan: ", r"(\d{1,4}) = (.{1,300}?) \| ", ("ggml_vulkan",)),
    Pattern("device_vulkan", "Vulkan", r"Vulkan(\d{1,4}): (.{1,300}?) \| ", ("ggml_vulkan", "Vulkan*"), ("2024",), "text"),
    Pattern("device_metal", "found device:", r"found device: (.{1,200})", ("ggml_metal_init",), ("2023", "2024")),
    Pattern("device_metal_named", "GPU name:", r"GPU name:\s+(\S{1,80})(?: \((.{1,200})\))?", ("ggml_metal_device_init", "ggml_metal_init")),
    Pattern("device_used", "using device ", r"using device (\S{1,255}) \((.*?)\)(?: \([^()]*\))? - (\d{1,12}) MiB free", ("llama_prepare_model_devices", "llama_model_load_from_file_impl", "llama_load_model_from_file", "llama_model_load_from_file")),
    Pattern("backend_2023", "for GPU acceleration", r"using (\w{1,40}) for GPU acceleration", ("llm_load_tensors", "llama_model_load_internal"), ("2023",)),
    # The file.
    Pattern("model_named", "loading model", r"loading model,? '(.*)'$", ("srv", "load_model")),
    Pattern("model_local", "local path '", r"local path '(.*)'$", ("srv", "load_model"), ("2026",)),
    Pattern("pass_begins", "loaded meta data with ", r"loaded meta data with \d+ key-value pairs and (\d{1,10}) tensors from (.*?)(?: \(version |$)", ("llama_model_loader",)),
    Pattern("dry_pass", "no_alloc", r"no_alloc\s+= (\d)", ("print_info",), ("2026",)),
    Pattern("trained_context", "n_ctx_train", r"n_ctx_train\s+= (\d{1,12})", ("print_info", "llm_load_print_meta")),
    # Weights.
    Pattern("offloaded", "offloaded ", r"offloaded (\d{1,9})/(\d{1,9}) layers to GPU", _WEIGHT_TAGS),
    Pattern("weights", "buffer size", r"(\S{1,300})\s+(?:model )?buffer size\s*=\s*" + _SIZE, _WEIGHT_TAGS),
    Pattern("weights_2023_host", "mem required", r"(?:\(.{1,80}?\) )?mem required\s*=\s*" + _SIZE, _WEIGHT_TAGS, ("2023",)),
    Pattern("weights_2023_device", "VRAM used", r"(?:\[\w{1,20}\] )?(?:total )?VRAM used:?\s*=?\s*" + _SIZE, _WEIGHT_TAGS, ("2023",)),
    Pattern("weights_2023_metal", "allocated 'data", r"allocated 'data[^']{0,20}' buffer, size =\s*" + _SIZE, ("ggml_metal_add_buffer",), ("2023",)),
    # Context and its buffers.
    Pattern("context_begins", "constructing llama_context", r"constructing llama_context", ("llama_context",), ("2025", "2026")),
    Pattern("context_value", " = ", r"(n_seq_max|n_ctx|n_ctx_seq|n_ctx_per_seq|n_batch|n_ubatch|flash_attn|kv_unified)\s*=\s*(\S{1,20})", _CONTEXT_TAGS),
    Pattern("kv_buffer", "KV buffer size", r"(\S{1,300}) KV buffer size\s*=\s*" + _SIZE, ("llama_kv_cache*",)),
    Pattern("kv_size_2024", "self size", r"(?:KV|kv) self size\s*=\s*" + _SIZE + r"(?:, K \((\w{1,20})\).{0,60}V \((\w{1,20})\))?", _CONTEXT_TAGS, ("2023", "2024")),
    Pattern("kv_types", "size", r"size\s*=\s*[\d.]+ MiB \(\s*(\d{1,12}) cells,.{1,80}?K \((\w{1,20})\).{0,60}V \((\w{1,20})\)", ("llama_kv_cache*",)),
    Pattern("state_buffer", "RS buffer size", r"(\S{1,300}) RS buffer size\s*=\s*" + _SIZE, ("llama_memory_recurrent", "llama_kv_cache_recurrent")),
    Pattern("output_buffer", "output buffer size", r"(\S{1,300})\s+output buffer size\s*=\s*" + _SIZE, (*_CONTEXT_TAGS, "output_reserve")),
    Pattern("compute_begins", "reserving ...", r"reserving \.\.\.", ("sched_reserve",), ("2026",)),
    Pattern("compute_buffer", "compute buffer size", r"(\S{1,300}) compute buffer size\s*=\s*" + _SIZE, (*_CONTEXT_TAGS, "sched_reserve", "graph_reserve")),
    Pattern("flash_attention", "Flash Attention", r"Flash Attention (enabled|not supported, set to disabled|was auto, set to (?:enabled|disabled))", ("resolve_fused_ops", "sched_reserve", *_CONTEXT_TAGS), ("2025", "2026")),
    Pattern("graph_splits", "splits", r"(?:graph: .{0,80}|graph )?splits\s*=\s*(\d{1,9})", (*_CONTEXT_TAGS, "sched_reserve")),
    # The fit step.
    Pattern("breakdown_begins", "memory breakdown", r"\| memory breakdown \[MiB\]", ("common_memory_breakdown_print", "llama_memory_breakdown_print"), ("2025", "2026")),
    Pattern("breakdown_row", "|   - ", r"\|   - (.{1,300}?)\s*\|(.{1,200})\|", ("common_memory_breakdown_print", "llama_memory_breakdown_print"), ("2025", "2026")),
    # Slots, template, ready.
    Pattern("slots", "n_slots", r"initializing(?: slots)?, n_slots = (\d{1,6})(?:, n_ctx_slot = (\d{1,12}), kv_unified = '(\w+)')?", ("srv",)),
    Pattern("slots_2024", "initializing slots", r"initializing slots", ("init", "initialize"), ("2024",)),
    Pattern("slot", "new slot", r"new slot,? n_ctx(?:_slot)? = (\d{1,12})", ("slot",)),
    Pattern("slot_2024", "new slot", r"new slot$", ("init", "initialize"), ("2024",)),
    Pattern("slot_2023", "max context:", r"\s*(?:->|-->)\s*Slot (\d{1,6}) - max context: (\d{1,12})", (), ("2023",), "text"),
    Pattern("thinking", "thinking = ", r"(?:init: )?chat template, .{0,40}?thinking = (\d)", ("srv", "main")),
    Pattern("router", "router", r"(?:starting server in router mode|router server is listening)", ("srv", "main"), ("2026",)),
    Pattern("loaded", "model loaded", r"model loaded$", ("srv", "main", "load_model", "start_server")),
    Pattern("generating", "generate: n_ctx", r"n_ctx = \d+, n_batch", ("generate",)),
    Pattern("generating", "n_predict", r"generate: n_ctx = \d+, n_batch", ("main",), ("2024", "2025")),
    Pattern("announced", "llama server listening at ", r"llama server listening at (\S{1,300})", (), ("2023",), "text"),
    Pattern("announced_2024", "HTTP server listening", r"HTTP server listening", ("main", "start_server"), ("2024",)),
)  # fmt: skip

READY = r"(?:server is )?listening on ((?:https?|unix)://[^\s,]{1,300})"
"""The one line that means ready; `HTTP server is listening, hostname:` comes before the load."""
READY_TAGS = ("srv", "main")

LIBRARY_TAGS = (
    "llama_model_loader", "load_tensors", "print_info", "llm_load_print_meta", "llm_load_tensors",
    "llama_context", "llama_kv_cache", "llama_kv_cache_unified", "llama_kv_cache_init",
    "llama_new_context_with_model", "sched_reserve", "llama_memory_recurrent",
)  # fmt: skip
"""Who writes the lines that default verbosity hides since May 2026."""

# An error by its text, for releases without level letters and for raw prints.
ERROR_TEXT = (
    r"(?:\S{1,80}: )?(?:"
    r"error[: ]|(?:llama_\w+: )?error loading model|error while (?:handling|loading)|"
    r"failed to (?:load|open|allocate|initialize|create|read|reserve|compute|decode|parse)\b|"
    r"failed to (?:apply|process|connect)\b|"
    r"Failed to connect to |unable to (?:load|allocate|create|open) |couldn't bind|exiting due to |"
    r"GGML_ASSERT|terminate called|libc\+\+abi: terminating|what\(\):|CUDA error|HIP error|ROCm error|"
    r"cudaMalloc failed|ggml_abort|Illegal instruction|illegal instruction|Segmentation fault|Killed$|"
    r"invalid magic|unknown model architecture|out of memory|ErrorOutOfDeviceMemory|std::bad_alloc|"
    r"RPC server version mismatch|.{0,80}version [`'.]?(?:GLIBC|GLIBCXX|CXXABI)_"
    r")|.{0,300}GGML_ASSERT\(|.{0,200}: GGML_ASSERT|.{0,300}failed to load model"
)
WARNING_TEXT = r"(?:\S{1,80}: )?(?:warning|warn|WARNING|DEPRECATED)\b"
NOT_AN_ERROR = (
    "failed to find ggml_backend_score", "this warning is normal", "AMX is not ready",
    "llama_model_load_from_file_impl: using device", "No devices found",
)  # fmt: skip

# These end a load; a later `model loaded` takes it back.
LOAD_FAILED = (
    r".{0,300}(?:failed to load (?:the |draft |multimodal )?model|failed to create[ _]context|"
    r"unable to (?:load model|create context)|exiting due to model|error loading model|"
    r"failed to initialize chat template|GGML_ASSERT|terminate called|libc\+\+abi: terminating|"
    r"CUDA error|ROCm error|[Ii]llegal instruction|Segmentation fault)"
)
CRASHED = (
    r".{0,300}(?:GGML_ASSERT|terminate called|libc\+\+abi: terminating|CUDA error|ROCm error|"
    r"[Ii]llegal instruction|Segmentation fault)"
)
"""Of these, what ends a program at any time: after the load it is no failure of the load."""
# These end a start before the load began.
START_FAILED = (
    r".{0,300}(?:couldn't bind|exiting due to HTTP|error while handling|error: invalid argument|"
    r"error while loading shared libraries|Failed to connect to )"
)
FIT_FAILED = "encountered an error while trying to fit params"
"""Ends the dry load of the fit step: the real load follows, and says the same again."""


class KnownLine(NamedTuple):
    """A warning or error that is understood, whether or not it matters."""

    id: str
    regex: str
    harmless: bool
    """Whether it says nothing about the load or the answers."""


KNOWN_LINES: tuple[KnownLine, ...] = (
    KnownLine("no-api-key", r"no API key is set|CORS|pull/25655|-{9,}$|cross-origin", harmless=True),
    KnownLine(
        "router-mode", r"router mode|the following feature\(s\) are enabled|do not expose", harmless=False
    ),
    KnownLine("port-notice", r"default port will be changed", harmless=True),
    KnownLine(
        "environment-overridden", r"environment variable is set, but will be overwritten", harmless=True
    ),
    KnownLine("deprecated", r"DEPRECATED|is deprecated", harmless=True),
    KnownLine(
        "context-over-trained",
        r"possible training context overflow|exceeds the training context",
        harmless=False,
    ),
    KnownLine("context-rounded", r"n_ctx is not divisible by n_seq_max", harmless=True),
    KnownLine(
        "gpu-ignored",
        r"no usable GPU found|--gpu-layers option will be ignored|compiled without (?:support for )?GPU|consult docs/build\.md|has no effect",
        harmless=False,
    ),
    KnownLine("mlock-failed", r"failed to mlock|RLIMIT_MEMLOCK|mlock not supported", harmless=False),
    KnownLine(
        "flash-attention-off", r"Flash Attention not supported|is assigned to device .* but", harmless=False
    ),
    KnownLine("fit-gave-up", r"failed to fit params", harmless=False),
    KnownLine("fit-error", FIT_FAILED, harmless=False),
    KnownLine("cancelled", r"cancel task, id_task", harmless=True),
    KnownLine("wrong-key", r"unauthorized: Invalid API Key", harmless=True),
    KnownLine("option-dropped", r"is not supported by|will be disabled", harmless=False),
    KnownLine(
        "tokenizer-doubtful",
        r"control-looking token|special_eo[gsm]|pre-tokenizer|QUALITY WILL BE DEGRADED",
        harmless=False,
    ),
    KnownLine("unused-tensor", r"model has unused tensor", harmless=True),
    KnownLine("device-memory-unknown", r"did not report memory|cudaMemGetInfo failed", harmless=False),
    KnownLine(
        "load-failed",
        r"failed to load model|unable to load model|error loading model|exiting due to model loading error|failed to create[ _]context|unable to create context",
        harmless=False,
    ),
    KnownLine(
        "file",
        r"invalid magic|failed to open GGUF|failed to read|gguf_init_from|not within the file bounds|GGUFv1|GGUF file is version",
        harmless=False,
    ),
    KnownLine(
        "memory",
        r"out of memory|failed to allocate|unable to allocate|OutOfDeviceMemory|insufficient memory|bad_alloc",
        harmless=False,
    ),
    KnownLine(
        "device-backend",
        r"failed to initialize (?:CUDA|\S+ backend)|CUDA error|ROCm error|Failed to connect to|RPC ",
        harmless=False,
    ),
    KnownLine("bind", r"couldn't bind|exiting due to HTTP server error", harmless=False),
    KnownLine("template", r"chat template|common_chat_templates_init|--no-jinja", harmless=False),
    KnownLine("arguments", r"invalid argument|error while handling", harmless=False),
    KnownLine(
        "crash", r"GGML_ASSERT|terminate called|Segmentation fault|[Ii]llegal instruction", harmless=False
    ),
    KnownLine(
        "context-full",
        r"Context size has been exceeded|failed to find free space in the KV cache|failed to find a memory slot",
        harmless=False,
    ),
    KnownLine(
        "embedding-batch",
        r"embeddings enabled with n_batch|setting n_batch = n_ubatch|embeddings required but",
        harmless=True,
    ),
    KnownLine("adapter", r"lora", harmless=False),
)


@cache
def compiled(regex: str) -> re.Pattern[str]:
    """Compile a pattern of this module once, on first use."""
    return re.compile(regex)


@cache
def written_by(tags: tuple[str, ...], tag: str, function: str) -> bool:
    """Say whether a tag or function is one of those a pattern allows."""
    for allowed in tags:
        if allowed.endswith("*"):
            if tag.startswith(allowed[:-1]):
                return True
        elif allowed in {tag, function}:
            return True
    return not tags
