"""The operator's own flags, given after `--`: every one has to exist in this build and be well formed."""

from __future__ import annotations

import re

import msgspec

from llamaops.errors import UsageError
from llamaops.facts.capabilities import Capabilities, Option, fold
from llamaops.launch.settings import MAX_PORT, LaunchSettings, plain_number

# Flags that say the same as a setting: taken in, so that plan and checks know about them.
_SETTING_OF: dict[str, str] = {
    "-c": "ctx_size", "--ctx-size": "ctx_size",
    "-np": "parallel", "--parallel": "parallel",
    "-b": "batch_size", "--batch-size": "batch_size",
    "-ub": "ubatch_size", "--ubatch-size": "ubatch_size",
    "-t": "threads", "--threads": "threads",
    "-s": "seed", "--seed": "seed",
    "-ngl": "n_gpu_layers", "--gpu-layers": "n_gpu_layers", "--n-gpu-layers": "n_gpu_layers",
    "-ctk": "cache_type_k", "--cache-type-k": "cache_type_k",
    "-ctv": "cache_type_v", "--cache-type-v": "cache_type_v",
    "--api-key-file": "api_key_file",
    "-dev": "device", "--device": "device",
}  # fmt: skip
_SWITCH_OF: dict[str, tuple[str, bool]] = {
    "-kvu": ("kv_unified", True), "--kv-unified": ("kv_unified", True),
    "-no-kvu": ("kv_unified", False), "--no-kv-unified": ("kv_unified", False),
    "--metrics": ("metrics", True), "--slots": ("slots", True), "--no-slots": ("slots", False),
    "--embedding": ("embeddings", True), "--embeddings": ("embeddings", True),
    "--no-warmup": ("warmup", False),
}  # fmt: skip
_NUMBERS = frozenset({"ctx_size", "parallel", "batch_size", "ubatch_size", "threads", "seed"})
_DEFAULTS = {"embeddings": False, "warmup": True}

_SECRETS = frozenset({"--api-key", "-hft", "--hf-token"})
_OURS: dict[str, str] = {
    "--host": "use llamaops' own --host, which asks whether exposure was decided",
    "--port": "use llamaops' own --port",
    "-m": "use llamaops' own --model",
    "--model": "use llamaops' own --model",
    "-a": "llamaops sets a one-time alias, by which it knows its own server",
    "--alias": "llamaops sets a one-time alias, by which it knows its own server",
    "-p": "llamaops sets the prompt",
    "--prompt": "llamaops sets the prompt",
    "-n": "use llamaops' own --max-tokens",
    "--predict": "use llamaops' own --max-tokens",
    "--n-predict": "use llamaops' own --max-tokens",
}
_OTHER_MODEL = frozenset(
    {"-mu", "--model-url", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-dr", "--docker-repo",
     "--models-dir", "--models-preset"}
)  # fmt: skip
_EXITS = frozenset(
    {"-h", "--help", "--usage", "--version", "-cl", "--cache-list", "--list-devices", "--completion-bash"}
)
_BLINDS = frozenset({"--log-disable"})
# Gone in September 2026; their names are closer to other flags than to what replaced them.
_REPLACED = {
    "--no-mmap": "--load-mode none",
    "--mmap": "--load-mode mmap",
    "--mlock": "--load-mode mlock",
    "--direct-io": "--load-mode dio",
    "-dio": "--load-mode dio",
}
_NUMBER_HINTS = re.compile(r"(?:N|M|PORT|SEED|SECONDS|INDEX|(?:N|MiB|P)0,.*)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,19}(?:\.[0-9]{0,19})?|\.[0-9]{1,19})")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


def absorb(settings: LaunchSettings) -> LaunchSettings:
    """Return the settings with those flags after `--` taken in that a setting exists for.

    Raises: UsageError when a flag and its setting are both given, or a number is not plain.
    """
    left: list[str] = []
    words = list(settings.extra)
    while words:
        word = words.pop(0)
        name = fold(word)
        if name in _SWITCH_OF:
            setting, value = _SWITCH_OF[name]
            settings = _set(settings, word, setting, value)
        elif name in _SETTING_OF and words and not _is_flag(words[0]):
            setting = _SETTING_OF[name]
            text = words.pop(0)
            typed = plain_number(word, text, low=-1, high=2**32 - 1) if setting in _NUMBERS else text
            settings = _set(settings, word, setting, typed)
        else:
            left.append(word)
    return msgspec.structs.replace(settings, extra=tuple(left))


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not _NUMBER.fullmatch(word)


def _set(settings: LaunchSettings, flag: str, setting: str, value: object) -> LaunchSettings:
    present = getattr(settings, setting)
    if present != _DEFAULTS.get(setting) and present != value:
        raise UsageError(f"{flag} is given twice", hint=f"once as {setting}={present}, once after --")
    return msgspec.structs.replace(settings, **{setting: value})


