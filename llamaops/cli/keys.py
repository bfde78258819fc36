"""The API key: from a variable or a file, never from the command line."""

from __future__ import annotations

from collections.abc import Mapping

from llamaops.errors import InputFileError

KEY_VARIABLE = "LLAMAOPS_API_KEY"
MAX_KEY_BYTES = 64 * 1024


def read_key(file: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the key: the first line of the file that was named, else the variable.

    Raises: InputFileError that names the file, never its content.
    """
    if file is None:
        return environ.get(KEY_VARIABLE) or None
    import os

    from llamaops.system.files import read_limited

    try:
        content = read_limited(os.path.expanduser(file), limit_bytes=MAX_KEY_BYTES)  # noqa: PTH111
    except OSError as error:
        raise InputFileError(
            f"cannot read the key file {file}: {error.strerror}",
            hint="give a readable file with one key a line",
        ) from error
    keys = [line.strip() for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    if not keys:
        raise InputFileError(f"the key file {file} holds no key", hint="put one key on a line of its own")
    return keys[0]
