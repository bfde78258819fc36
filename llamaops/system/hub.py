"""Ask a hub about a repository, and download from it, with the `huggingface_hub` package.

The package is imported here and only when asked for; it is the extra `llamaops[hub]`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from llamaops.errors import FetchError, UsageError

TIMEOUT_S = 30.0
NOT_THERE = frozenset({"RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError"})
HINT = "pip install 'llamaops[hub]'"


class NotThereError(FetchError):
    """The hub has no such repository, revision or file."""


def need_package() -> None:
    """See that the package is there, and that it tells the hub no more about us than it has to.

    Raises: UsageError.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if importlib.util.find_spec("huggingface_hub") is None:
        raise UsageError("a download from a hub needs the huggingface_hub package", hint=HINT)


def _token(environ: Mapping[str, str]) -> str | bool:
    """Return the operator's token; False sends none, rather than one that lies in the home folder."""
    return environ.get("HF_TOKEN") or False


def ask_repository(
    endpoint: str, repository: str, revision: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return what the hub says about a repository at a revision, as plain data.

    Raises: FetchError with what the hub refused.
    """
    need_package()
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=_token(environ))
    try:
        info = api.model_info(repository, revision=revision, files_metadata=True, timeout=TIMEOUT_S)
    except Exception as error:
        raise _explained(error, f"{repository}@{revision}") from error
    card = getattr(info, "card_data", None)
    changed = getattr(info, "last_modified", None)
    return {
        "commit": info.sha,
        "author": info.author,
        "gated": info.gated,
        "tags": list(info.tags or ()),
        "changed_at": changed.isoformat() if changed is not None else None,
        "card": card.to_dict() if card is not None else {},
        "files": [
            {"path": one.rfilename, "size": one.size, "sha256": one.lfs.sha256 if one.lfs else None}
            for one in info.siblings or ()
        ],
    }


def download(
    endpoint: str,
    repository: str,
    commit: str,
    file: str,
    folder: str,
    environ: Mapping[str, str],
    *,
    quiet: bool,
) -> str:
    """Download a file into a folder and return its path; a download that was cut is resumed.

    Raises: FetchError.
    """
    need_package()
    from huggingface_hub import hf_hub_download

    utils: Any = importlib.import_module("huggingface_hub.utils")
    (utils.disable_progress_bars if quiet else utils.enable_progress_bars)()
    try:
        path = hf_hub_download(
            repository,
            file,
            revision=commit,
            local_dir=folder,
            endpoint=endpoint,
            token=_token(environ),
            etag_timeout=TIMEOUT_S,
        )
    except Exception as error:
        raise _explained(error, f"{repository}/{file}") from error
    return os.path.abspath(str(path))


_AGAIN = "run the command again: what was downloaded is kept and the download goes on"
_LOGIN = "accept its terms on the hub and set HF_TOKEN to a token that may read it"
_HINTS: dict[str | int, str] = {
    "GatedRepoError": "accept its terms on the hub and set HF_TOKEN",
    "RepositoryNotFoundError": "check the name; for a private repository set HF_TOKEN",
    "RevisionNotFoundError": "check the revision",
    "EntryNotFoundError": "check the name of the file",
    "UnsupportedProtocol": "HF_ENDPOINT has to be an address such as https://HOST",
    "FileMetadataError": "what answers there gives no commit or digest: see that HF_ENDPOINT is a hub",
    "ConnectError": "see that the hub can be reached, or set HF_ENDPOINT; then run the command again",
    401: _LOGIN,
    403: _LOGIN,
    429: "the hub asks for fewer requests: wait some minutes, or set HF_TOKEN; then run the command again",
}


def _explained(error: Exception, what: str) -> FetchError:
    """Say in one line what the hub or the network said, also where the package speaks of its own cache."""
    kind = type(error).__name__
    inner: BaseException = error
    while kind == "LocalEntryNotFoundError" and inner.__cause__ is not None:
        inner = inner.__cause__
    response = getattr(inner, "response", None)
    number = response.status_code if response is not None else None
    named = type(inner).__name__
    status = f" (status {number})" if number is not None else ""
    said = _HINTS.get(named) or _HINTS.get(number or 0, _AGAIN)
    family = NotThereError if kind in NOT_THERE else FetchError
    return family(f"the hub did not give {what}: {named}{status}", hint=said)