def check_extra(
    words: tuple[str, ...], capabilities: Capabilities | None
) -> list[tuple[str, tuple[str, ...]]]:
    """Return flags with their values.

    Raises: UsageError for the first that this build lacks, refuses or would misread, with the fix.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    position = 0
    while position < len(words):
        flag = words[position]
        position += 1
        _check_allowed(flag, position)
        if capabilities is None:
            values = _until_next_flag(words, position)
        else:
            values = _values(flag, words, position, _option(flag, capabilities), capabilities)
        position += len(values)
        found.append((flag, values))
    return found


def _check_allowed(flag: str, position: int) -> None:
    """Raise UsageError for what may not stand after `--` in any build.

    A word that is no flag is not repeated in the message: it may be a secret.
    """
    if not flag.startswith("-") or flag in {"-", "--"}:
        raise UsageError(
            f"word {position} after -- is neither a flag nor the value of one",
            hint="quote values with blanks",
        )
    name, equals, value = flag.partition("=")
    if equals and fold(name) not in _SECRETS:
        raise UsageError(f"{name}=... is not understood by llama.cpp", hint=f"write {name} {value}")
    name = fold(name)
    if name in _SECRETS:
        raise UsageError(
            f"{name} would put a secret on the command line, where every user of this host sees it",
            hint="put it into a file with mode 0600 and use --api-key-file",
        )
    if name in _OURS:
        raise UsageError(f"{flag} after -- is set by llamaops", hint=_OURS[name])
    if name in _OTHER_MODEL:
        raise UsageError(
            f"{flag} after -- would load another model than the one asked for", hint="use --model FILE"
        )
    if name in _EXITS:
        raise UsageError(f"{flag} after -- would print something and exit", hint="leave it out")
    if name in _BLINDS:
        raise UsageError(
            f"{flag} after -- would take away the log that the record rests on", hint="leave it out"
        )


def replacement(flag: str, capabilities: Capabilities) -> str | None:
    """Return what took the place of a flag that this build lacks, or the nearest one it has."""
    following = _REPLACED.get(fold(flag))
    if following is not None and capabilities.has(following.split(" ", 1)[0]):
        return following
    return capabilities.nearest(flag)


def _option(flag: str, capabilities: Capabilities) -> Option:
    option = capabilities.find(flag)
    if option is not None and not option.removed:
        return option
    nearest = replacement(flag, capabilities)
    hint = f"the nearest it has is {nearest}" if nearest else "see the program's --help"
    if option is not None:
        raise UsageError(f"{flag} was removed from this build: {option.help[:200]}", hint=hint)
    raise UsageError(f"this build has no {flag}", hint=hint)


def _values(
    flag: str, words: tuple[str, ...], position: int, option: Option, capabilities: Capabilities
) -> tuple[str, ...]:
    takes = capabilities.takes_value(flag)
    if takes is None:
        return _until_next_flag(words, position)[:1]
    if not takes:
        return ()
    wanted = len(option.value_hints)
    values = words[position : position + wanted]
    # A value may begin with a dash, but a flag of this build in its place means that it was forgotten.
    if len(values) < wanted or any(capabilities.find(value) is not None for value in values):
        raise UsageError(f"{flag} expects {' '.join(option.value_hints)}", hint="add the value")
    for hint, value in zip(option.value_hints, values, strict=True):
        _check_value(flag, hint, value, option)
    return values


def _until_next_flag(words: tuple[str, ...], position: int) -> tuple[str, ...]:
    end = position
    while end < len(words) and not _is_flag(words[end]):
        end += 1
    return words[position:end]


def _check_value(flag: str, hint: str, value: str, option: Option) -> None:
    if option.allowed_values:
        _check_word(flag, hint, value, option)
    elif _NUMBER_HINTS.fullmatch(hint):
        for part in re.split(r"[,/]", value) if "," in hint else (value,):
            _check_number(flag, hint, part, option)


def _check_word(flag: str, hint: str, value: str, option: Option) -> None:
    allowed = {*option.allowed_values, *((option.default,) if option.default else ())}
    parts = value.split(",") if "," in hint and "{" not in hint else [value]
    wrong = [part for part in parts if part not in allowed and f"'{part}'" not in option.help]
    if wrong:
        raise UsageError(
            f"{flag} {wrong[0]!r}: not a value of this build",
            hint=f"it takes {', '.join(option.allowed_values)}",
        )


def _check_number(flag: str, hint: str, value: str, option: Option) -> None:
    # Some numbers have words beside them: `auto`, `all`.
    if re.fullmatch(r"[a-z]{2,20}", value) and re.search(rf"\b{value}\b", option.help):
        return
    whole = re.fullmatch(r"-?[0-9]+", option.default or "") is not None or hint in {"PORT", "SEED", "INDEX"}
    if not (_WHOLE if whole else _NUMBER).fullmatch(value):
        raise UsageError(
            f"{flag} {value!r}: not a plain number",
            hint="the engine would read only its first digits; write it out, such as 8192",
        )
    if not -(2**31) <= float(value) < 2**32:
        raise UsageError(f"{flag} {value}: too large")
    if hint == "PORT" and not 0 <= int(value) <= MAX_PORT:
        raise UsageError(f"{flag} {value}: has to be from 0 to {MAX_PORT}")
