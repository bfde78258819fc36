"""The command line for one build: only flags that the build's own --help has, in its own spelling."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from llamaops.errors import UsageError
from llamaops.facts.capabilities import Capabilities, Option
from llamaops.facts.launch import LaunchFacts, MissingFlag, PlannedSlots
from llamaops.launch.extra import absorb, check_extra, replacement
from llamaops.launch.settings import LaunchSettings, Plan, in_range, validate
from llamaops.schema.fact import Known, Source, not_attempted
from llamaops.schema.shape import Shape

EVIDENCE_VERBOSITY = "4"
NO_CONVERSATION = ("--no-conversation", "-no-cnv")


class Command(Shape, frozen=True, kw_only=True):
    """A command line and what had to be decided for it."""

    argv: tuple[str, ...]
    """The command line."""
    flags: tuple[str, ...]
    """Every flag in it, in order."""
    left_out: tuple[MissingFlag, ...] = ()
    """Flags that were wanted only for comfort and that the build does not have."""
    settings: LaunchSettings
    """The settings with the operator's own flags taken in where they say the same thing."""
    help_read: bool
    """Whether there was a help text to compare with."""


def server_argv(binary_path: str, settings: LaunchSettings, capabilities: Capabilities | None) -> Command:
    """Make the command line of llama-server.

    `capabilities` None means that the help could not be read: today's spellings are taken unchecked.
    Raises: UsageError for a value that cannot be meant, and for a flag that the build lacks, with the
    nearest one it has.
    """
    settings = _with_context(validate(absorb(settings)), capabilities)
    line = _Line(capabilities)
    line.need(("--model", "-m"), settings.model_path, "the model")
    line.need(("--host",), settings.host, "the address")
    line.need(("--port",), str(settings.port), "the port")
    line.like(("--alias", "-a"), settings.alias, "a one-time name to tell our server from another")
    _slots(line, settings)
    _shared(line, settings)
    line.want(("--metrics",), settings.metrics is True, "metrics")
    if settings.slots is not None:
        line.want(("--slots",) if settings.slots else ("--no-slots",), wanted=True, what="slots")
    line.want(("--embeddings", "--embedding"), settings.embeddings, "embeddings")
    line.need(("--api-key-file",), settings.api_key_file, "API keys from a file")
    line.like_switch(("--no-ui", "--no-webui"), "a server without its web page")
    _comfort(line, settings)
    _no_log_file(line)
    return _finish(binary_path, line, settings)


def completion_argv(
    binary_path: str,
    settings: LaunchSettings,
    capabilities: Capabilities | None,
    *,
    prompt: str,
    max_tokens: int,
    temperature: float,
    chat: bool = False,
) -> Command:
    """Make the command line of llama-completion, or of the program that had its place before.

    Never with --log-disable, which takes the generated text away too. A raw completion is always
    without the conversation, which would wait for input for ever; `chat` is one turn through the
    model's chat template, with standard input closed, for builds that have --single-turn.

    Raises: UsageError as `server_argv`, and for an empty prompt or no tokens.
    """
    settings = _with_context(validate(absorb(settings)), capabilities)
    if not prompt:
        raise UsageError("an empty prompt", hint="the program refuses it; give some text")
    in_range("--max-tokens", max_tokens, low=1, high=2**31 - 1)
    line = _Line(capabilities)
    line.need(("--model", "-m"), settings.model_path, "the model")
    line.need(("--prompt", "-p"), prompt, "the prompt")
    line.need(("--n-predict", "--predict", "-n"), str(max_tokens), "a bound on tokens")
    if chat:
        line.want(("--single-turn", "-st"), wanted=True, what="one chat turn that ends by itself")
        line.want(("--conversation", "-cnv"), wanted=True, what="the chat template")
        line.like_switch(("--jinja",), "the template engine that llama-server uses")
    else:
        _conversation(line)
    line.like_switch(("--no-display-prompt",), "output without the prompt")
    line.need(("--temp", "--temperature"), f"{temperature:g}", "the temperature")
    _shared(line, settings)
    line.like_switch(("--simple-io",), "plain output")
    _comfort(line, settings)
    return _finish(binary_path, line, settings)


