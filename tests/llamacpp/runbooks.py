"""What the tests of runbooks share: a tiny model, a decisions file, and runs on real engines."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import command
from tests.fakes.command import Ran

KEY = "key-of-the-proxy-test-0123456789abcdef"


def run_book(
    name: str, records: Path, *, yes: bool = True, words: tuple[str, ...] = (), **inputs: Any
) -> Ran:
    """Run a runbook with --format json; an input's underscores are hyphens."""
    given = [w for n, v in inputs.items() for w in ("--input", f"{n.replace('_', '-')}={v}")]
    agreed = ["--yes"] if yes else []
    asked = ["runbook", "run", name, *given, *agreed, *words, "--format", "json"]
    return command.run(asked, records, timeout=600)


def ends(ran: Ran) -> dict[str, str]:
    return {step["id"]: step["end"] for step in ran.record["facts"]["runbook"]["steps"]}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass(frozen=True)
class Proxy:
    """nginx in a folder of its own."""

    folder: Path
    port: int
    server_port: int

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def conf(self) -> Path:
        return self.folder / "nginx.conf"

    @property
    def site(self) -> Path:
        return self.folder / "conf.d" / "llama-server.conf"

    @property
    def decisions(self) -> Path:
        return self.folder / "decisions.yaml"

    @property
    def key_file(self) -> Path:
        return self.folder / "key"

    @property
    def certificate(self) -> Path:
        return self.folder / "cert.pem"

    def prepare(self, *, requests_per_minute: int = 6000, burst: int = 100) -> None:
        (self.folder / "conf.d").mkdir()
        self.key_file.write_text(KEY)
        self.key_file.chmod(0o600)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=self.folder, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        (self.folder / "key.pem").chmod(0o600)
        self.decisions.write_text(f"""exposure: 1
bind: {{address: 127.0.0.1, port: {self.server_port}}}
api_key: {{file: {self.key_file}}}
tls:
  by: proxy
  server_name: localhost
  port: {self.port}
  certificate: {self.certificate}
  private_key: {self.folder / "key.pem"}
firewall: {{rule: a test on loopback}}
cors: {{origins: ["https://app.example"]}}
rate_limit: {{by: proxy, requests_per_minute: {requests_per_minute}, burst: {burst}}}
logging: {{prompts: false, keep_days: 1, file: {self.folder / "access.log"}}}
tools: {{open: false}}
metrics: {{open: false}}
slots: {{open: false}}
""")
        paths = "\n".join(
            f"  {name}_temp_path {self.folder / name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;\n" if os.geteuid() == 0 else ""
        self.conf.write_text(f"""{user}daemon off;
worker_processes 1;
pid {self.folder / "nginx.pid"};
error_log {self.folder / "error.log"};
events {{ worker_connections 64; }}
http {{
{paths}
  include {self.folder / "conf.d"}/*.conf;
}}
""")


@contextmanager
def running(proxy: Proxy) -> Iterator[subprocess.Popen[bytes]]:
    """Run nginx until the block is left."""
    nginx = shutil.which("nginx")
    assert nginx is not None
    process = subprocess.Popen(
        [nginx, "-p", str(proxy.folder), "-c", str(proxy.conf)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)
