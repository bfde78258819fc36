"""The command line of the fake llama-server, and what it prints: version, help, devices, load log."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.fakes.server_lies import Behaviour

FIGURES = {
    "vocab_type": 2, "n_vocab": 49152, "n_ctx_train": 8192, "n_embd": 576, "n_params": 134515008,
    "size": 96576768,
}  # fmt: skip
SWITCHES = {
    "--no-models-autoload", "--asleep", "--reranking", "--metrics", "--props", "--slots", "--no-slots",
    "--embeddings", "--embedding",
    "--kv-unified", "-kvu", "--no-kv-unified", "--jinja", "--no-webui", "--no-ui", "--offline", "--no-warmup",
    "--verbose", "--no-mmap", "--mlock", "--no-perf", "--cont-batching", "-cb", "--log-timestamps",
    "--log-prefix", "--no-log-colors", "--no-context-shift", "--no-kv-offload", "--no-repack",
}  # fmt: skip
NAMES = {
    "-m": "--model", "-a": "--alias", "-c": "--ctx-size", "-np": "--parallel", "-ngl": "--n-gpu-layers",
    "--gpu-layers": "--n-gpu-layers", "-lv": "--verbosity", "--log-verbosity": "--verbosity",
}  # fmt: skip
HELP = Path(__file__).resolve().parent.parent / "data" / "engines" / "b10434" / "llama-server.help.stdout.txt"


class Options:
    """The command line, read as llama-server reads it, and as leniently as a stand-in may."""

    def __init__(self, argv: list[str]) -> None:
        self.lies: list[str] = []
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        at = 0
        while at < len(argv):
            name = NAMES.get(argv[at], argv[at])
            value = argv[at + 1] if at + 1 < len(argv) else ""
            at += 1
            if name in SWITCHES or not name.startswith("-"):
                self.flags.add(name)
                continue
            if value.startswith("-") and not value[1:2].isdigit():
                self.flags.add(name)
                continue
            at += 1
            if name == "--lie":
                self.lies.append(value)
            else:
                self.values[name] = value
        self.host = self.values.get("--host", "127.0.0.1")
        self.port = int(self.values.get("--port", "8080"))
        self.model = self.values.get("--model", "")
        self.slots = int(self.values.get("--parallel", "4"))
        self.context = int(self.values.get("--ctx-size", "8192")) or 8192
        unified = "--kv-unified" in self.flags or "--parallel" not in self.values
        self.slot_context = self.context if unified else -(-(self.context // self.slots) // 256) * 256
        self.aliases = sorted(self.values.get("--alias", self.model or "model").split(","))
        self.token_s = float(self.values.get("--token-ms", "4")) / 1000
        self.figures = {**FIGURES, **json.loads(self.values.get("--figures", "{}"))}
        self.build = self.values.get("--build", "b1-7e4c0a9")
        self.key = self._key()

    def _key(self) -> str | None:
        if "--api-key-file" in self.values:
            return Path(self.values["--api-key-file"]).read_text(encoding="utf-8").split()[0]
        return self.values.get("--api-key") or os.environ.get("LLAMA_API_KEY") or None


def load_log(options: Options, lie: Behaviour) -> list[str]:
    """Return the lines of a load, the library's own only from verbosity 4 on."""
    verbose = int(options.values.get("--verbosity", "3")) >= 4
    lines = [
        f"0.00.029.038 I cmn  common_param: common_params_print_info: verbosity = {4 if verbose else 3}",
        f"0.00.031.149 I srv    load_model: loading model '{options.model}'",
    ]
    if verbose:
        lines += _library_lines(options, lie)
    slots, context = lie.slots or options.slots, options.slot_context
    unified = "true" if context == options.context else "false"
    slot_line = f"initializing, n_slots = {slots}, n_ctx_slot = {context}, kv_unified = '{unified}'"
    lines += [
        f"0.00.273.537 I srv    load_model: {slot_line}",
        "0.00.278.962 I srv  llama_server: model loaded",
        f"0.00.278.974 I srv  llama_server: listening on http://{options.host}:{options.port}",
    ]
    return lines


def _library_lines(options: Options, lie: Behaviour) -> list[str]:
    device = "Vulkan0" if lie.log == "gpu" else "CPU"
    lines = [
        "0.00.228.001 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)"
    ]
    if lie.log in {"gpu", "claims-gpu"}:
        lines.append("0.00.235.516 I load_tensors: offloaded 31/31 layers to GPU")
    if lie.log == "gpu":
        lines += [
            "0.00.235.526 I load_tensors:   CPU_Mapped model buffer size =    28.69 MiB",
            "0.00.235.527 I load_tensors:      Vulkan0 model buffer size =    92.10 MiB",
        ]
    else:
        lines.append("0.00.235.527 I load_tensors:   CPU_Mapped model buffer size =    92.10 MiB")
    return [
        *lines,
        f"0.00.237.237 I llama_context: n_ctx                 = {options.context}",
        f"0.00.237.511 I llama_kv_cache:    {device} KV buffer size =    45.00 MiB",
        f"0.00.267.147 I sched_reserve:    {device} compute buffer size =    15.51 MiB",
    ]


def describe(options: Options, lie: Behaviour, argv: list[str]) -> int | None:
    """Answer --version, --help and --list-devices; None when the server is to run."""
    if "--version" in argv:
        number, _, commit = (lie.build or options.build).removeprefix("b").partition("-")
        print(f"version: 0.1.0-dev (build {number}, commit {commit})", file=sys.stderr)
        print("built with GNU 11.4.0 for Linux x86_64", file=sys.stderr)
    elif "--help" in argv or "-h" in argv:
        sys.stdout.write(HELP.read_text(encoding="utf-8"))
    elif "--list-devices" in argv:
        print("Available devices:")
        vulkan = "  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (24105 MiB, 24105 MiB free)"
        print(vulkan if lie.devices == "vulkan" else "  (none)")
    else:
        return None
    return 0