def can_chat_once(capabilities: Capabilities | None) -> bool:
    """Say whether a completion program can give one chat answer and end by itself."""
    return capabilities is not None and all(
        capabilities.has(flag) for flag in ("--single-turn", "--conversation", "--jinja")
    )


def writes_log_file(capabilities: Capabilities | None) -> bool:
    """Say whether a one-shot program writes a log file into the working directory, whatever it is told.

    Builds before September 2024 do; their --log-disable takes the load log away as well.
    """
    option = capabilities.find("--log-disable") if capabilities is not None else None
    return option is not None and "trace log" in option.help.lower()


def default_slots(capabilities: Capabilities | None) -> Literal["auto", "single"]:
    """Say what a server does without --parallel: four slots that share, or one (before late 2025)."""
    option = capabilities.find("--parallel") if capabilities is not None else None
    if option is None:
        return "auto"
    text = option.default_note or option.default or option.help
    return "auto" if "-1" in text or "auto" in text else "single"


def slots_shown(settings: LaunchSettings, capabilities: Capabilities | None) -> bool:
    """Say whether /slots is on: as asked, else as the build has it, which was off in 2025."""
    if settings.slots is not None:
        return settings.slots
    option = capabilities.find("--slots") if capabilities is not None else None
    return option is None or "disabled" not in f"{option.default or ''} {option.help}"


def launch_facts(
    command: Command,
    *,
    capabilities: Capabilities | None,
    source: Source,
    plan: Plan | None = None,
    removed_variables: tuple[str, ...] = (),
) -> LaunchFacts:
    """Compare a command line with the build's own help, once more and whole, for the record."""
    missing: tuple[MissingFlag, ...] = ()
    if capabilities is not None:
        missing = tuple(
            MissingFlag(flag=flag, wanted_for="the command line", nearest=replacement(flag, capabilities))
            for flag in command.flags
            if not capabilities.has(flag)
        )
    return LaunchFacts(
        argv=command.argv,
        flags=command.flags,
        help_read=Known(value=True, source=source)
        if capabilities is not None
        else not_attempted("the program's help could not be read"),
        missing=missing,
        left_out=command.left_out,
        plan=plan.text if plan is not None else "",
        planned=None if plan is None else _planned(plan),
        removed_variables=removed_variables,
    )


def _planned(plan: Plan) -> PlannedSlots:
    return PlannedSlots(
        slots=plan.n_slots,
        slot_context_tokens=plan.n_ctx_slot,
        kv_unified=plan.kv_unified,
        batch_tokens=plan.n_batch,
        ubatch_tokens=plan.n_ubatch,
    )


class _Line:
    """A command line in the making."""

    def __init__(self, capabilities: Capabilities | None) -> None:
        self.capabilities = capabilities
        self.parts: list[tuple[str, tuple[str, ...], bool]] = []
        """Flag, values, and whether the operator asked for it."""
        self.left_out: list[MissingFlag] = []

    def spelling(self, spellings: tuple[str, ...]) -> str | None:
        """Return the first spelling that the build has."""
        if self.capabilities is None:
            return spellings[0]
        return next((name for name in spellings if self.capabilities.has(name)), None)

    def option(self, spellings: tuple[str, ...]) -> Option | None:
        """Return the option behind the first spelling that the build has."""
        name = self.spelling(spellings)
        return self.capabilities.find(name) if name and self.capabilities is not None else None

    def missing(self, spellings: tuple[str, ...], what: str) -> MissingFlag:
        """Describe what the build lacks."""
        nearest = replacement(spellings[0], self.capabilities) if self.capabilities is not None else None
        return MissingFlag(flag=spellings[0], wanted_for=what, nearest=nearest)

    def need(self, spellings: tuple[str, ...], value: str | None, what: str) -> None:
        """Add a flag with its value.

        Raises: UsageError when the build has none of the spellings.
        """
        if value is None:
            return
        name = self.spelling(spellings)
        if name is None:
            raise refused(self.missing(spellings, what))
        self.parts.append((name, (value,), True))

    def want(self, spellings: tuple[str, ...], wanted: bool, what: str) -> None:
        """Add a switch that was asked for.

        Raises: UsageError when the build has none of the spellings.
        """
        if not wanted:
            return
        name = self.spelling(spellings)
        if name is None:
            raise refused(self.missing(spellings, what))
        self.parts.append((name, (), True))

    def like(self, spellings: tuple[str, ...], value: str | None, what: str) -> None:
        """Add a flag that llamaops would like, or note that the build does not have it."""
        if value is None:
            return
        name = self.spelling(spellings)
        if name is None:
            self.left_out.append(self.missing(spellings, what))
        else:
            self.parts.append((name, (value,), False))

    def like_switch(self, spellings: tuple[str, ...], what: str) -> None:
        """Add a switch that llamaops would like, or note that the build does not have it."""
        name = self.spelling(spellings)
        if name is None:
            self.left_out.append(self.missing(spellings, what))
        else:
            self.parts.append((name, (), False))


