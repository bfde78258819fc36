# ruff: noqa: SIM905 - words read better one after the other
"""Texts with planted secrets and identifiers, and ordinary ones, made at run time from a seed.

A kind gives a value and snippets of text in which its form or its place gives it away; a context puts a
snippet where one would meet it. Values are random and open nothing.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.fakes.redaction_encodings import CUTS, ENCODINGS, cut, encode, stamp

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


@dataclass
class Entry:
    kind: str
    context: str
    text: str
    secrets: list[str]
    given: bool = False
    keep: list[str] = field(default_factory=list)
    told: str = ""


@dataclass
class Plant:
    secrets: list[str]
    snippets: list[str]
    given: bool = False


def chars(r: random.Random, n: int, alphabet: str = ALNUM) -> str:
    return "".join(r.choice(alphabet) for _ in range(n))


def word(r: random.Random, n: int = 3) -> str:
    return "".join(r.choice("bdfgkmnprstvz") + r.choice("aeiou") for _ in range(n))


def opaque(r: random.Random) -> str:
    return r.choice(
        [chars(r, 32, HEX), chars(r, 40), chars(r, 22) + "7_-" + chars(r, 18), "p1-" + chars(r, 24)]
    )


def password(r: random.Random) -> str:
    return chars(r, 6) + r.choice("!#@+*~%") + chars(r, 5) + "4"


def uuid(r: random.Random) -> str:
    return "-".join(chars(r, n, HEX) for n in (8, 4, 4, 4, 12))


def prefixed(r: random.Random) -> Plant:
    value = r.choice(
        [
            "hf" + "_" + chars(r, 34),
            "sk" + "-ant-api03-" + chars(r, 93),
            "sk" + "-proj-" + chars(r, 120),
            "gh" + "p_" + chars(r, 36),
            "github" + "_pat_" + chars(r, 82),
            "gl" + "pat-" + chars(r, 20),
            "np" + "m_" + chars(r, 36),
            "AI" + "za" + chars(r, 35),
            "gs" + "k_" + chars(r, 52),
            "r8" + "_" + chars(r, 37),
            "nv" + "api-" + chars(r, 64),
            "xo" + "xb-" + chars(r, 12, "0123456789") + "-" + chars(r, 24),
            "sk" + "_live_" + chars(r, 24),
            "pyp" + "i-AgEIcHlwaS5vcmc" + chars(r, 80),
            "dckr" + "_pat_" + chars(r, 27),
            "AGE-" + "SECRET-KEY-1" + chars(r, 58, string.ascii_uppercase + "234567"),
            "AK" + "IA" + chars(r, 16, string.ascii_uppercase + "234567"),
            "hv" + "s." + chars(r, 90),
            "tskey" + "-auth-" + chars(r, 12) + "-" + chars(r, 32),
            "SG" + "." + chars(r, 22) + "." + chars(r, 43),
        ]
    )
    return Plant(
        [value],
        [f"using {value} to download", f"https://hub.example.org/x?k={value}", f"/tmp/{value}.part", value],
    )


def web_token(r: random.Random) -> Plant:
    def part(data: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    value = f"{part({'alg': 'ES256'})}.{part({'sub': word(r), 'exp': r.randint(1, 9**9)})}.{chars(r, 43)}"
    return Plant([value], [f"Cookie: session={value}", f"token {value} expired", f'"id_token":"{value}"'])


def named(r: random.Random) -> Plant:
    value = r.choice([opaque, password])(r)
    name = r.choice(
        """LLAMA_API_KEY MY_SERVICE_TOKEN DB_PASSWORD api_key client_secret X-Api-Key x-auth-token accessToken
        REDIS_PASSWORD passphrase secretKey auth_token PGPASSWORD AZURE_OPENAI_API_KEY webhook_secret
        private_token smtp_password encryption-key""".split()
    )
    return Plant(
        [value],
        [
            f"{name}={value}",
            f'{name}: "{value}"',
            f'{{"model": "m", "{name}": "{value}", "n": 1}}',
            f"{name} = '{value}'",
            f"- name: {name}\n  value: {value}",
            f"docker run -e {name}={value} image",
            f"('{name}', '{value}')" if "-" in name else f"{name}: {value}",
            f'Environment="{name}={value}"',
            f"<{name}>{value}</{name}>",
            f'{{"name": "{name}", "value": "{value}"}}',
        ],
    )


def flag(r: random.Random) -> Plant:
    value = opaque(r)
    name = r.choice(
        ["--api-key", "--hf-token", "-hft", "--token", "--password", "--auth-token", "--client-secret"]
    )
    return Plant(
        [value],
        [
            f"llama-server -m m.gguf {name} {value} --port 8080",
            f"llama-server {name}={value} -c 4096",
            f"['llama-server', '{name}', '{value}', '-v']",
            f'["llama-server", "{name}", "{value}"]',
            f"ExecStart=/usr/bin/llama-server {name} {value}",
        ],
    )


def header(r: random.Random) -> Plant:
    value = r.choice([opaque(r), base64.b64encode(f"{word(r)}:{password(r)}".encode()).decode()])
    scheme = r.choice(["Bearer", "Basic", "Token", "bearer"])
    return Plant(
        [value],
        [
            f"Authorization: {scheme} {value}",
            f"proxy-authorization: {scheme} {value}",
            f"curl -H 'Authorization: {scheme} {value}' http://127.0.0.1:8080/v1/models",
            f"{{'Authorization': '{scheme} {value}', 'Accept': '*/*'}}",
            f"Authorization: {value}",
        ],
    )


def login(r: random.Random) -> Plant:
    value, user = password(r).replace("%", "x"), word(r)
    return Plant(
        [value],
        [
            f"https://{user}:{quote(value, safe='')}@models.example.net/a.gguf"
            if quote(value, safe="") == value
            else f"ftp://{user}:{value.replace('#', '+').replace('@', '+')}@files.example.net/x",
            f"postgresql://{user}:{value.replace('#', '*').replace('@', '*')}@localhost:5432/db",
            f"machine models.example.org login {user} password {value}",
            f"sshpass -p {value} ssh host",
            f"redis-cli -a {value} ping",
            f"mysql -u{user} -p{value} db",
            f"curl -u {user}:{value} http://127.0.0.1:8080/",
            f"Server=db;User Id={user};Password={value};Encrypt=true",
            f"host=localhost dbname=x user={user} password='{value}'",
            f"docker login -u {user} -p {value} registry.example.org",
        ],
    )


def key_block(r: random.Random) -> Plant:
    label = r.choice(["", "RSA ", "OPENSSH ", "EC "])
    lines = [chars(r, 64, ALNUM + "+/") for _ in range(r.randint(2, 8))] + [chars(r, 22, ALNUM) + "=="]
    begin, end = f"-----BEGIN {label}PRIVATE" + " KEY-----", f"-----END {label}PRIVATE" + " KEY-----"
    return Plant(
        lines, ["\n".join([begin, *lines, end]), "TLS_KEY='" + "\n".join([begin, *lines, end]) + "'"]
    )


def person(r: random.Random) -> Plant:
    user, domain = word(r), word(r, 4) + r.choice([".com", ".org", ".eu"])
    return r.choice(
        [
            Plant(
                [f"{user}@{domain}"],
                [f"contact {user}@{domain}", f"Author: X <{user}@{domain}>", f"?user={user}%40{domain}"],
            ),
            Plant(
                [user],
                [
                    f"/home/{user}/models/m.gguf",
                    f"/Users/{user}/Library/Caches/m.gguf",
                    f"C:\\Users\\{user}\\m.gguf",
                    f"HOME=/home/{user}",
                    f"uid=1000({user}) gid=1000({user})",
                    f"ssh {user}@203.0.113.9",
                    f"-rw-r--r-- 1 {user} {user} 99 Nov 29 18:43 m.gguf",
                    f"file:///home/{user}/x.json",
                ],
            ),
        ]
    )


def machine(r: random.Random) -> Plant:
    short = f"{word(r)}-gpu{r.randint(2, 99)}"
    full = f"{short}.{word(r, 2)}.{r.choice(['internal', 'lan', 'corp', 'local', 'intranet'])}"
    return Plant(
        [short],
        [
            f"resolving {full} failed",
            f"http://{full}:8080/health",
            f"HOSTNAME={short}",
            f"hostname: {short}",
            f"Linux {short} 6.8.0-45-generic #45 SMP x86_64 GNU/Linux",
            f"--rpc {short}:50052,{full}:50052",
            f"Nov 29 18:43:01 {short} llama-server[123]: ready",
            f"{word(r)}@{short}:~$ nvidia-smi",
            f"Host: {short}:8080",
        ],
    )


def address(r: random.Random) -> Plant:
    four = r.choice(
        [
            f"10.{r.randint(0, 255)}.{r.randint(0, 255)}.{r.randint(2, 254)}",
            f"192.168.{r.randint(0, 255)}.{r.randint(2, 254)}",
            f"81.{r.randint(2, 250)}.{r.randint(2, 250)}.{r.randint(2, 250)}",
        ]
    )
    six = r.choice(
        [
            f"fe80::{chars(r, 4, '123456789')}:{chars(r, 4, HEX[1:])}:fe12:{chars(r, 4, HEX[1:])}",
            f"2001:db8:{chars(r, 4, HEX[1:])}::{chars(r, 3, HEX[1:])}",
        ]
    )
    mac = ":".join(["3c", *(chars(r, 2, HEX) for _ in range(5))])
    return r.choice(
        [
            Plant(
                [four],
                [
                    f"connection from {four}:51234 closed",
                    f"--host {four}",
                    f"X-Forwarded-For: {four}",
                    f"http://{four}:8080/health",
                    f"/var/log/{four}-8080.log",
                ],
            ),
            Plant(
                [six],
                [f"connection from [{six}]:51234", f"inet6 {six}/64 scope link", f"client {six} refused"],
            ),
            Plant([mac], [f"link/ether {mac} brd ff:ff:ff:ff:ff:ff", f'"mac": "{mac}"']),
            Plant([v := f"GPU-{uuid(r)}"], [f"GPU 0: NVIDIA A100 (UUID: {v})", f"CUDA_VISIBLE_DEVICES={v}"]),
        ]
    )


def told(r: random.Random) -> Plant:
    value = r.choice(
        [
            opaque(r),
            password(r),
            chars(r, 3),
            chars(r, 5) + "$(\\d" + chars(r, 3),
            f"correct {word(r)} {word(r)}",
            f"{chars(r, 4)}\"'{chars(r, 6)}",
        ]
    )
    form = encode(r, value, [r.choice(list(ENCODINGS)) for _ in range(r.randint(0, 3))])
    return Plant(
        [value, form],
        [f"entry {form} not found", f"/var/lib/x/{form}.bin", f"NOTE={form}", f"x{form}y"],
        given=True,
    )


KINDS: dict[str, Callable[[random.Random], Plant]] = {
    f.__name__: f
    for f in (prefixed, web_token, named, flag, header, login, key_block, person, machine, address, told)
}


def _log(r: random.Random, text: str) -> str:
    lines = ["I srv  load_model: loading", f"W srv    operator(): {text}", "I srv  update_slots: idle"]
    return "\n".join(f"{stamp(r)} {line}" for line in lines)


def _plain(_r: random.Random, text: str) -> str:
    return text


def _json_log(r: random.Random, text: str) -> str:
    row = {"type": "log", "time": r.randint(1, 9**6), "level": "warn", "msg": f"srv  operator(): {text}\n"}
    return json.dumps(row, ensure_ascii=r.random() < 0.5)


def _repr(_r: random.Random, text: str) -> str:
    return f"Traceback (most recent call last):\nRuntimeError: {text!r}"


def _yaml(_r: random.Random, text: str) -> str:
    return f"services:\n  llama:\n    command: {json.dumps(text)}\n    ports: []"


CONTEXTS: dict[str, Callable[[random.Random, str], str]] = {
    "plain": _plain,
    "log": _log,
    "json-log": _json_log,
    "traceback": _repr,
    "yaml": _yaml,
}
# Headers and the like begin a line or follow a quote; inside of prose they mean nothing.
_LINE_KINDS = ("machine", "person", "address")


def planted(seed: int, count: int) -> Iterator[Entry]:
    names = list(KINDS)
    for number in range(count):
        r = random.Random(f"{seed}/{number}")
        kind = names[number % len(names)]
        plant = KINDS[kind](r)
        snippet = r.choice(plant.snippets)
        context = "plain" if kind in _LINE_KINDS and r.random() < 0.8 else r.choice(list(CONTEXTS))
        text = CONTEXTS[context](r, snippet)
        pieces: list[str] = []
        if kind == "told" and r.random() < 0.4:
            context = r.choice(CUTS)
            text, pieces = cut(r, "entry ", plant.secrets[1], " seen", context)
        secrets = [s for s in [*plant.secrets, *pieces] if s in text and len(s) >= 3]
        yield Entry(kind, context, text, secrets or plant.secrets, plant.given, told=plant.secrets[0])


def given_values(entries: list[Entry]) -> list[str]:
    return sorted({entry.told for entry in entries if entry.given})


def ordinary(seed: int, count: int) -> Iterator[Entry]:
    for number in range(count):
        r = random.Random(f"{seed}/ordinary/{number}")
        yield Entry("ordinary", "ordinary", r.choice(_ORDINARY)(r), [])


def _model(r: random.Random) -> str:
    return r.choice(["SmolLM2-135M-Instruct", "Qwen3-8B", "gemma-3-12b-it"]) + r.choice(
        [".Q4_K_M.gguf", "-F16.gguf"]
    )


_ORDINARY: tuple[Callable[[random.Random], str], ...] = (
    lambda r: f"print_info: EOS token        = {r.randint(0, 9999)} '<|im_end|>'",
    lambda r: f"slot release: id 0 | n_tokens = {r.randint(1, 999)}, truncated = 0",
    lambda r: f'{{"max_tokens": {r.randint(1, 99)}, "bos_token": "<s>", "token_type": "bearer"}}',
    lambda r: f"{chars(r, 64, HEX)}  /models/{_model(r)}",
    lambda r: f"commit {chars(r, 40, HEX)} (HEAD -> master, tag: b{r.randint(4000, 9999)})",
    lambda r: f"sha256:{chars(r, 64, HEX)}",
    lambda r: f"version: {r.randint(4000, 9999)} ({chars(r, 8, HEX)})",
    lambda r: (
        f"driver 550.54.{r.randint(1, 99)}, CUDA 12.{r.randint(1, 9)}, libcublas.so.12.{r.randint(1, 9)}.4.1"
    ),
    lambda r: (
        f"{r.randint(10, 59)}.{r.randint(10, 59)}.{r.randint(100, 255)}.{r.randint(100, 255)} I srv  "
        f"update_slots: all slots are idle"
    ),
    lambda r: f"main: server is listening on http://127.0.0.1:{r.randint(1024, 65535)}",
    lambda r: f"listening on http://[::1]:{r.randint(1024, 65535)} and 0.0.0.0",
    lambda r: "warn: LLAMA_API_KEY environment variable is set, but will be overwritten by --api-key",
    lambda r: "--api-key KEY   API key to use for authentication (env: LLAMA_API_KEY)",
    lambda r: 'curl -H "Authorization: Bearer $LLAMA_API_KEY" http://localhost:8080/v1/models',
    lambda r: "password: [redacted], secret: ***, token: <hidden>",
    lambda r: f"tensor blk.{r.randint(0, 80)}.attn_k.weight q4_K, key_length = 128, key = attn_k",
    lambda r: f"{base64.b64encode(word(r).encode()).decode()} {r.randint(256, 99999)}",
    lambda r: (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] }}{% endfor %}{{ eos_token }}"
    ),
    lambda r: (
        f"pci 0000:{chars(r, 2, HEX)}:00.0: BAR 1: assigned "
        f"[mem 0x{chars(r, 12, HEX)}-0x{chars(r, 12, HEX)} 64bit pref]"
    ),
    lambda r: (
        f"| llama 8B Q4_K | 4.58 GiB | CUDA | 99 | tg128 | {r.randint(10, 99)}.{r.randint(10, 99)} ± 0.42 |"
    ),
    lambda r: f"numpy=={r.randint(1, 2)}.{r.randint(0, 30)}.0 --hash=sha256:{chars(r, 64, HEX)}",
    lambda r: f"/models/hub/models--ggml-org--m/snapshots/{chars(r, 40, HEX)}/{_model(r)}",
    lambda r: "git clone git@github.com:ggml-org/llama.cpp.git && systemctl status user@1000.service",
    lambda r: f'{{"id":"chatcmpl-{chars(r, 32)}","object":"chat.completion","model":"m"}}',
    lambda r: (
        f"#{r.randint(0, 9)}  0x00007f{chars(r, 10, HEX)} in std::vector<int>::push_back () from "
        f"/usr/lib/libggml.so"
    ),
    lambda r: "the api key is read from a file; no secret is configured; token bucket refilled",
    lambda r: (
        f"llama_kv_cache: size = {r.randint(1, 999)}.00 MiB ({r.randint(256, 9999)} cells), K (f16), V (f16)"
    ),
    lambda r: "python3 -m pip install --user -r requirements.txt && make -j8 PREFIX=/usr/local",
)
