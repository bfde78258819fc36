"""What a command line asks for, and whether it carries a secret."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

# Every spelling that the rules ask about, and the name that the fact gets.
FLAGS = {
    "-m": "model", "--model": "model", "-hf": "hf", "-hfr": "hf", "--hf-repo": "hf", "-mu": "model_url",
    "--model-url": "model_url", "-c": "ctx", "--ctx-size": "ctx", "-n": "n_predict",
    "--predict": "n_predict", "--n-predict": "n_predict", "-np": "parallel", "--parallel": "parallel",
    "-ngl": "ngl", "--gpu-layers": "ngl", "--n-gpu-layers": "ngl", "-dev": "device", "--device": "device",
    "-sm": "split_mode", "--split-mode": "split_mode", "-mg": "main_gpu", "--main-gpu": "main_gpu",
    "-ts": "tensor_split", "--tensor-split": "tensor_split", "-b": "batch", "--batch-size": "batch",
    "-ub": "ubatch", "--ubatch-size": "ubatch", "-t": "threads", "--threads": "threads",
    "-tb": "threads_batch", "--threads-batch": "threads_batch", "-ctk": "ctk", "--cache-type-k": "ctk",
    "-ctv": "ctv", "--cache-type-v": "ctv", "-fa": "fa", "--flash-attn": "fa", "--host": "host",
    "--port": "port", "--mmproj": "mmproj", "-mm": "mmproj", "--lora": "lora", "--lora-scaled": "lora",
    "-md": "draft", "--model-draft": "draft", "-ngld": "ngl_draft", "--gpu-layers-draft": "ngl_draft",
    "--jinja": "jinja", "--chat-template": "chat_template", "--chat-template-file": "chat_template_file",
    "--no-mmap": "no_mmap", "--mlock": "mlock", "-kvu": "kv_unified", "--kv-unified": "kv_unified",
    "--embeddings": "embeddings", "--embedding": "embeddings", "--reranking": "reranking",
    "--rerank": "reranking", "--pooling": "pooling", "--top-k": "top_k", "--temp": "temp",
    "--numa": "numa", "-ot": "override_tensor", "--override-tensor": "override_tensor",
    "-ncmoe": "n_cpu_moe", "--n-cpu-moe": "n_cpu_moe", "--cpu-moe": "cpu_moe", "-nkvo": "no_kv_offload",
    "--no-kv-offload": "no_kv_offload", "--api-key": "api_key", "--api-key-file": "api_key_file",
    "--rope-scaling": "rope_scaling", "--rope-scale": "rope_scale", "--yarn-orig-ctx": "yarn_orig_ctx",
    "--cache-ram": "cache_ram", "-cram": "cache_ram", "--rpc": "rpc", "--swa-full": "swa_full",
    "-st": "single_turn", "--single-turn": "single_turn", "-no-cnv": "no_conversation",
    "-cnv": "conversation", "--metrics": "metrics", "--slots": "slots",
    "--reasoning-format": "reasoning_format", "--reasoning-budget": "reasoning_budget",
    "--context-shift": "context_shift", "--timeout": "timeout", "-to": "timeout", "--gpus": "gpus",
    "--memory": "docker_memory", "--network": "network", "-p": "p", "--override-kv": "override_kv",
    "--no-warmup": "no_warmup", "--ssl-key-file": "ssl_key_file", "--ignore-eos": "ignore_eos",
    "--cache-reuse": "cache_reuse", "--no-cache-prompt": "no_cache_prompt", "--no-repack": "no_repack",
    "--check-tensors": "check_tensors", "--models-preset": "models_preset", "--keep": "keep",
    "--samplers": "samplers", "--draft-max": "draft_max", "-fit": "fit", "--fit": "fit",
}  # fmt: skip
_ENGINE = re.compile(
    r"(?:llama-[\w-]+|llama|rpc-server|server|main|llamafile|llama-box|koboldcpp)(?:\.exe)?$"
)
_HOLDS_COMMAND = re.compile(r"(?:llama|server|koboldcpp)\S* (?:.*\s)?--?[A-Za-z]")
_SECRET_FLAGS = frozenset(("--api-key", "--hf-token", "-hft", "--token", "--password", "--apikey"))
_PREFIX = re.compile(r"^(?:ExecStart=[-@:+!]*|\w*\$ |# |args: |cmd: |command: |ENTRYPOINT |CMD )\s*")


class CommandLine:
    """One command line, taken apart."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.program: str | None = None
        self.flags: dict[str, str] = {}
        self.unknown: list[str] = []
        self.secrets: list[str] = []
        self._read()

    def _read(self) -> None:
        words = self.words
        for index, word in enumerate(words):
            base = word.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
            if self.program is None and _ENGINE.match(base):
                self.program = base
            if not word.startswith("-") or len(word) < 2:  # noqa: PLR2004 - a lone dash is standard input
                continue
            name, sign, value = word.partition("=")
            following = words[index + 1] if index + 1 < len(words) else ""
            if not sign and (not following.startswith("-") or _is_number(following)):
                value = following
            if name in FLAGS:
                self.flags[FLAGS[name]] = value
            if name in _SECRET_FLAGS and value and not value.startswith(("$", "<", "/run/")):
                self.secrets.append(value)


def _is_number(word: str) -> bool:
    return word.lstrip("-").replace(".", "", 1).isdigit()


def command_lines(text: str, *, whole: bool) -> Iterator[CommandLine]:
    """Yield the command lines in a text.

    Args:
        text: A command part, or any other text that may hold a process list or an ExecStart line.
        whole: Whether the text is nothing but command lines.
    """
    joined = re.sub(r"\\\s*\n\s*", " ", text[:131072])
    for line in joined.splitlines():
        stripped = _PREFIX.sub("", line.strip().strip('"'))
        if not whole and not _HOLDS_COMMAND.search(line):
            continue
        words = _split(stripped)
        if words and (whole or any(word in FLAGS or word in _SECRET_FLAGS for word in words)):
            yield CommandLine(words)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=False, posix=True)[:512]
    except ValueError:
        return line.split()[:512]
