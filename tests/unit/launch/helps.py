"""Help texts in the form of three eras, cut to the options that matter here."""

from __future__ import annotations

from llamaops.facts.capabilities import Capabilities, parse_help


def option(head: str, *lines: str) -> str:
    first, *rest = lines or ("",)
    start = f"{head:<40}{first}" if len(head) < 38 else f"{head}\n{'':<40}{first}"
    return "\n".join([start, *(f"{'':<40}{line}" for line in rest)])


COMMON = (
    option("-h,    --help, --usage", "print usage and exit"),
    option("--version", "show version"),
    option("-t,    --threads N", "threads (default: -1)"),
    option("-c,    --ctx-size N", "size of the context (default: 0, 0 = loaded from model)"),
    option("-b,    --batch-size N", "logical batch (default: 2048)"),
    option("-ub,   --ubatch-size N", "physical batch (default: 512)"),
    option("-ctk,  --cache-type-k TYPE", "type for K", "allowed values: f32, f16, bf16, q8_0, q4_0"),
    option("-ctv,  --cache-type-v TYPE", "type for V", "allowed values: f32, f16, bf16, q8_0, q4_0"),
    option("-m,    --model FNAME", "model path", "(env: LLAMA_ARG_MODEL)"),
    option("-s,    --seed SEED", "seed (default: -1)"),
    option("--temp N", "temperature (default: 0.80)"),
    option("--override-kv KEY=TYPE:VALUE,...", "override metadata"),
)
NEW = (
    option("-ngl,  --gpu-layers, --n-gpu-layers N", "a number, 'auto', or 'all' (default: auto)"),
    option("-fa,   --flash-attn [on|off|auto]", "('on', 'off', or 'auto', default: 'auto')"),
    option("-lm,   --load-mode MODE", "how (default: auto)", "- auto: choose", "- none: read", "- mmap: map"),
    option("--log-colors [on|off|auto]", "coloured log (default: 'auto')"),
    option(
        "-lv,   --verbosity, --log-verbosity N",
        "Values:",
        " - 3: info",
        " - 4: trace (more info)",
        "(default: 3)",
    ),
    option("--offline", "no network"),
    option("--warmup, --no-warmup", "warm up (default: enabled)"),
    option("--draft, --draft-n, --draft-max N", "the argument has been removed. use --spec-draft-n-max"),
    option("--spec-draft-n-max N", "draft tokens (default: 16)"),
    option("-hft,  --hf-token TOKEN", "token"),
    option("-dev,  --device <dev1,dev2,..>", "devices"),
)
SERVER = (
    option("--host HOST", "address (default: 127.0.0.1)"),
    option("--port PORT", "port (default: 8080)"),
    option("-a,    --alias STRING", "alias"),
    option("-np,   --parallel N", "slots (default: -1, -1 = auto)"),
    option("-kvu,  --kv-unified, -no-kvu, --no-kv-unified", "(default: enabled if number of slots is auto)"),
    option("--api-key KEY", "key"),
    option("--api-key-file FNAME", "file with keys"),
    option("--metrics", "metrics"),
    option("--slots, --no-slots", "slots endpoint (default: enabled)"),
    option("--embedding, --embeddings", "embeddings"),
    option("--ui, --webui, --no-ui, --no-webui", "web page"),
    option("--cache-ram N", "MiB (default: 8192)"),
    option("--threads-http N", "threads (default: -1)"),
    option("--control-vector-layer-range START END", "two values"),
)
COMPLETION = (
    option("-p,    --prompt PROMPT", "prompt"),
    option("-n,    --predict, --n-predict N", "tokens (default: -1)"),
    option("-cnv,  --conversation, -no-cnv, --no-conversation", "(default: auto enabled with a template)"),
    option("--display-prompt, --no-display-prompt", "print the prompt (default: true)"),
    option("--simple-io", "plain"),
)
OLD_SERVER = (
    option("-ngl,  --gpu-layers, --n-gpu-layers N", "number of layers to store in VRAM"),
    option("-fa,   --flash-attn", "enable Flash Attention (default: disabled)"),
    option("--no-mmap", "do not memory-map"),
    option("--mlock", "keep in RAM"),
    option("-lv,   --verbosity, --log-verbosity N", "verbosity threshold (default: 0)"),
    option("--host HOST", "address"),
    option("--port PORT", "port (default: 8080)"),
    option("-a,    --alias STRING", "alias"),
    option("-np,   --parallel N", "number of parallel sequences (default: 1)"),
    option("--log-colors", "coloured log"),
)


def _help(*groups: tuple[str, ...]) -> Capabilities:
    return parse_help(
        "----- common params -----\n\n" + "\n".join("\n".join(group) for group in groups) + "\n"
    )


NEW_SERVER = _help(COMMON, NEW, SERVER)
NEW_COMPLETION = _help(COMMON, NEW, COMPLETION)
SERVER_2024 = _help(COMMON, OLD_SERVER)
STUBBORN_COMPLETION = _help(
    COMMON,
    (*COMPLETION[:2], option("-cnv,  --conversation", "(default: auto enabled with a template)")),
)