def refused(missing: MissingFlag) -> UsageError:
    """Return the error for a flag that the build lacks."""
    nearest = f"the nearest it has is {missing.nearest}" if missing.nearest else "it has nothing like it"
    return UsageError(f"this build has no {missing.flag} (for {missing.wanted_for})", hint=nearest)


def _slots(line: _Line, settings: LaunchSettings) -> None:
    auto = default_slots(line.capabilities) == "auto"
    if settings.parallel is not None:
        line.need(("--parallel", "-np"), str(settings.parallel), "slots")
        if settings.kv_unified is not None:
            _unified(line, settings.kv_unified)
    elif settings.kv_unified is not None:
        _unified(line, settings.kv_unified)
        line.like(("--parallel", "-np"), "4" if auto else "1", "an explicit number of slots")
    else:
        # What the engine would do anyway, said aloud, so that a change of defaults changes nothing.
        line.like(("--parallel", "-np"), "4" if auto else "1", "an explicit number of slots")
        if auto:
            line.like_switch(("--kv-unified", "-kvu"), "an explicit KV cache shared by the slots")
    if settings.parallel is not None and settings.parallel > 1:
        _batching(line)


def _batching(line: _Line) -> None:
    """Let requests join running ones on builds that would otherwise let them wait (before April 2024)."""
    option = line.option(("--cont-batching", "-cb"))
    if option is not None and "disabled" in f"{option.default or ''} {option.help}":
        line.like_switch(("--cont-batching", "-cb"), "requests that join running ones")


def _unified(line: _Line, unified: bool) -> None:
    if unified:
        line.want(("--kv-unified", "-kvu"), wanted=True, what="a KV cache shared by the slots")
    elif line.spelling(("--no-kv-unified", "-no-kvu")) is not None:
        line.want(("--no-kv-unified", "-no-kvu"), wanted=True, what="a KV cache for each slot")
    # A build without the flag knows only split caches, or splits unless told otherwise.


def _with_context(settings: LaunchSettings, capabilities: Capabilities | None) -> LaunchSettings:
    """Return the settings with the context that a build of 2025 or before has by default, such as 4096.

    Said aloud, so that plan, prediction and engine mean the same. Later builds take the model's own (0).
    """
    option = capabilities.find("--ctx-size") if capabilities is not None else None
    default = option.default if option is not None else None
    if settings.ctx_size is not None or default is None or not default.isdecimal() or int(default) == 0:
        return settings
    return msgspec.structs.replace(settings, ctx_size=int(default))


def _shared(line: _Line, settings: LaunchSettings) -> None:
    """Add what servers and one-shot programs have in common."""
    line.need(("--ctx-size", "-c"), _text(settings.ctx_size), "the context")
    line.need(("--batch-size", "-b"), _text(settings.batch_size), "the batch")
    line.need(("--ubatch-size", "-ub"), _text(settings.ubatch_size), "the physical batch")
    line.need(("--threads", "-t"), _text(settings.threads), "threads")
    line.need(("--seed", "-s"), _text(settings.seed), "the seed")
    line.need(("--device", "-dev"), settings.device, "the device")
    line.need(("--cache-type-k", "-ctk"), settings.cache_type_k, "the type of the K cache")
    line.need(("--cache-type-v", "-ctv"), settings.cache_type_v, "the type of the V cache")
    _gpu_layers(line, settings.n_gpu_layers)
    _flash_attention(line, settings.flash_attn)
    _load_mode(line, settings.load_mode)


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _gpu_layers(line: _Line, value: str | None) -> None:
    spellings = ("--n-gpu-layers", "--gpu-layers", "-ngl")
    option = line.option(spellings)
    words = option is None or "auto" in option.help or "auto" in (option.default or "")
    if value == "all" and not words:
        value = "999"  # builds before `all` take any number that is large enough
    if value == "auto" and not words:
        raise UsageError(
            "--n-gpu-layers auto: this build takes a number only", hint="give a number, or leave it out"
        )
    line.need(spellings, value, "layers on devices")


