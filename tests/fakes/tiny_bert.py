"""An encoder of some hundred kilobytes that the real engine loads: a reranker by shared words, or embeddings.

The first layer lets every token look for itself and for the start token with equal force: a token that stands
once gives half of its attention to the start token, one that stands twice a third. What it gave is written
into a number of its own. The second layer takes the mean of that number over all tokens into the start
token, and the classifier ranks by it: the more words query and document share, the higher the score.
"""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import numpy as np

from llamaops.probes.embeddings import INPUTS
from llamaops.probes.rerank import DOCUMENTS, QUERY

WIDTH, FEATURES, HEADS, FEED_FORWARD, LAYERS = 128, 8, 1, 32, 2
CONTEXT = 512
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL))
MARK, MEAN, START = (WIDTH - 1 - number for number in range(3))
"""Numbers of a token beside those that tell it from others: how lonely it is, the mean of that, and one for
the attention of every token to the start token."""
FORCE = 24.0
GAIN, SLOPE = 6.0, 40.0
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"
PROSE = " ".join((*INPUTS, QUERY, *DOCUMENTS))


def vocabulary() -> list[str]:
    """Return special tokens, the words of our own prompts, and each character at and after a word's start."""
    words = sorted(set(re.findall(r"[a-z]+|[.?,]", PROSE.lower())))
    characters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789")
    starts = [WORD_START + text for text in dict.fromkeys((*words, *characters))]
    return [*SPECIAL, *starts, *characters]


def tensors(count: int, *, ranks: bool) -> dict[str, np.ndarray]:
    """Return every tensor of the encoder, and its classifier where it ranks."""
    dice = np.random.default_rng(11)
    own = WIDTH - FEATURES
    identity = np.zeros((count, WIDTH), np.float32)
    for row in identity:
        row[:own] = dice.permutation(np.repeat([1.0, -1.0], own // 2))
    start = identity[CLS] / own
    value = np.zeros((WIDTH, WIDTH), np.float32)
    # The engine divides by the root of the width, and the norm makes a token's own numbers a little larger.
    scale = np.float32(np.sqrt(FORCE * np.sqrt(WIDTH) / own))
    look = np.zeros((WIDTH, WIDTH), np.float32)
    look[:own, :own] = scale * np.eye(own, dtype=np.float32)
    key = look.copy()
    key[START] = start * FORCE * np.sqrt(WIDTH)
    value[MARK] = start
    bias = np.zeros(WIDTH, np.float32)
    bias[START] = 1.0
    marks, means = np.zeros((WIDTH, WIDTH), np.float32), np.zeros((WIDTH, WIDTH), np.float32)
    marks[MARK, MARK] = GAIN
    pick = np.zeros((WIDTH, WIDTH), np.float32)
    pick[MARK, MARK] = 1.0
    means[MEAN, MARK] = 1.0
    nothing, flat = np.zeros((WIDTH, WIDTH), np.float32), np.zeros(WIDTH, np.float32)
    layers = ((look, bias, key, value, marks), (nothing, flat, nothing, pick, means))
    found = {
        "token_embd.weight": identity,
        "token_types.weight": np.zeros((2, WIDTH), np.float32),
        "position_embd.weight": np.zeros((CONTEXT, WIDTH), np.float32),
        **_norm("token_embd_norm"),
    }
    for number, (q, q_bias, k, v, out) in enumerate(layers):
        block = f"blk.{number}"
        found |= {
            f"{block}.attn_q.weight": q, f"{block}.attn_q.bias": q_bias,
            f"{block}.attn_k.weight": k, f"{block}.attn_k.bias": flat,
            f"{block}.attn_v.weight": v, f"{block}.attn_v.bias": flat,
            f"{block}.attn_output.weight": out, f"{block}.attn_output.bias": flat,
            f"{block}.ffn_up.weight": np.zeros((FEED_FORWARD, WIDTH), np.float32),
            f"{block}.ffn_up.bias": np.zeros(FEED_FORWARD, np.float32),
            f"{block}.ffn_down.weight": np.zeros((WIDTH, FEED_FORWARD), np.float32),
            f"{block}.ffn_down.bias": flat,
            **_norm(f"{block}.attn_output_norm"), **_norm(f"{block}.layer_output_norm"),
        }  # fmt: skip
    if ranks:
        score = np.zeros((1, WIDTH), np.float32)
        score[0, MEAN] = -SLOPE
        found |= {"cls.output.weight": score, "cls.output.bias": np.full(1, SLOPE * 2.0, np.float32)}
    return found


def _norm(name: str) -> dict[str, np.ndarray]:
    return {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": np.zeros(WIDTH, np.float32)}


def write_tiny_bert(path: Path, *, ranks: bool) -> Path:
    """Write a reranker, or a model for embeddings by the mean of its tokens; return its path."""
    tokens = vocabulary()
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_type("model")
    writer.add_name("Tiny Test Reranker" if ranks else "Tiny Test Embeddings")
    writer.add_license("cc0-1.0")
    writer.add_file_type(0)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.RANK if ranks else gguf.PoolingType.MEAN)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_type_count(2)
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    kinds = [CONTROL, UNKNOWN, CONTROL, CONTROL, CONTROL]
    writer.add_token_types(kinds + [NORMAL] * (len(tokens) - len(kinds)))
    writer.add_bos_token_id(CLS)
    writer.add_eos_token_id(SEP)
    writer.add_sep_token_id(SEP)
    writer.add_unk_token_id(UNK)
    writer.add_pad_token_id(PAD)
    writer.add_mask_token_id(MASK)
    for name, tensor in tensors(len(tokens), ranks=ranks).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
