"""Settings: command line, then LLAMAOPS_* variables, then llamaops.yaml here, then the user's own.

The table of settings is `setting_kinds.KINDS`. A file is validated as a whole: every error at
once, each with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from llamaops.errors import InputFileError, UsageError
from llamaops.facts.settings import Setting, SettingsFacts
from llamaops.operations.setting_kinds import KINDS
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
