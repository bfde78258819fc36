"""A stand-in of a model hub on loopback: its description of a repository, and files by range."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "maker/tiny-GGUF"
CARD = {
    "license": "apache-2.0",
    "base_model": ["maker/tiny"],
    "datasets": ["maker/words"],
}


@dataclass
class FakeHub:
    """What the stand-in serves, and what it was asked."""

    files: Mapping[str, bytes]
    card: Mapping[str, Any] = field(default_factory=lambda: dict(CARD))
    gated: object = False
    cut_after: int | None = None
    """The first download of a file ends after so many bytes."""
    lie: bytes | None = None
    """What is sent in place of a file; the declared digest stays that of the file."""
    ranges: bool = True
    redirect_to: str | None = None
    status: int | None = None
    """What every request for a file is answered with."""
    url: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of each request."""
    tokens: list[str | None] = field(default_factory=list)
    sent_bytes: int = 0

    def describe(self) -> dict[str, Any]:
        return {
            "_id": "1",
            "id": REPOSITORY,
            "modelId": REPOSITORY,
            "author": "maker",
            "sha": COMMIT,
            "gated": self.gated,
            "private": False,
            "disabled": False,
            "lastModified": "2026-01-02T03:04:05.000Z",
            "createdAt": "2026-01-02T03:04:05.000Z",
            "downloads": 1,
            "likes": 1,
            "tags": ["gguf", "base_model:maker/tiny", "base_model:quantized:maker/tiny"],
            "cardData": dict(self.card),
            "siblings": [self._sibling(name, data) for name, data in self.files.items()],
        }

    def _sibling(self, name: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        lfs = {"lfs": {"size": len(data), "sha256": digest, "oid": digest, "pointerSize": 134}}
        return {
            "rfilename": name,
            "size": len(data),
            "blobId": "b" * 40,
            **(lfs if name.endswith(".gguf") else {}),
        }


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("Range", "")))
            hub.tokens.append(self.headers.get("Authorization"))
            path = self.path.partition("?")[0]
            if path.startswith("/api/models/"):
                self._describe(path)
                return
            prefix = f"/{REPOSITORY}/resolve/"
            revision, _, name = path.removeprefix(prefix).partition("/")
            data = hub.files.get(name if path.startswith(prefix) else path.lstrip("/"))
            if (
                hub.status is not None
                or data is None
                or (path.startswith(prefix) and revision not in {COMMIT, "main"})
            ):
                self._plain(hub.status or 404)
            elif hub.redirect_to is not None and path.startswith(prefix):
                self._redirect(hub.redirect_to + path)
            else:
                self._file(data, body=body)

        def _describe(self, path: str) -> None:
            repository, _, revision = path.removeprefix("/api/models/").partition("/revision/")
            if repository != REPOSITORY or (revision and revision not in {COMMIT, "main"}):
                code = "RepoNotFound" if repository != REPOSITORY else "RevisionNotFound"
                self._plain(404, {"X-Error-Code": code})
                return
            data = json.dumps(hub.describe()).encode()
            self._plain(200, {"Content-Type": "application/json"}, data)

        def _plain(self, status: int, headers: Mapping[str, str] | None = None, data: bytes = b"") -> None:
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _redirect(self, target: str) -> None:
            self._plain(302, {"Location": target})

        def _file(self, data: bytes, *, body: bool) -> None:
            digest = hashlib.sha256(data).hexdigest()
            sent = hub.lie if hub.lie is not None else data
            start, end = 0, len(sent)
            asked = self.headers.get("Range", "")
            if asked.startswith("bytes=") and hub.ranges:
                first, _, last = asked.removeprefix("bytes=").partition("-")
                start, end = int(first), min(int(last) + 1 if last else len(sent), len(sent))
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(sent)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(end - start))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("ETag", f'"{digest}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("X-Linked-Etag", f'"{digest}"')
            self.send_header("X-Linked-Size", str(len(data)))
            self.end_headers()
            if not body:
                return
            part = sent[start:end]
            if hub.cut_after is not None and len(part) > hub.cut_after:
                part, hub.cut_after = part[: hub.cut_after], None
                self.close_connection = True
            hub.sent_bytes += len(part)
            self.wfile.write(part)

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve on a free port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
