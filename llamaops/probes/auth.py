"""The same questions without the API key, and with a wrong one: which paths are guarded?"""

from __future__ import annotations

import secrets
from typing import Literal

from llamaops.probes.chat import OTHER_PROMPT, PATH, request_body
from llamaops.probes.endpoint import QUICK, EndpointAnswer, answer_of
from llamaops.probes.registry import probe
from llamaops.probes.slots import clean_slots
from llamaops.schema.bounds import Bounds
from llamaops.system.http import HttpClient

OPEN_BY_DESIGN = frozenset({"/health"})
OPEN_IN_SOME_BUILDS = frozenset({"/v1/models"})
"""Open until about build 10600, guarded since."""


@probe(
    "auth",
    sends="GET /health, /v1/models, /props, /slots and a chat request, without and with a wrong key",
    proves="which of these paths answer without the key",
    does_not_prove="that other paths are guarded, or that the key is hard to guess",
    tokens="none where the key is required, 1 for each request where it is not",
    seconds="seven exchanges, at most 10 s each",
)
def probe_auth(client: HttpClient, *, model: str | None, bounds: Bounds) -> tuple[EndpointAnswer, ...]:
    """Ask without the key and with a wrong one; only where a key is used."""
    wrong = f"llamaops-wrong-{secrets.token_hex(8)}"
    asked = [_get(client, path, None, bounds) for path in ("/health", "/v1/models", "/props", "/slots")]
    asked.append(_chat(client, None, model, bounds))
    asked += [_get(client, "/props", wrong, bounds), _chat(client, wrong, model, bounds)]
    return tuple(asked)


def _get(client: HttpClient, path: str, key: str | None, bounds: Bounds) -> EndpointAnswer:
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=QUICK.keep_bytes, total_bytes=QUICK.total_bytes)
    clean = clean_slots if path == "/slots" else None
    result = client.exchange("GET", path, bounds=limits, with_key=False, other_key=key, clean=clean)
    return answer_of("auth", f"GET {path}", _kind(key), result)


def _chat(client: HttpClient, key: str | None, model: str | None, bounds: Bounds) -> EndpointAnswer:
    body = request_body(OTHER_PROMPT, max_tokens=1, model=model)
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=QUICK.keep_bytes, total_bytes=QUICK.total_bytes)
    result = client.exchange("POST", PATH, body=body, bounds=limits, with_key=False, other_key=key)
    return answer_of("auth", f"POST {PATH}", _kind(key), result)


def _kind(key: str | None) -> Literal["none", "wrong"]:
    return "none" if key is None else "wrong"
