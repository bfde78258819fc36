"""One bounded generation: by the completion program, or by a request to our own server."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.generation import Generation
from llamaops.facts.timings import parse_completion_timings
from llamaops.probes.usable_text import judge_text
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, known
from llamaops.system.http import Exchange, HttpClient, HttpFailure
from llamaops.system.machine import Machine
from llamaops.system.process import Completed, StoppedAtBound, describe

RAW_PROMPT = "Once upon a time, there was a small robot who"
CHAT_PROMPT = "Name three colours of the rainbow in one short sentence."
OUTPUT_LIMIT = 1 * MIB
END_OF_TEXT = "[end of text]"


class Ask(msgspec.Struct, frozen=True):
    """What to generate, and its bounds."""

    prompt: str
    is_ours: bool
    """Whether the prompt is one of our own; only then is text recorded."""
    max_tokens: int
    seed: int
    temperature: float
    timeout_s: float


def lost_its_output(generation: Generation, done: Completed) -> bool:
    """Whether a run counted tokens, ended well and printed nothing at all.

    The program's logger writes in a thread of its own and can be cut off by a quick exit (seen with
    0.5.0 and a tiny model in half of all runs), so such a run says nothing about the model.
    """
    counted = isinstance(generation.generated_tokens, Known) and generation.generated_tokens.value > 1
    return done.ok and done.stdout.total_bytes == 0 and counted


def run_completion(
    machine: Machine,
    argv: tuple[str, ...],
    ask: Ask,
    path: Literal["raw", "chat"] = "raw",
    *,
    apart: bool = False,
) -> tuple[Generation, Completed]:
    """Run the completion program once, bounded, and read what it gave.

    The generated text goes to standard output; what the load shows goes to standard error. `apart` runs it
    in a folder that is removed afterwards, for builds that write files where they are started.
    """
    bounds = Bounds(wall_s=ask.timeout_s, keep_bytes=512 * KIB, total_bytes=OUTPUT_LIMIT + 4 * MIB)
    done = _run_apart(machine, argv, bounds) if apart else machine.run(argv, bounds=bounds)
    label = " ".join(masked(argv, ask))
    log = machine.keep(done.stderr.evidence("stderr", label))
    out = machine.keep(done.stdout.evidence("stdout", label)) if ask.is_ours else None
    source = Source(kind="command", name=label, evidence=log)
    text_source = Source(kind="command", name=label, evidence=out)
    timings = parse_completion_timings(done.stderr.text, source)
    text = strip_echo(done.stdout.text, ask.prompt)
    ended = text.rstrip().endswith(END_OF_TEXT)
    text = text.rstrip().removesuffix(END_OF_TEXT) if ended else text
    generated = timings.generated_runs
    if isinstance(generated, Known):
        # The first token comes out of the prompt's own evaluation and is not counted as a run.
        generated = known(generated.value + 1, generated.source)
    return (
        Generation(
            path=path,
            via="completion",
            request=label,
            prompt=_prompt(ask, text_source),
            text=_text(text, ask, text_source),
            text_characters=known(len(text.strip()), text_source),
            reasoning_characters=known(0, text_source),
            problem=known(judge_text(text, ask.prompt) or "", text_source),
            prompt_tokens=timings.prompt_tokens,
            generated_tokens=generated,
            prompt_processing_per_s=timings.prompt_processing_per_s,
            token_generation_per_s=timings.token_generation_per_s,
            finish=known("eos", text_source)
            if ended
            else Unknown(
                why="unsupported", detail="the completion program does not say why it stopped", source=source
            ),
            end=known(describe(done.end), source),
            stopped_at_bound=isinstance(done.end, StoppedAtBound),
            elapsed_s=known(round(done.elapsed_s, 3), source),
        ),
        done,
    )


def _run_apart(machine: Machine, argv: tuple[str, ...], bounds: Bounds) -> Completed:
    """Run a command in a folder of its own; the paths in it are made whole for that."""
    import tempfile

    paths = {0, *(number + 1 for number, word in enumerate(argv) if word in {"--model", "-m"})}
    whole = [os.path.abspath(word) if number in paths else word for number, word in enumerate(argv)]  # noqa: PTH100 - no pathlib here
    with tempfile.TemporaryDirectory() as folder:
        return machine.run(whole, bounds=bounds, cwd=folder)


def ask_raw(client: HttpClient, ask: Ask) -> Generation:
    """Ask our own server for a raw completion through its native endpoint."""
    body = {
        "prompt": ask.prompt,
        "n_predict": ask.max_tokens,
        "temperature": ask.temperature,
        "seed": ask.seed,
        "cache_prompt": False,
        "stream": False,
    }
    return _ask(client, "/completion", body, ask, "raw")


def ask_chat(client: HttpClient, ask: Ask) -> Generation:
    """Ask our own server for a chat answer, which goes through the model's chat template."""
    body = {
        "messages": [{"role": "user", "content": ask.prompt}],
        "max_tokens": ask.max_tokens,
        "temperature": ask.temperature,
        "seed": ask.seed,
        "cache_prompt": False,
        "stream": False,
    }
    return _ask(client, "/v1/chat/completions", body, ask, "chat")


