"""What was decided about who may reach a server, and what the files named there look like."""

from __future__ import annotations

import stat
from typing import Literal

from llamaops.facts.observe import observe
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Source, not_attempted
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

ENDPOINTS = (
    "/health", "/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/embeddings",
)  # fmt: skip
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Bind(Shape, frozen=True, kw_only=True):
    """Where the server itself listens."""

    address: str
    """Address; behind a proxy on the same machine, loopback."""
    port: int
    """Port."""


class ApiKey(Shape, frozen=True, kw_only=True):
    """How clients show that they may."""

    file: str
    """File with one key a line, readable by its owner only; a key is never on a command line."""


class Tls(Shape, frozen=True, kw_only=True):
    """Who encrypts."""

    by: Literal["proxy", "server", "none"]
    """The proxy, llama-server itself (a build with TLS), or nobody."""
    server_name: str | None = None
    """The name that clients use, as in the certificate."""
    port: int = 443
    """Port on which the proxy listens."""
    certificate: str | None = None
    """File with the certificate and its chain."""
    private_key: str | None = None
    """File with its private key."""
    why: str | None = None
    """Why nobody encrypts, where nobody does."""


class Firewall(Shape, frozen=True, kw_only=True):
    """Which machines reach the port at all."""

    rule: str
    """The rule in force, in words or as written."""


class Cors(Shape, frozen=True, kw_only=True):
    """Which web pages may ask from a browser."""

    origins: tuple[str, ...]
    """Origins such as https://app.example; an empty list is none."""
    why: str | None = None
    """Why any page may, where the list holds `*`."""


class RateLimit(Shape, frozen=True, kw_only=True):
    """How often one client may ask."""

    by: Literal["proxy", "none"]
    """Who limits; llama-server itself does not."""
    requests_per_minute: int = 60
    """Requests a minute for each client address."""
    burst: int = 10
    """Requests above the rate that are let through at once."""
    why: str | None = None
    """Why nobody limits, where nobody does."""


class Logging(Shape, frozen=True, kw_only=True):
    """What is written down about requests."""

    prompts: bool
    """Whether prompts or answers may be in a log."""
    keep_days: int
    """Days that logs are kept."""
    file: str = "/var/log/nginx/llama-server.access.log"
    """The proxy's access log."""
    why: str | None = None
    """Why prompts are logged, where they are."""


class Switch(Shape, frozen=True, kw_only=True):
    """Something that is open to clients or not."""

    open: bool
    """Whether clients reach it."""
    why: str | None = None
    """Why, where they do."""


class Decisions(Shape, frozen=True, kw_only=True):
    """A decisions file: what is missing was not decided."""

    exposure: Literal[1]
    """Version of this form."""
    bind: Bind | None = None
    """Where the server listens."""
    api_key: ApiKey | None = None
    """How clients show that they may."""
    tls: Tls | None = None
    """Who encrypts."""
    firewall: Firewall | None = None
    """Which machines reach it."""
    cors: Cors | None = None
    """Which web pages may ask."""
    rate_limit: RateLimit | None = None
    """How often a client may ask."""
    logging: Logging | None = None
    """What is written down."""
    tools: Switch | None = None
    """The server's built-in tools, which can read files and run commands on its machine."""
    metrics: Switch | None = None
    """GET /metrics: load and counts of all clients."""
    slots: Switch | None = None
    """GET /slots: what runs, on some builds with the prompts of others."""
    endpoints: tuple[str, ...] = ENDPOINTS
    """Paths that the proxy lets through; everything else is answered with 404."""


class SecretFile(Shape, frozen=True, kw_only=True):
    """A file that holds a secret, without its content."""

    mode: str
    """Its permissions in octal."""
    open_to_others: bool
    """Whether its group or anybody else may read or change it."""
    lines: int
    """Lines that are not empty."""
    shortest_line_bytes: int
    """Length of the shortest of them; a key of a few characters can be guessed."""


class ExposureFacts(Shape, frozen=True, kw_only=True):
    """The decisions, and what the files named there look like."""

    decisions: Decisions
    """What was decided."""
    key_file: Fact[SecretFile]
    """The key file."""
    private_key: Fact[SecretFile]
    """The certificate's private key."""


def collect_exposure(system: System, decisions: Decisions) -> ExposureFacts:
    """Look at the files that the decisions name; no key is kept."""
    key = decisions.api_key.file if decisions.api_key else None
    private = decisions.tls.private_key if decisions.tls else None
    return ExposureFacts(
        decisions=decisions,
        key_file=_secret(system, key) if key else not_attempted("no key file was decided"),
        private_key=_secret(system, private) if private else not_attempted("no private key is named"),
    )


def _secret(system: System, path: str) -> Fact[SecretFile]:
    def read() -> tuple[int, bytes]:
        return system.stat(path).st_mode, system.read_bytes(path, limit_bytes=64 * KIB)

    return observe(Source(kind="file", name=path), read=read, parse=lambda found: parse_secret(*found))


def parse_secret(mode: int, content: bytes) -> SecretFile:
    """Say what a secret's file looks like.

    Units: bytes. Source: permissions of stat(2); one key a line, as llama-server reads its key file.
    """
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    return SecretFile(
        mode=f"{stat.S_IMODE(mode):04o}",
        open_to_others=bool(mode & OTHERS),
        lines=len(lines),
        shortest_line_bytes=min((len(line) for line in lines), default=0),
    )
