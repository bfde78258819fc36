"""A model of a few hundred kilobytes that the real engine loads and that says a fixed sentence.

Each word's row of the output matrix is the embedding of the word before it, so that greedy sampling walks
through `WORDS` and begins again (or ends, with `ends=True`), whatever the prompt was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = ("the", "small", "model", "counts", "from", "one", "to", "many", "and", "then", "rests", "again")
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
BOS, EOS = 1, 2
WIDTH, HEADS, HEADS_KV, FEED_FORWARD = 64, 2, 1, 128
CONTEXT = 2048
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
TYPES = {"F32": gguf.GGMLQuantizationType.F32, "F16": gguf.GGMLQuantizationType.F16}
TYPES["Q8_0"] = gguf.GGMLQuantizationType.Q8_0
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7}


SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
CALL = (
    "<tool_call>\n",
    '{"name":',
    ' "get_weather",',
    ' "arguments":',
    ' {"city":',
    ' "Paris"}}',
    "\n</tool_call>",
)
"""Pieces of a call of a tool, as templates of the Hermes kind have it."""
TOOLS = """
{%- if tools %}<|im_start|>system
Call a function as JSON with name and arguments within <tool_call></tool_call>. There are these:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{{ message.content or '' }}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""A chat template that knows tools; engines work out from it what a call looks like."""


def vocabulary(words: Sequence[str], *, spaced: bool = True) -> tuple[list[bytes], list[int]]:
    """Return tokens and their types: special ones, all bytes, printable characters, the words.

    Args:
        words: What the model says, one token each.
        spaced: Whether a space stands before each word; else they are pieces as they are.
    """
    tokens = [text.encode() for text in SPECIAL]
    types = [UNKNOWN] + [CONTROL] * (len(SPECIAL) - 1)
    tokens += [b"<0x%02X>" % byte for byte in range(256)]
    types += [BYTE] * 256
    characters = [chr(code) for code in range(33, 127)] + ["\N{LOWER ONE EIGHTH BLOCK}"]
    tokens += [character.encode() for character in characters]
    said = [SPACE + word for word in words] if spaced else [word.replace(" ", SPACE) for word in words]
    tokens += [word.encode() for word in said]
    types += [NORMAL] * (len(characters) + len(words))
    return tokens, types


def add_vocabulary(writer: gguf.GGUFWriter, tokens: Sequence[bytes], types: Sequence[int]) -> None:
    """Write what `vocabulary` returned, with falling scores and the numbers of the special tokens."""
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(number) for number in range(len(tokens))])
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)


def weights(words: Sequence[str], count: int, *, layers: int, ends: bool) -> dict[str, np.ndarray]:
    """Return every tensor; the last tokens of the vocabulary are the words."""
    dice = np.random.default_rng(7)

    def noise(*shape: int, scale: float = 0.01) -> np.ndarray:
        return (scale * dice.standard_normal(shape)).astype(np.float32)

    shared = noise(WIDTH, scale=1.0)
    embedding = noise(count, WIDTH, scale=0.05) + shared
    first = count - len(words)
    embedding[first:] = noise(len(words), WIDTH, scale=1.0)
    output = noise(count, WIDTH)
    output[first] = shared + (0 if ends else embedding[count - 1])
    output[first + 1 :] = embedding[first : count - 1]
    if ends:
        output[EOS] = embedding[count - 1]
    tensors = {
        "token_embd.weight": embedding,
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": output,
    }
    kv = WIDTH // HEADS * HEADS_KV
    for layer in range(layers):
        tensors |= {
            f"blk.{layer}.attn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.attn_q.weight": noise(WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": noise(kv, WIDTH),
            f"blk.{layer}.attn_v.weight": noise(kv, WIDTH),
            f"blk.{layer}.attn_output.weight": noise(WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.ffn_gate.weight": noise(FEED_FORWARD, WIDTH),
            f"blk.{layer}.ffn_up.weight": noise(FEED_FORWARD, WIDTH),
            f"blk.{layer}.ffn_down.weight": noise(WIDTH, FEED_FORWARD),
        }
    return tensors


def write_tiny_model(
    path: Path,
    *,
    layers: int = 2,
    type_name: str = "F16",
    template: str | None = CHATML,
    words: Sequence[str] = WORDS,
    ends: bool = False,
    name: str = "Tiny Test Model",
    spaced: bool = True,
    fills_in: bool = False,
) -> Path:
    """Write a model that llama.cpp loads in milliseconds and return its path.

    Args:
        path: Where to write it.
        layers: Blocks.
        type_name: Type of the matrices: F32, F16 or Q8_0. Build b10434 was seen to die of SIGILL with Q8_0
            at this size, on a virtual machine without AMX ("AMX is not ready to be used!").
        template: Chat template; None for a model without one.
        words: What it says, one token each, at least two.
        ends: Whether it ends after the last word instead of beginning again.
        name: `general.name`.
        spaced: Whether a space stands before each word; else they are pieces as they are.
        fills_in: Whether it names tokens for filling in the middle of a text, which /infill asks for.
    """
    tokens, types = vocabulary(words, spaced=spaced)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type("model")
    writer.add_name(name)
    writer.add_license("cc0-1.0")
    writer.add_file_type(FILE_TYPES[type_name])
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS_KV)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    add_vocabulary(writer, tokens, types)
    writer.add_add_bos_token(True)
    if not spaced:
        # A space before what follows a special token would keep the engine's grammar from taking the prompt.
        writer.add_add_space_prefix(False)
    if fills_in:
        for place, number in (("pre", 3), ("suf", 4), ("mid", 0)):
            writer.add_uint32(f"tokenizer.ggml.fim_{place}_token_id", number)
    if template is not None:
        writer.add_chat_template(template)
    for tensor_name, tensor in weights(words, len(tokens), layers=layers, ends=ends).items():
        wanted = TYPES["F32"] if tensor.ndim == 1 else TYPES[type_name]
        data = gguf.quants.quantize(tensor, wanted)
        writer.add_tensor(tensor_name, data, raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