def _ask(client: HttpClient, path: str, body: dict[str, object], ask: Ask, kind: str) -> Generation:
    bounds = Bounds(wall_s=ask.timeout_s, total_bytes=OUTPUT_LIMIT)
    # Nothing of an exchange about the operator's own prompt is kept.
    used = client if ask.is_ours else client.without_evidence()
    answer = used.exchange("POST", path, body=body, bounds=bounds)
    name = f"POST {path}"
    source = Source(kind="http", name=name, evidence=answer.evidence)
    fields = _Fields(answer, kind)
    text = strip_echo(fields.text, ask.prompt) if fields.text is not None else None
    return Generation(
        path="chat" if kind == "chat" else "raw",
        via="server",
        request=f"{name} {msgspec.json.encode(_masked_body(body, ask)).decode()}",
        prompt=_prompt(ask, source),
        text=fields.unknown(source) if text is None else _text(text, ask, source),
        text_characters=fields.unknown(source) if text is None else known(len(text.strip()), source),
        reasoning_characters=fields.unknown(source)
        if text is None
        else known(len(fields.reasoning or ""), source),
        problem=fields.unknown(source) if text is None else known(judge_text(text, ask.prompt) or "", source),
        prompt_tokens=fields.number(("timings", "prompt_n"), source),
        generated_tokens=fields.generated(source),
        prompt_processing_per_s=fields.rate("prompt", source),
        token_generation_per_s=fields.rate("predicted", source),
        finish=fields.finish(source),
        end=known(fields.end, source),
        stopped_at_bound=isinstance(answer, HttpFailure) and answer.kind in {"timed_out", "too_large"},
        elapsed_s=known(round(answer.elapsed_s, 3), source),
    )


class _Fields:
    """The fields of an answer that generations share, whatever the endpoint calls them."""

    def __init__(self, answer: Exchange | HttpFailure, kind: str) -> None:
        self._kind = kind
        self._body: dict[str, object] = {}
        self.text: str | None = None
        self.reasoning: str | None = None
        if isinstance(answer, HttpFailure):
            self.end = f"{answer.kind.replace('_', ' ')}: {answer.detail}"
            return
        self.end = f"HTTP {answer.status}"
        try:
            body = answer.json()
        except ParseError:
            self.end += ", and the body is not JSON"
            return
        if not isinstance(body, dict):
            self.end += ", and the body is no JSON object"
            return
        self._body = body
        if "error" in body:
            self.end += ", with an error object in the body"
        elif answer.status == 200:  # noqa: PLR2004 - the status itself
            self._read_text()

    def _read_text(self) -> None:
        if self._kind == "raw":
            content: object = self._body.get("content")
        else:
            content = self.choice("message", "content")
            reasoning = self.choice("message", "reasoning_content")
            self.reasoning = reasoning if isinstance(reasoning, str) else None
        # A null content is an answer without text, which is what the check has to judge.
        if content is None and self._has_choice():
            content = ""
        self.text = content if isinstance(content, str) else None

    def _has_choice(self) -> bool:
        return self._kind == "chat" and isinstance(self.choice("message"), dict)

    def choice(self, *path: str) -> object:
        """Return a value below choices[0]; None when any step is missing."""
        choices = self._body.get("choices")
        value: object = choices[0] if isinstance(choices, list) and choices else None
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def unknown(self, source: Source) -> Unknown:
        return Unknown(why="failed", detail=f"{source.name} gave no text: {self.end}", source=source)

    def number(self, path: tuple[str, ...], source: Source) -> Fact[int]:
        value: object = self._body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return known(value, source)
        return Unknown(why="absent", detail=f"the answer has no {'.'.join(path)}", source=source)

    def generated(self, source: Source) -> Fact[int]:
        path = ("tokens_predicted",) if self._kind == "raw" else ("usage", "completion_tokens")
        return self.number(path, source)

    def rate(self, which: str, source: Source) -> Fact[float]:
        timings = self._body.get("timings")
        values = timings if isinstance(timings, dict) else {}
        rate, count = values.get(f"{which}_per_second"), values.get(f"{which}_n")
        # With one token the engine's generation clock has not run, and the rate is nonsense.
        if isinstance(rate, int | float) and isinstance(count, int) and count > 1:
            return known(float(rate), source)
        return Unknown(why="absent", detail=f"the answer has no usable {which} rate", source=source)

    def finish(self, source: Source) -> Fact[str]:
        if self._kind == "chat":
            value = self.choice("finish_reason")
        else:
            value = self._body.get("stop_type") or next(
                (name for name in ("eos", "word", "limit") if self._body.get(f"stopped_{name}")), None
            )
        if isinstance(value, str):
            return known(value, source)
        return Unknown(why="absent", detail="the answer does not say why it stopped", source=source)


def strip_echo(text: str, prompt: str) -> str:
    """Return generated text without the echoed prompt in front of it."""
    lead = text.lstrip()
    return lead[len(prompt) :] if lead.startswith(prompt) else text


def masked(argv: tuple[str, ...], ask: Ask) -> tuple[str, ...]:
    """Return argv with the operator's own prompt left out."""
    return argv if ask.is_ours else tuple("<prompt>" if word == ask.prompt else word for word in argv)


def _masked_body(body: dict[str, object], ask: Ask) -> dict[str, object]:
    if ask.is_ours:
        return body
    return {name: "<prompt>" if name in {"prompt", "messages"} else value for name, value in body.items()}


def _prompt(ask: Ask, source: Source) -> Fact[str]:
    if ask.is_ours:
        return known(ask.prompt, source)
    return Unknown(why="refused", detail="the operator's own prompt is not recorded", source=source)


def _text(text: str, ask: Ask, source: Source) -> Fact[str]:
    if ask.is_ours:
        return known(text, source)
    return Unknown(
        why="refused", detail="text generated from the operator's own prompt is not recorded", source=source
    )
