"""What one bounded generation gave, and through which path."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape


class Generation(Shape, frozen=True, kw_only=True):
    """One bounded generation."""

    path: Literal["raw", "chat"]
    """`raw`: the prompt as it is; `chat`: through the model's chat template."""
    via: Literal["completion", "server"]
    """The program that generated: llama-completion, or a throw-away llama-server on loopback."""
    request: str
    """The command line or the request line, exactly as run; the operator's own prompt masked."""
    prompt: Fact[str]
    """The prompt, where it is one of our own; refused for the operator's, which is not recorded."""
    text: Fact[str]
    """The generated text without the echoed prompt; kept for our own prompt only."""
    text_characters: Fact[int]
    """Length of the generated text in characters."""
    reasoning_characters: Fact[int]
    """Length of the reasoning text, which is not the answer."""
    problem: Fact[str]
    """Why the text is not usable, as a slug; the empty text when it is usable."""
    prompt_tokens: Fact[int]
    """Tokens of the prompt that were processed."""
    generated_tokens: Fact[int]
    """Tokens generated, as the engine counted them."""
    prompt_processing_per_s: Fact[float]
    """Prompt processing rate in tokens per second; not a time to first token."""
    token_generation_per_s: Fact[float]
    """Token generation rate in tokens per second."""
    finish: Fact[str]
    """Why it stopped: the engine's own word (`stop`, `length`, `eos`, `limit`)."""
    end: Fact[str]
    """How the program ended; for a server, how the exchange ended."""
    stopped_at_bound: bool = False
    """Whether llamaops had to stop it at a bound on time or bytes."""
    elapsed_s: Fact[float]
    """Seconds from the start of the program or the request to its end."""


class GenerationFacts(Shape, frozen=True, kw_only=True):
    """The generations of a smoke."""

    max_tokens: int
    """Bound on generated tokens."""
    seed: int
    """Seed of the sampler."""
    temperature: float
    """Temperature of the sampler; 0 is greedy."""
    chosen_via: str
    """Which program was taken, and why."""
    has_chat_template: Fact[bool]
    """Whether the model's header has a chat template."""
    raw: Generation | None = None
    """The raw completion."""
    chat: Generation | None = None
    """The chat request; none when it was not attempted."""
    chat_not_attempted: str | None = None
    """Why the chat path was not tested."""
