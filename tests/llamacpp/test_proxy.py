"""A real nginx with the site that we render, before a server: TLS, key, rate, streams, closed paths."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.liars import install
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.runbooks import KEY, Proxy, ends, free_port, run_book, running

pytestmark = [
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]
CHAT = "/v1/chat/completions"
QUESTION = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 600, "stream": True}


def wait_listening(process: subprocess.Popen[bytes], port: int) -> None:
    import socket

    end = time.monotonic() + 10
    while time.monotonic() < end:
        assert process.poll() is None, "nginx has ended"
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("nginx does not listen")


@pytest.fixture(scope="module")
def proxied(
    embedded_server: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    """A proxy with a rate limit of 60 a minute and 20 at once before a real server with a key."""
    folder = tmp_path_factory.mktemp("proxy")
    proxy = Proxy(folder, free_port(), free_port())
    proxy.prepare(requests_per_minute=60, burst=20)
    records = folder / "records"
    rendered = command.run(
        ["expose", "render", "nginx", str(proxy.decisions), "--output", str(proxy.site)], records
    )
    assert rendered.status == 0, rendered.err
    model = write_tiny_model(folder / "tiny.gguf")
    server = subprocess.Popen(
        [embedded_server, "--model", model, "--host", "127.0.0.1", "--port", str(proxy.server_port),
         "--ctx-size", "1024", "--metrics", "--slots", "--api-key-file", proxy.key_file],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with running(proxy) as nginx:
            wait_listening(nginx, proxy.port)
            end = time.monotonic() + 30
            while ask(proxy, "GET", "/health")[0] != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
            yield proxy
    finally:
        server.terminate()
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(5)


def connect(proxy: Proxy) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(proxy.certificate))
    return http.client.HTTPSConnection("localhost", proxy.port, context=context, timeout=30)


def ask(
    proxy: Proxy,
    method: str,
    path: str,
    *,
    key: str | None = None,
    body: object = None,
    origin: str | None = None,
) -> tuple[int, dict[str, str], bytes]:
    connection = connect(proxy)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if origin is not None:
        headers["Origin"] = origin
    payload = None if body is None else json.dumps(body)
    connection.request(method, path, payload, {**headers, "Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def test_a_key_is_needed_and_a_wrong_one_is_not_enough(proxied: Proxy) -> None:
    assert ask(proxied, "GET", "/v1/models")[0] == 401
    assert ask(proxied, "POST", CHAT, key="a-wrong-key", body=QUESTION)[0] == 401
    assert ask(proxied, "GET", "/v1/models", key=KEY)[0] == 200


@pytest.mark.parametrize(
    "path", ["/slots", "/metrics", "/props", "/tools", "/completion", "/", "/v1/models/../../slots"]
)
def test_what_was_not_opened_is_closed_even_with_the_key(proxied: Proxy, path: str) -> None:
    assert ask(proxied, "GET", path, key=KEY)[0] == 404


def test_a_stream_is_not_held_back(proxied: Proxy) -> None:
    connection = connect(proxied)
    began = time.monotonic()
    connection.request(
        "POST",
        CHAT,
        json.dumps(QUESTION),
        {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    arrivals, text = [], b""
    while chunk := answer.read1(65536):
        arrivals.append(time.monotonic() - began)
        text += chunk
    connection.close()
    assert text.rstrip().endswith(b"data: [DONE]")
    assert len(arrivals) > 20
    assert arrivals[0] < arrivals[-1] * 0.7


def test_other_pages_are_told_nothing_and_the_decided_one_is(proxied: Proxy) -> None:
    ours = ask(proxied, "GET", "/v1/models", key=KEY, origin="https://app.example")[1]
    assert ours["access-control-allow-origin"] == "https://app.example"
    other = ask(proxied, "GET", "/v1/models", key=KEY, origin="https://evil.example")[1]
    assert "access-control-allow-origin" not in other
    status, headers, _body = ask(proxied, "OPTIONS", CHAT, origin="https://app.example")
    assert (status, headers["access-control-allow-headers"]) == (204, "Authorization, Content-Type")


def test_the_log_holds_neither_query_nor_key(proxied: Proxy) -> None:
    ask(proxied, "GET", "/v1/models?prompt=my-secret-question", key=KEY)
    log = (proxied.folder / "access.log").read_text()
    assert "/v1/models" in log
    assert "my-secret-question" not in log
    assert KEY not in log


def test_zz_a_client_that_asks_too_often_is_refused(proxied: Proxy) -> None:
    """The last test: it uses up the rate of this address."""
    statuses = [ask(proxied, "GET", "/v1/models", key=KEY)[0] for _number in range(40)]
    assert 429 in statuses
    assert set(statuses) <= {200, 429}
    assert ask(proxied, "GET", "/health")[0] == 200  # monitors are not limited


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.timeout(240)
def test_the_runbook_exposes_a_server_behind_the_proxy(
    embedded_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nginx is real; an honest stand-in of llama-server answers, since the tiny model knows one sentence."""
    proxy = Proxy(tmp_path, free_port(), free_port())
    proxy.prepare()
    for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(proxy.certificate))
    with running(proxy):
        end = time.monotonic() + 10
        while not (proxy.folder / "nginx.pid").exists() and time.monotonic() < end:
            time.sleep(0.02)
        ran = run_book(
            "expose-behind-proxy",
            tmp_path / "records",
            decisions=proxy.decisions,
            site=proxy.site,
            nginx_conf=proxy.conf,
            model=embedded_model,
            bin_dir=install(tmp_path / "bin", "llama-server", extra=("--token-ms", "20")).parent,
            port=proxy.server_port,
            api_key_file=proxy.key_file,
            url=proxy.url,
        )
    steps = {step["id"]: step for step in ran.record["facts"]["runbook"]["steps"]}
    assert set(ends(ran).values()) == {"done"}, {n: (s["ended"], s["unmet"]) for n, s in steps.items()}
    assert ran.status == 0, ran.open_findings()
    everything = "".join(f.read_text() for f in (tmp_path / "records").rglob("*") if f.is_file())
    assert KEY not in everything + ran.out + ran.err
    command.wait_none_left()
