"""What a scan of a log looks for beside the signals of rules: facts, marks, errors."""

from __future__ import annotations

import re

GENERATED_TEXT = re.compile(r'("(?:content|reasoning_content|reasoning|text|prompt)":\s*")(?:[^"\\]|\\.)*"')
"""Text that a model wrote, in an answer."""

# What the load log's facts are in; its reader sees only these lines of a large log.
FACT_NEEDLES = (
    "buffer size", "offloaded ", "n_ctx ", "n_ctx_slot = ", "n_slots", "listening", "model loaded",
    "loading model", "splits", "kv_unified ", "flash_attn ", "build: ", "build ", "loaded meta data",
    "using device", "self size", "ggml_vulkan: ", "  Device ", " MiB free)", "verbosity = ", "n_ubatch",
    "n_seq_max", "n_ctx_train", "router", "new slot", "n_ctx_per_seq", "n_ctx_seq ", "cells,", "no_alloc",
    "memory breakdown", "Flash Attention",
)  # fmt: skip
ERROR_NEEDLES = (
    "rror", "ailed", "atal", "bort", "xception", "Traceback", "panic", "refused", "denied", "annot ",
    "egmentation", "ASSERT", "Killed", "terminate called", "couldn't", "could not", "Could not",
    "unable to", "Unable to", " E ", "invalid", "unsupported", "nknown", "not found", "timed out",
    "out of memory",
)  # fmt: skip
# Where a start begins, where it is over, and where text was generated: the first is kept, and the last.
START = (
    r"^build: \d+ \(|^main: build = |llama_server: initializing|build_info: |"
    r"^(?:systemd\[1\]: )?Started \S+\.service|"
    r"^warning: not compiled with GPU|common_params_print_info: build "
)
READY = (
    r"server is listening on http|: model loaded$|all slots are idle|initializing(?: slots)?, n_slots = \d|"
    r"llama server listening at http|^srv .*listening on http|router server is listening"
)
GENERATED = (
    r"^(?:\S+: )?\s*(?:slot print_timing.*|prompt )?eval time =\s*[\d.]+ ms|done request: POST \S+ \S+ 200"
)
MARK_NEEDLES = (
    "build: ", "build = ", "llama_server: initializing", "build_info: ", "Started ",
    "not compiled with GPU", "listening ", "model loaded",
    "slots are idle", "n_slots = ", "eval time =", "done request: POST",
)  # fmt: skip
ERROR_WORDS = (
    r"(?i)(?:^|[^a-z_])(?:error|fatal|panic|exception|traceback|segmentation fault|aborted|core dumped|"
    r"permission denied|connection refused|no such file|not found|timed out|out of memory|"
    r"failed|cannot|can't|could not|couldn't|unable to|killed)(?:$|[^a-z_])"
)
NO_ERROR_WORDS = (
    r"(?i)(?:no|0|without|zero) (?:error|failure)s?|errors?[:=] ?(?:0|none|null)\b|error correction|"
    r"fail(?:ed)?[:=] ?0\b|on-?error|ignore.?errors?|no (?:usable )?gpu found|nothing failed"
)