def _flash_attention(line: _Line, value: str | None) -> None:
    spellings = ("--flash-attn", "-fa")
    if value is None:
        return
    name = line.spelling(spellings)
    takes_value = line.capabilities is None or (name and line.capabilities.takes_value(name) is not False)
    if name is None or takes_value:
        line.need(spellings, value, "flash attention")
    elif value == "on":
        line.want(spellings, wanted=True, what="flash attention")
    elif value == "auto":
        raise UsageError(f"{name} auto: this build only knows on", hint="ask for on, or off")


def _load_mode(line: _Line, value: str | None) -> None:
    if value is None:
        return
    old = {
        "none": ("--no-mmap",),
        "mlock": ("--mlock",),
        "mmap+mlock": ("--mlock",),
        "dio": ("--direct-io", "-dio"),
    }
    if line.spelling(("--load-mode", "-lm")) is not None:
        line.need(("--load-mode", "-lm"), value, "how the file is read")
    elif value in old:
        line.want(old[value], wanted=True, what="how the file is read")
    # `auto` and `mmap` are what builds without the flag do.


def _conversation(line: _Line) -> None:
    """See that a one-shot program does not wait for input.

    Raises: UsageError for a build that may start a conversation by itself and cannot be kept from it.
    """
    if line.spelling(NO_CONVERSATION) is not None:
        line.like_switch(NO_CONVERSATION, "no conversation")
        return
    option = line.option(("--conversation", "-cnv"))
    if option is not None and "auto" in f"{option.default_note or ''} {option.help}":
        raise refused(line.missing(NO_CONVERSATION, "a run that does not wait for input"))


def _comfort(line: _Line, settings: LaunchSettings) -> None:
    if not settings.warmup:
        line.like_switch(("--no-warmup",), "a start without a warm-up run")
    line.like_switch(("--offline",), "no download")
    colors = line.option(("--log-colors",))
    if line.capabilities is None or (colors is not None and colors.value_hints):
        line.like(("--log-colors",), "off", "a log without colours")
    if settings.evidence:
        _evidence(line)


def _no_log_file(line: _Line) -> None:
    """Keep servers before September 2024 from writing a log file into the working directory.

    Theirs is about that file only. Any other --log-disable silences the program, and is never passed.
    """
    option = line.option(("--log-disable",))
    if option is not None and "logging to a file" in option.help:
        line.like_switch(("--log-disable",), "no log file in the working directory")


def _evidence(line: _Line) -> None:
    """Ask for the verbosity that shows buffers, on builds where the default hides them.

    Earlier builds show them by default, and there 4 would print prompts.
    """
    spellings = ("--verbosity", "-lv", "--log-verbosity")
    option = line.option(spellings)
    if line.capabilities is None or (option is not None and re.search(r"\b4\s*[:=-]\s*trace", option.help)):
        line.like(spellings, EVIDENCE_VERBOSITY, "evidence in the log")


def _finish(binary_path: str, line: _Line, settings: LaunchSettings) -> Command:
    extra = check_extra(settings.extra, line.capabilities)
    asked = {line.capabilities.find(flag) for flag, _ in extra} if line.capabilities is not None else set()
    parts = []
    for flag, values, explicit in line.parts:
        option = line.capabilities.find(flag) if line.capabilities is not None else None
        if option is not None and option in asked:
            if explicit:
                raise UsageError(
                    f"{flag} is given twice", hint="once as an option of llamaops, once after --"
                )
            continue  # the operator's own word goes before our default
        parts.append((flag, values))
    parts += extra
    return Command(
        argv=(binary_path, *(word for flag, values in parts for word in (flag, *values))),
        flags=tuple(flag for flag, _ in parts),
        left_out=tuple(line.left_out),
        settings=settings,
        help_read=line.capabilities is not None,
    )
