"""A program that answers as llama-completion does, honestly or with a lie; standard library only."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data" / "engines" / "b11669"
ANSWER = (
    " lived at the edge of a quiet town and mended clocks for anyone who asked. Each evening it walked home "
    "along the river, counted the boats, and told the ducks what hour it was in every city it had heard of."
)
NAMES = {
    "-m": "--model", "-p": "--prompt", "-n": "--predict", "--n-predict": "--predict", "-c": "--ctx-size",
    "-lv": "--verbosity", "-ngl": "--n-gpu-layers", "--gpu-layers": "--n-gpu-layers", "-s": "--seed",
}  # fmt: skip


def read(argv: list[str]) -> tuple[list[str], dict[str, str], set[str]]:
    """Return lies, values and switches of a command line."""
    lies, values, switches = [], {}, set()
    at = 0
    while at < len(argv):
        name = NAMES.get(argv[at], argv[at])
        value = argv[at + 1] if at + 1 < len(argv) else None
        takes = value is not None and (not value.startswith("-") or value[1:2].isdigit())
        if name == "--lie":
            lies.append(value or "")
        elif takes:
            values[name] = value or ""
        else:
            switches.add(name)
        at += 2 if takes else 1
    return lies, values, switches


def log(lines: list[str]) -> None:
    print("\n".join(f"0.00.190.275 I {line}" for line in lines), file=sys.stderr, flush=True)


def load(values: dict[str, str], lie: str) -> None:
    context = values.get("--ctx-size", "4096")
    lines = [
        f"llama_model_loader: loaded meta data from {values.get('--model', '')} (version GGUF V3 (latest))"
    ]
    if lie == "claims-gpu":
        lines.append("load_tensors: offloaded 31/31 layers to GPU")
    log(
        [
            *lines,
            "load_tensors:   CPU_Mapped model buffer size =    92.10 MiB",
            f"llama_context: n_ctx                 = {context}",
            "llama_kv_cache:        CPU KV buffer size =     5.62 MiB",
            "sched_reserve:        CPU compute buffer size =    50.95 MiB",
            "cmn  common_init_: warming up the model with an empty run - please wait ...",
            f"generate: n_ctx = {context}, n_batch = 2048, n_predict = 24, n_keep = 0",
        ]
    )


def timings(prompt: int, generated: int) -> None:
    runs = max(generated - 1, 0)
    prompt_rate = "(    4.74 ms per token,   211.16 tokens per second)"
    rate = "(    9.85 ms per token,   101.55 tokens per second)"
    log(
        [
            "common_perf_print:        load time =      82.17 ms",
            f"common_perf_print: prompt eval time =      23.68 ms /     {prompt} tokens {prompt_rate}",
            f"common_perf_print:        eval time =      49.24 ms /     {runs} runs   {rate}",
            f"common_perf_print:       total time =      74.97 ms /    {prompt + runs} tokens",
        ]
    )


def words(text: str) -> list[str]:
    return re.findall(r"\s*\S+", text)


def generated_text(lie: str, limit: int) -> tuple[bytes, int]:
    """Return what is generated, and how many tokens it is."""
    if lie in {"echo", "silent"}:
        return b"", 0
    if lie == "whitespace":
        return b" \n \n", limit
    if lie == "replacement":
        return b"\xff\xfe\xfd" * limit, limit
    if lie == "control":
        return b"\x01\x02\x03 " * limit, limit
    pieces = [" the"] * limit if lie == "repeated" else words(ANSWER)
    pieces = pieces * 40 if lie == "ignores-limit" else pieces[:limit]
    return "".join(pieces).encode(), len(pieces)


def stay() -> None:
    while True:
        time.sleep(60)


def flood(number: int) -> None:
    data = b"the same line again and again, because nobody said stop\n" * 1000
    while True:
        os.write(number, data)


def leave_a_grandchild() -> None:
    """Leave a process that holds both pipes, twice forked and in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(300)
        os._exit(0)


def before(lie: str) -> None:
    """Do what a lie does instead of generating."""
    if lie == "waits-for-input":
        sys.stdin.read()
        stay()
    if lie == "ignores-sigterm":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    if lie == "leaves-a-grandchild":
        leave_a_grandchild()


def after(lie: str) -> int:
    """Do what a lie does at the end, and return the exit status."""
    if lie in {"hangs-after-text", "ignores-sigterm"}:
        stay()
    if lie == "floods-stdout":
        flood(1)
    if lie == "floods-stderr":
        flood(2)
    if lie == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    return 1 if lie == "fails" else 0


def main(argv: list[str]) -> int:
    """Run the fake."""
    lies, values, switches = read(argv)
    lie = lies[-1] if lies else "honest"
    if "--version" in switches:
        print("version: 0.7.0 (build 11669, commit Debian)", file=sys.stderr)
        print("built with GNU 16.2.0 for Linux x86_64", file=sys.stderr)
        return 0
    if "--help" in switches:
        sys.stdout.write((DATA / "llama-completion.help.stdout.txt").read_text(encoding="utf-8"))
        return 0
    if "--list-devices" in switches:
        print("Available devices:\n  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (24105 MiB, 24105 MiB free)")
        return 0
    prompt = values.get("--prompt", "")
    load(values, lie)
    before(lie)
    text, count = generated_text(lie, int(values.get("--predict", "64")))
    shown = b"" if "--no-display-prompt" in switches or lie == "silent" else prompt.encode()
    os.write(1, shown + text + (b"" if lie == "silent" else b"\n\n"))
    timings(len(words(prompt)), count)
    return after(lie)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
