"""The ways in which a fake llama-completion lies."""

from __future__ import annotations

LIES: dict[str, str] = {
    "honest": "prints the prompt, an answer and its timings",
    "echo": "prints the prompt and nothing else",
    "silent": "prints nothing and ends with 0",
    "whitespace": "prints white space",
    "repeated": "prints one token again and again",
    "replacement": "prints bytes that are not UTF-8",
    "control": "prints control characters",
    "waits-for-input": "reads standard input, and waits on when there is none",
    "hangs-after-text": "prints an answer and stays",
    "floods-stdout": "prints without end",
    "floods-stderr": "logs without end",
    "leaves-a-grandchild": "answers, and leaves a process in a session of its own that holds the pipes",
    "ignores-sigterm": "stays, and ignores SIGTERM and SIGINT",
    "ignores-limit": "generates far more than -n",
    "claims-gpu": "prints an offload line, and CPU buffers",
    "crashes": "prints an answer and ends by SIGSEGV",
    "fails": "prints an answer and ends with 1",
}
