"""A small model of Gemma 3's architecture, five of six layers with a window, to hold predicted sizes against.

It is big enough that a window shows in mebibytes with two decimals, and says nothing that makes sense.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.fakes.tiny_model import add_vocabulary, vocabulary

LAYERS, WIDTH, HEADS, HEADS_KV, HEAD, FEED_FORWARD = 12, 128, 4, 1, 64, 256
WINDOW, CONTEXT = 512, 32768


def tensors(count: int) -> dict[str, np.ndarray]:
    """Return every tensor for a vocabulary of `count` tokens."""
    dice = np.random.default_rng(11)

    def noise(*shape: int) -> np.ndarray:
        return (0.02 * dice.standard_normal(shape)).astype(np.float32)

    found = {"token_embd.weight": noise(count, WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    ones = {"attn_norm": WIDTH, "attn_q_norm": HEAD, "attn_k_norm": HEAD, "post_attention_norm": WIDTH}
    ones |= {"ffn_norm": WIDTH, "post_ffw_norm": WIDTH}
    matrices = {
        "attn_q": (HEADS * HEAD, WIDTH),
        "attn_k": (HEADS_KV * HEAD, WIDTH),
        "attn_v": (HEADS_KV * HEAD, WIDTH),
        "attn_output": (WIDTH, HEADS * HEAD),
        "ffn_gate": (FEED_FORWARD, WIDTH),
        "ffn_up": (FEED_FORWARD, WIDTH),
        "ffn_down": (WIDTH, FEED_FORWARD),
    }
    for layer in range(LAYERS):
        found |= {f"blk.{layer}.{name}.weight": np.ones(size, np.float32) for name, size in ones.items()}
        found |= {f"blk.{layer}.{name}.weight": noise(*shape) for name, shape in matrices.items()}
    return found


def write_windowed_model(path: Path) -> Path:
    """Write the model, its matrices in F16, and return its path."""
    tokens, types = vocabulary(("one", "two"))
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_type("model")
    writer.add_name("Windowed Test Model")
    writer.add_file_type(1)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS_KV)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_sliding_window(WINDOW)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    add_vocabulary(writer, tokens, types)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    for name, tensor in tensors(len(tokens)).items():
        half = tensor.ndim > 1
        writer.add_tensor(name, tensor.astype(np.float16) if half else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
