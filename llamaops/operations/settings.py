"""Settings: command line, then LLAMAOPS_* variables, then llamaops.yaml here, then the user's own.

One table says each setting's name, type and meaning. A file is validated as a whole: every error at
once, each with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from llamaops.errors import InputFileError, UsageError
from llamaops.facts.settings import Setting, SettingsFacts
from llamaops.schema.bounds import KIB
from llamaops.system.files import read_limited
from llamaops.system.paths import AnyPath, expanded, joined

FILE_NAME = "llamaops.yaml"
MAX_FILE_BYTES = 256 * KIB
EMBEDDED = "embedded"


class Settings(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Every setting, with its default; None leaves it to the engine or to the command."""

    model: str | None = None
    bin_dir: str | None = None
    records: str | None = None
    ctx_size: int | None = None
    parallel: int | None = None
    kv_unified: bool | None = None
    batch_size: int | None = None
    ubatch_size: int | None = None
    n_gpu_layers: str | None = None
    expect_device: str | None = None
    flash_attn: str | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    threads: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    api_key_file: str | None = None
    via: str = "auto"
    max_tokens: int = 64
    seed: int = 42
    temperature: float = 0.0
    timeout: float = 120.0
    ready_timeout: float = 300.0


class Kind(msgspec.Struct, frozen=True):
    """How the text of a setting becomes its value."""

    parse: Callable[[str], Any]
    metavar: str
    about: str


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


def resolve(
    given: Mapping[str, str | None], environ: Mapping[str, str], *, names: tuple[str, ...]
) -> tuple[Settings, SettingsFacts]:
    """Resolve the settings a command uses, and say where each came from.

    Args:
        given: Texts from the command line, by name; None where it was not given.
        environ: The environment, for LLAMAOPS_* and to find the user's file.
        names: The settings that the command uses.

    Raises: UsageError for the command line and the environment, InputFileError for a file.
    """
    layers: list[dict[str, tuple[str, str]]] = [
        {name: (text, "command line") for name, text in given.items() if text is not None},
        {
            name: (environ[variable], variable)
            for name in KINDS
            if (variable := f"LLAMAOPS_{name.upper()}") in environ
        },
    ]
    files = []
    for path in (FILE_NAME, user_file(environ)):
        if (content := _read(path)) is not None:
            files.append(path)
            layers.append(read_file(path, content))
    values: dict[str, Any] = {}
    origins = []
    for name in names:
        text, origin = next((layer[name] for layer in layers if name in layer), (None, "default"))
        value = getattr(Settings(), name) if text is None else _parse(name, text, origin)
        values[name] = value
        if value is not None:
            origins.append(Setting(name=name, value=_shown(value), origin=origin))
    return Settings(**values), SettingsFacts(settings=tuple(origins), files=tuple(files))


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's own configuration file."""
    if home := environ.get("XDG_CONFIG_HOME"):
        return joined(home, "llamaops", FILE_NAME)
    return joined(expanded("~"), ".config", "llamaops", FILE_NAME)


def read_file(path: AnyPath, content: bytes) -> dict[str, tuple[str, str]]:
    """Read a configuration file: name to (text, place).

    Raises: InputFileError that names every error and its place.
    """
    import yaml

    try:
        root = yaml.compose(content.decode("utf-8"), Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise InputFileError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputFileError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise InputFileError(f"{path}:1:1: has to be a mapping of settings")
    found: dict[str, tuple[str, str]] = {}
    errors = []
    for key, value in root.value:
        place = f"{path}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
        name = str(key.value).replace("-", "_")
        problem = _file_problem(name, value, found)
        if problem:
            errors.append(f"{place}: {problem}")
        else:
            found[name] = (value.value, f"{path}:{key.start_mark.line + 1}")
    if errors:
        raise InputFileError("\n".join(errors), hint="`llamaops settings` lists the settings and their types")
    return found


def _file_problem(name: str, node: Any, found: Mapping[str, object]) -> str | None:  # noqa: ANN401 - a yaml node
    import difflib

    import yaml

    if name not in KINDS:
        near = difflib.get_close_matches(name, KINDS, 1)
        return f"unknown setting {name!r}" + (f"; did you mean {near[0]}?" if near else "")
    if name in found:
        return f"{name} is given twice"
    if not isinstance(node, yaml.ScalarNode):
        return f"{name} has to be one value"
    try:
        KINDS[name].parse(node.value)
    except ValueError as error:
        return f"{name} {error}"
    return None


def _parse(name: str, text: str, origin: str) -> Any:  # noqa: ANN401 - as typed in the table
    try:
        return KINDS[name].parse(text)
    except ValueError as error:
        flag = f"--{name.replace('_', '-')}" if origin == "command line" else origin
        raise UsageError(f"{flag} {error}") from error


def _read(path: str) -> bytes | None:
    try:
        return read_limited(path, limit_bytes=MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}", hint="fix or remove it") from error


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
