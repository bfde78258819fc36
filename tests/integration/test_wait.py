"""`verify --wait`: a server that is still loading is waited for, and one that never comes only so long."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import command
from tests.llamacpp.runbooks import free_port

LOADING = 4
"""Requests that are answered with 503 before the server is ready."""


@pytest.fixture
def loading() -> Iterator[str]:
    """Return the address of a server that is ready after some requests."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            ready = len(asked) > LOADING
            body = b'{"status":"ok"}' if ready else b'{"error":{"message":"Loading model","code":503}}'
            self.send_response(200 if ready else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def waited(records: Path, url: str, *words: str) -> Any:
    asked = ["verify", url, "--only", "health", *words, "--format", "json"]
    ran = command.run(asked, records)
    return ran, next((step for step in ran.record["steps"] if step["id"] == "wait"), None)


def test_a_server_that_loads_is_waited_for(tmp_path: Path, loading: str) -> None:
    ran, step = waited(tmp_path / "records", loading, "--wait", "30")
    assert step["detail"].startswith("ready, after ")
    assert ran.finding("server.is-healthy")["status"] == "passed"


def test_a_server_that_never_comes_is_waited_for_only_so_long(tmp_path: Path) -> None:
    ran, step = waited(tmp_path / "records", f"http://127.0.0.1:{free_port()}", "--wait", "0.3")
    assert step["detail"].startswith("not ready, /health was last refused, after 0.")
    assert ran.status != 0


def test_nobody_waits_who_was_not_told_to(tmp_path: Path) -> None:
    _, step = waited(tmp_path / "records", f"http://127.0.0.1:{free_port()}")
    assert step is None


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "99999"])
def test_a_wait_without_a_bound_is_refused(tmp_path: Path, text: str) -> None:
    ran = command.run(["verify", "http://127.0.0.1:1", f"--wait={text}"], tmp_path / "records")
    assert ran.status == 2
    assert "--wait: has to be seconds from 0 to 14400" in ran.err
