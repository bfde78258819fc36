"""The table of settings: how each one's text becomes its value, and what it means.

Every --help reads it, so it imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Kind:
    """How the text of a setting becomes its value; a plain class, which is the quickest to make."""

    __slots__ = ("about", "metavar", "parse")

    def __init__(self, parse: Callable[[str], Any], metavar: str, about: str) -> None:
        self.parse = parse
        self.metavar = metavar
        self.about = about


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # The engine reads 8k as 8 and 1e3 as 1, so nothing but digits may pass.
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ValueError(f"has to be a whole number from {low} to {high}, in plain digits, not {text!r}")
        return int(text)

    return parse


def _seconds(text: str) -> float:
    return _real(0.1, 86400.0)(text)


def _real(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ValueError(f"has to be a number from {low:g} to {high:g}, not {text!r}")
        return value

    return parse


def _word(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"has to be one of {', '.join(allowed)}, not {text!r}")
        return text

    return parse


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _layers(text: str) -> str:
    if text not in {"auto", "all"}:
        _whole(0, 100_000)(text)
    return text


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"has to be true or false, not {text!r}")
    return text == "true"


_CACHE = _word("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")

KINDS: Mapping[str, Kind] = {
    "model": Kind(_text, "FILE", "GGUF file to load, or `embedded` for the model of `llamaops fetch`"),
    "bin_dir": Kind(_text, "DIR", "folder of llama.cpp programs, or `embedded`; default: PATH"),
    "records": Kind(_text, "DIR", "folder for records"),
    "ctx_size": Kind(_whole(0, 2**31 - 1), "N", "context in tokens, shared by the slots; 0: as trained"),
    "parallel": Kind(_whole(1, 256), "N", "number of slots"),
    "kv_unified": Kind(_switch, "BOOL", "one KV cache shared by all slots"),
    "batch_size": Kind(_whole(1, 2**31 - 1), "N", "logical batch in tokens"),
    "ubatch_size": Kind(_whole(1, 2**31 - 1), "N", "physical batch in tokens"),
    "n_gpu_layers": Kind(_layers, "N", "layers to offload: a number, auto or all"),
    "expect_device": Kind(_text, "NAME", "device that has to hold weights, such as CUDA0"),
    "flash_attn": Kind(_word("on", "off", "auto"), "MODE", "flash attention: on, off or auto"),
    "cache_type_k": Kind(_CACHE, "TYPE", "type of the K cache"),
    "cache_type_v": Kind(_CACHE, "TYPE", "type of the V cache"),
    "threads": Kind(_whole(1, 4096), "N", "threads for generation"),
    "host": Kind(_text, "ADDRESS", "address to listen on; anything but loopback has to be decided"),
    "port": Kind(_whole(0, 65535), "PORT", "port to listen on; 0: a free one"),
    "api_key_file": Kind(_text, "FILE", "file with the API key; or the variable LLAMAOPS_API_KEY"),
    "via": Kind(_word("auto", "completion", "server"), "PATH", "auto, completion or server"),
    "max_tokens": Kind(_whole(1, 4096), "N", "bound on generated tokens"),
    "seed": Kind(_whole(0, 2**32 - 1), "N", "seed of the sampler"),
    "temperature": Kind(_real(0.0, 10.0), "T", "temperature of the sampler; 0 is greedy"),
    "timeout": Kind(_seconds, "S", "bound on one generation in seconds"),
    "ready_timeout": Kind(_seconds, "S", "bound on becoming ready in seconds"),
}
