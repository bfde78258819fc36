"""Write a GGUF file with a vocabulary of 262,144 tokens, 280,000 merges and 1,001 tensors without data.

    python -m benchmarks.make_bigvocab OUT.gguf

The tensor data is a hole: the file takes some 20 MB on disk whatever length it shows.
"""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

TOKENS = 262_144
MERGES = 280_000
BLOCKS = 125
WIDTH = 256
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
ALIGNMENT = 32


def string(text: str) -> bytes:
    """Return a string as GGUF stores it."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def words(count: int, seed: int) -> list[str]:
    """Return invented words of natural lengths, always the same ones."""
    dice = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkjqxz\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"
    return [
        "".join(dice.choices(letters, k=max(1, min(48, int(dice.lognormvariate(1.7, 0.6))))))
        for _ in range(count)
    ]


def keys() -> list[bytes]:
    """Return all key-value pairs."""
    tokens = words(TOKENS, 1)
    merges = [f"{left} {right}" for left, right in zip(words(MERGES, 2), words(MERGES, 3), strict=True)]

    def number(key: str, value: int) -> bytes:
        return string(key) + struct.pack("<II", U32, value)

    def text(key: str, value: str) -> bytes:
        return string(key) + struct.pack("<I", STRING) + string(value)

    def array(key: str, element_type: int, count: int, data: bytes) -> bytes:
        return string(key) + struct.pack("<IIQ", ARRAY, element_type, count) + data

    return [
        text("general.architecture", "llama"),
        text("general.type", "model"),
        text("general.name", "Big vocabulary, no weights"),
        number("general.file_type", 2),
        number("llama.block_count", BLOCKS),
        number("llama.context_length", 8192),
        number("llama.embedding_length", WIDTH),
        number("llama.feed_forward_length", 4 * WIDTH),
        number("llama.attention.head_count", 8),
        number("llama.attention.head_count_kv", 2),
        text("tokenizer.ggml.model", "gpt2"),
        text("tokenizer.ggml.pre", "default"),
        array("tokenizer.ggml.tokens", STRING, TOKENS, b"".join(map(string, tokens))),
        array("tokenizer.ggml.scores", F32, TOKENS, bytes(4 * TOKENS)),
        array("tokenizer.ggml.token_type", I32, TOKENS, struct.pack(f"<{TOKENS}i", *[1] * TOKENS)),
        array("tokenizer.ggml.merges", STRING, MERGES, b"".join(map(string, merges))),
        number("tokenizer.ggml.bos_token_id", 1),
        number("tokenizer.ggml.eos_token_id", 2),
        text("tokenizer.chat_template", "{% for m in messages %}{{ m['content'] }}{% endfor %}"),
    ]


def tensors() -> list[tuple[str, tuple[int, ...], int, int]]:
    """Return name, shape, type and length in bytes of every tensor: 8 in each block, and the embedding."""
    found: list[tuple[str, tuple[int, ...], int, int]] = [
        ("token_embd.weight", (WIDTH, TOKENS), 2, TOKENS * WIDTH // 32 * 18)
    ]
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down", "attn_norm", "ffn_norm")
    for block in range(BLOCKS):
        for name in names:
            if name.endswith("norm"):
                found.append((f"blk.{block}.{name}.weight", (WIDTH,), 0, 4 * WIDTH))
            else:
                found.append((f"blk.{block}.{name}.weight", (WIDTH, WIDTH), 2, WIDTH * WIDTH // 32 * 18))
    return found


def write(path: Path) -> None:
    """Write the file, its tensor data as a hole."""
    pairs, table = keys(), tensors()
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(table), len(pairs)), *pairs]
    offset = 0
    for name, shape, type_id, size in table:
        parts.append(string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type_id, offset))
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    header = b"".join(parts)
    start = -(-len(header) // ALIGNMENT) * ALIGNMENT
    with path.open("wb") as file:
        file.write(header)
        file.truncate(start + offset)
    print(f"{path}: header {start} bytes, {len(table)} tensors, {start + offset} bytes in all")


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and one path
        raise SystemExit(__doc__)
    write(Path(sys.argv[1]))
