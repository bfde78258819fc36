"""Secrets planted in every input are looked for in every output: screen, errors, journal, record."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.fakes import command
from tests.fakes.gguf_files import FakeGguf
from tests.fakes.liars import install

TOLD = {
    "HF_TOKEN": "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",
    "LLAMAOPS_API_KEY": "tiger-lily-71-orchid",
    "MY_SERVICE_PASSWORD": "pa$$w0rd!/with=odd chars",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzKEY1",
    "SHORT_TOKEN": "q7z",
    "DATABASE_URL": "postgres://reader:SwordFish99@db.internal:5432/app",
}
SHAPES = {
    "bearer": "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkxIn0.c2lnbmF0dXJlY2FuYXJ5",
    "github": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "openai": "sk-proj-Zz9Yy8Xx7Ww6Vv5Uu4Tt3Ss2Rr1Qq0Pp",
    "url": "https://alice:Hunter2Canary@example.org/v1",
    "key": (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAAcanary\n"
        "-----END OPENSSH PRIVATE KEY-----"
    ),
    "argument": "llama-server --api-key CanaryArgument77 -m m.gguf",
    "home": "/home/canaryuser/models/secret-project.gguf",
    "mail": "canary.person@corp-example.org",
    "address": "connection from 203.0.113.77 refused",
}
FORBIDDEN = [
    *(value for name, value in TOLD.items() if name != "DATABASE_URL"),
    "SwordFish99",
    "eyJzdWIiOiJjYW5hcnkxIn0",
    SHAPES["github"],
    SHAPES["openai"],
    "Hunter2Canary",
    "b3BlbnNzaC1rZXktdjEAAAAAcanary",
    "CanaryArgument77",
    "canaryuser",
    "canary.person",
    "203.0.113.77",
]
OTHER_PEOPLES_PROMPT = "please summarise my medical report"


def encodings(value: str) -> list[str]:
    return [
        value,
        quote(value, safe=""),
        base64.b64encode(value.encode()).decode().rstrip("="),
        json.dumps(value)[1:-1],
    ]


def assert_clean(ran: command.Ran, records: Path) -> None:
    texts = {"stdout": ran.out, "stderr": ran.err}
    for path in records.rglob("*"):
        if path.is_file():
            texts[path.name] = path.read_text()
        texts[f"name of {path.name}"] = path.name
    assert "record.json" in texts
    for where, text in texts.items():
        for secret in FORBIDDEN:
            for form in encodings(secret) if len(secret) > 4 else [secret]:
                assert form not in text, f"{where} holds {secret!r} as {form!r}"
        assert OTHER_PEOPLES_PROMPT not in text, f"{where} holds another person's prompt"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


def noisy_lines() -> str:
    told = [
        "token=" + TOLD["HF_TOKEN"],
        "x" + TOLD["SHORT_TOKEN"] + "x",
        quote(TOLD["MY_SERVICE_PASSWORD"], safe=""),
        base64.b64encode(b"prefix " + TOLD["AWS_SECRET_ACCESS_KEY"].encode()).decode(),
        json.dumps({"key": TOLD["LLAMAOPS_API_KEY"]}),
        TOLD["DATABASE_URL"],
    ]
    return "\n".join([*told, *SHAPES.values()]) + "\n"


def test_model_metadata_and_file_names(tmp_path: Path, records: Path) -> None:
    folder = tmp_path / "models" / SHAPES["github"]
    folder.mkdir(parents=True)
    model = FakeGguf().with_key("general.name", SHAPES["openai"])
    model = model.with_key("general.author", SHAPES["mail"]).with_key("general.description", noisy_lines())
    path = folder / f"{TOLD['HF_TOKEN']}.gguf"
    path.write_bytes(model.to_bytes())
    for form in ("text", "json", "markdown"):
        ran = command.run(["inspect", str(path), "--format", form], records, TOLD)
        assert ran.status in {0, 3}, ran.err
        assert_clean(ran, records)


def test_error_messages(tmp_path: Path, records: Path) -> None:
    wrong = [
        ["inspect", f"/nowhere/{TOLD['HF_TOKEN']}.gguf"],
        ["verify", f"http://bob:{TOLD['LLAMAOPS_API_KEY']}@127.0.0.1:1/"],
        ["serve", "--model", "m.gguf", "--", "--api-key", "CanaryArgument77"],
        ["smoke", "--model", f"{TOLD['AWS_SECRET_ACCESS_KEY']}.gguf", "--bin-dir", str(tmp_path)],
        ["record", "show", TOLD["HF_TOKEN"]],
        ["nonsense", TOLD["HF_TOKEN"]],
    ]
    for words in wrong:
        ran = command.run(words, records, TOLD)
        assert ran.status != 0
        for secret in FORBIDDEN:
            assert secret not in ran.out + ran.err, words


def test_a_servers_log_help_and_version(tmp_path: Path, records: Path, embedded_model: str) -> None:
    real = install(tmp_path / "real", "llama-server")
    program = tmp_path / "bin" / "llama-server"
    program.parent.mkdir()
    (tmp_path / "noise").write_text(noisy_lines())
    program.write_text(f'#!/bin/sh\ncat {tmp_path}/noise >&2\nexec {sys.executable} {real} "$@"\n')
    program.chmod(0o755)
    words = ["serve", "--verify", "--once", "--bin-dir", str(program.parent), "--model", embedded_model]
    for form in ("text", "json"):
        ran = command.run([*words, "--format", form], records, TOLD)
        assert_clean(ran, records)
        assert any(path.name == "record.json" for path in records.rglob("*"))


class _Leaky(BaseHTTPRequestHandler):
    """A server whose headers and bodies are full of secrets and of other people's prompts."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer()

    def _answer(self) -> None:
        slot = {
            "id": 0,
            "is_processing": True,
            "prompt": OTHER_PEOPLES_PROMPT,
            "generated": OTHER_PEOPLES_PROMPT,
        }
        body: object = {
            "status": "ok",
            "debug": noisy_lines(),
            "authorization": self.headers.get("Authorization"),
        }
        if self.path.startswith("/slots"):
            body = [{**slot, "params": {"prompt": OTHER_PEOPLES_PROMPT}}]
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Set-Cookie", f"session={TOLD['HF_TOKEN']}")
        self.send_header("X-Debug", SHAPES["bearer"])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        return


@pytest.fixture
def leaky() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Leaky)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_http_headers_and_bodies(leaky: str, records: Path) -> None:
    for form in ("text", "json", "markdown"):
        ran = command.run(["verify", leaky, "--format", form], records, TOLD)
        assert ran.status in {3, 4}, ran.err
        assert_clean(ran, records)


def test_a_key_file_is_told_too(leaky: str, records: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("walrus-carpenter-1871\n")
    ran = command.run_json(["verify", leaky, "--api-key-file", str(key)], records, {"X": os.environ["HOME"]})
    everything = ran.out + ran.err + "".join(p.read_text() for p in records.rglob("*") if p.is_file())
    assert "walrus-carpenter-1871" not in everything
