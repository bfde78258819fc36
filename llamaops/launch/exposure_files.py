"""An nginx site and a systemd unit that do what was decided. Text only; nothing is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from llamaops.errors import UsageError
from llamaops.facts.exposure import Decisions
from llamaops.schema.shape import Shape

_WORD = re.compile(r"[A-Za-z0-9._~:/@+=,*\[\]-]+")
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")


class UnitRequest(Shape, frozen=True, kw_only=True):
    """What a unit starts."""

    program: str
    """The llama-server, as an absolute path."""
    model: str
    """The model, as an absolute path."""
    flags: tuple[str, ...] = ()
    """Further flags of llama-server."""
    devices: tuple[str, ...] = ()
    """Device nodes it may open, such as /dev/nvidia0 or char-drm; none: it computes on the CPU."""
    memory_max: str | None = None
    """Memory limit, such as 24G."""


def server_flags(decisions: Decisions, given: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that make a server which stands in front itself do what was decided.

    Raises: UsageError for a given flag that opens what was decided to be closed.
    """
    switches = (("--slots", decisions.slots), ("--metrics", decisions.metrics), ("--tools", decisions.tools))
    for flag, switch in switches:
        if flag in given and (switch is None or not switch.open):
            raise UsageError(f"{flag} opens what was decided to be closed", hint="decide it, or leave it out")
    flags: list[str] = []
    if "--no-slots" not in given and (decisions.slots is None or not decisions.slots.open):
        flags.append("--no-slots")
    if "--metrics" not in given and decisions.metrics is not None and decisions.metrics.open:
        flags.append("--metrics")
    if decisions.cors is not None and "--cors-origins" not in given and "*" not in decisions.cors.origins:
        # The server's own default is any origin; `localhost` is its word for pages of this machine only.
        flags += ["--cors-origins", ",".join(decisions.cors.origins) or "localhost"]
    return tuple(flags)


def nginx_site(decisions: Decisions) -> str:
    """Return an nginx site: TLS, a key required, rate limit, no buffering, and only the paths decided.

    Raises: UsageError where a decision is missing that the site needs, or cannot stand in the file.
    """
    return "\n".join(_site(decisions)) + "\n"


def _site(decisions: Decisions) -> Iterator[str]:
    bind, tls, limit, logging = decisions.bind, decisions.tls, decisions.rate_limit, decisions.logging
    if bind is None or tls is None or limit is None or logging is None or decisions.cors is None:
        raise UsageError("the site needs bind, tls, rate_limit, logging and cors decided")
    if tls.by != "proxy" or tls.certificate is None or tls.private_key is None or tls.server_name is None:
        raise UsageError(
            "the site needs tls by: proxy, with server_name, certificate and private_key",
            hint="`llamaops expose check` says what is missing",
        )
    host = f"[{bind.address}]" if ":" in bind.address else bind.address
    yield "# Made by `llamaops expose render nginx` from a decisions file; change that and render again."
    if limit.by == "proxy":
        rate = int(limit.requests_per_minute)
        yield f"limit_req_zone $binary_remote_addr zone=llama_server:1m rate={rate}r/m;"
    yield "# Neither query strings nor bodies: they can hold prompts."
    yield "log_format llama_server '$remote_addr [$time_iso8601] \"$request_method $uri\" $status'"
    yield "                        ' $body_bytes_sent $request_time';"
    yield "map $http_origin $llama_server_origin {"
    yield '    default "";'
    for origin in decisions.cors.origins:
        yield f"    {'~.' if origin == '*' else _quoted(origin)} $http_origin;"
    yield "}"
    yield "map $llama_server_origin $llama_server_headers {"
    yield '    "" "";'
    yield '    default "Authorization, Content-Type";'
    yield "}"
    yield "upstream llama_server {"
    yield f"    server {_word(host)}:{int(bind.port)};"
    yield "    keepalive 16;"
    yield "}"
    yield "server {"
    yield f"    listen {int(tls.port)} ssl;"
    yield f"    server_name {_word(tls.server_name)};"
    yield f"    ssl_certificate {_word(tls.certificate)};"
    yield f"    ssl_certificate_key {_word(tls.private_key)};"
    yield "    ssl_protocols TLSv1.2 TLSv1.3;"
    yield "    ssl_session_cache shared:llama_server_tls:1m;"
    yield "    server_tokens off;"
    yield f"    access_log {_word(logging.file)} llama_server;"
    yield "    client_max_body_size 16m;"
    yield "    add_header Access-Control-Allow-Origin $llama_server_origin always;"
    yield "    add_header Access-Control-Allow-Headers $llama_server_headers always;"
    yield "    add_header Vary Origin always;"
    yield "    add_header X-Content-Type-Options nosniff always;"
    for path in _paths(decisions):
        yield from _location(path, limited=limit.by == "proxy", burst=limit.burst)
    yield "    location / {"
    yield "        return 404;"
    yield "    }"
    yield "}"


def _paths(decisions: Decisions) -> list[str]:
    """Return the paths that are open: those decided, with /metrics and /slots only where they are."""
    closed = {
        path
        for path, switch in (
            ("/metrics", decisions.metrics), ("/slots", decisions.slots), ("/tools", decisions.tools),
        )
        if switch is None or not switch.open
    }  # fmt: skip
    opened = [path for path, switch in (("/metrics", decisions.metrics), ("/slots", decisions.slots))
              if switch is not None and switch.open]  # fmt: skip
    wanted = dict.fromkeys([*decisions.endpoints, *opened])
    return [path for path in wanted if path not in closed]


def _location(path: str, *, limited: bool, burst: int) -> Iterator[str]:
    if not _PATH.fullmatch(path):
        raise UsageError(f"{path!r} is no path that can stand in a site")
    yield f"    location = {path} {{"
    if path != "/health":
        yield "        if ($request_method = OPTIONS) {"
        yield "            return 204;"
        yield "        }"
        yield '        if ($http_authorization !~ "^Bearer .+") {'
        yield "            return 401;"
        yield "        }"
        if limited:
            yield f"        limit_req zone=llama_server burst={int(burst)} nodelay;"
            yield "        limit_req_status 429;"
    yield "        proxy_pass http://llama_server;"
    yield "        proxy_http_version 1.1;"
    yield '        proxy_set_header Connection "";'
    yield "        proxy_set_header Host $host;"
    yield "        proxy_set_header X-Forwarded-For $remote_addr;"
    yield "        proxy_hide_header Access-Control-Allow-Origin;"
    yield "        # Tokens go out one by one; a buffer would hold them back."
    yield "        proxy_buffering off;"
    yield "        proxy_cache off;"
    yield "        proxy_read_timeout 3600s;"
    yield "        proxy_connect_timeout 5s;"
    yield "    }"


def systemd_unit(decisions: Decisions, request: UnitRequest) -> str:
    """Return a hardened unit; the key comes by a credential and is in no variable and no argument.

    Raises: UsageError where a decision is missing that the unit needs.
    """
    return "\n".join(_unit(decisions, request)) + "\n"


def _unit(decisions: Decisions, request: UnitRequest) -> Iterator[str]:
    if decisions.bind is None or decisions.api_key is None:
        raise UsageError("the unit needs bind and api_key decided")
    for path in (request.program, request.model, decisions.api_key.file):
        if not path.startswith("/"):
            raise UsageError(f"{path} has to be an absolute path")
    local = decisions.bind.address.startswith(("127.", "::1", "localhost"))
    yield "# Made by `llamaops expose render systemd` from a decisions file; change that and render again."
    yield "[Unit]"
    yield "Description=llama-server"
    yield "Documentation=https://github.com/ggml-org/llama.cpp"
    yield "After=network.target"
    yield "StartLimitIntervalSec=300"
    yield "StartLimitBurst=5"
    yield ""
    yield "[Service]"
    yield "Type=exec"
    yield f"ExecStart={_command(decisions, request)}"
    yield f"LoadCredential=api-key:{_escaped(decisions.api_key.file)}"
    yield "Restart=on-failure"
    yield "RestartSec=5"
    yield "# A server with a waiting client does not leave on the first signal."
    yield "TimeoutStopSec=20"
    yield "KillMode=mixed"
    yield "Environment=GGML_NO_BACKTRACE=1"
    yield "UMask=0077"
    yield "# A core dump would hold prompts and keys."
    yield "LimitCORE=0"
    if request.memory_max is not None:
        yield f"MemoryMax={_word(request.memory_max)}"
    yield from _hardening(request, local=local)
    yield ""
    yield "[Install]"
    yield "WantedBy=multi-user.target"


def _hardening(request: UnitRequest, *, local: bool) -> Iterator[str]:
    yield from (
        "DynamicUser=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "AmbientCapabilities=",
        "ProtectSystem=strict", "ProtectHome=tmpfs", "PrivateTmp=yes", "PrivateUsers=yes",
        "ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes",
        "ProtectControlGroups=yes", "ProtectClock=yes", "ProtectHostname=yes", "ProtectProc=invisible",
        "RestrictNamespaces=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes", "LockPersonality=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "RemoveIPC=yes", "KeyringMode=private",
        "SystemCallArchitectures=native", "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged",
    )  # fmt: skip
    if local:
        yield "IPAddressDeny=any"
        yield "IPAddressAllow=localhost"
    for path in (request.program, request.model):
        if path.startswith(("/home/", "/root/", "/run/user/")):
            yield f"BindReadOnlyPaths={_escaped(path.rsplit('/', 1)[0])}"
    if request.devices:
        yield "DevicePolicy=closed"
        yield from (f"DeviceAllow={_word(device)} rw" for device in request.devices)
    else:
        yield "PrivateDevices=yes"
        yield "MemoryDenyWriteExecute=yes"


def _command(decisions: Decisions, request: UnitRequest) -> str:
    bind = decisions.bind
    if bind is None:
        raise UsageError("the unit needs bind decided")
    words = [request.program, "--model", request.model, "--host", bind.address, "--port", str(bind.port)]
    behind = decisions.tls is not None and decisions.tls.by == "proxy"
    without_cors = msgspec.structs.replace(decisions, cors=None) if behind else decisions
    words += server_flags(without_cors, request.flags)
    if decisions.tls is not None and decisions.tls.by == "server":
        if decisions.tls.certificate is None or decisions.tls.private_key is None:
            raise UsageError("tls by: server needs certificate and private_key")
        words += ["--ssl-cert-file", decisions.tls.certificate, "--ssl-key-file", decisions.tls.private_key]
    refused = next(
        (flag for flag in request.flags if flag.split("=")[0] in {"--api-key", "--host", "--port", "-m"}),
        None,
    )
    if refused is not None:
        raise UsageError(f"{refused} is decided already, or would show a secret")
    words += request.flags
    # %d is the folder of the credentials; it is the only specifier, so it is added after escaping.
    return " ".join([*(_quoted_unit(word) for word in words), "--api-key-file", "%d/api-key"])


def _quoted_unit(word: str) -> str:
    escaped = _escaped(word).replace("$", "$$")
    if re.search(r"[\s\"'\\;]", word):
        return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return escaped


def _escaped(text: str) -> str:
    if any(ord(character) < 32 for character in text):  # noqa: PLR2004 - control characters
        raise UsageError("a line break cannot stand in a unit")
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """Return a text that is one plain word in a configuration file.

    Raises: UsageError.
    """
    if not _WORD.fullmatch(text):
        raise UsageError(f"{text!r} cannot stand in a configuration file as it is")
    return text


def _quoted(text: str) -> str:
    return f'"{_word(text)}"'


def masked_file(text: str) -> Sequence[str]:
    """Return the lines of a unit or an environment file with the value of each variable masked."""
    return [_masked(line) for line in text.splitlines()]


def _masked(line: str) -> str:
    found = re.match(r"\s*(?:(?:Environment|PassEnvironment|SetCredential(?:Encrypted)?)\s*=|export\s)", line)
    if found:
        inner = re.sub(r"""(["']?[A-Za-z_][A-Za-z0-9_.-]*[=:]).*?(?=\s["']?[A-Za-z_][A-Za-z0-9_.-]*=|$)""",
                       r"\1<masked>", line[found.end() :])  # fmt: skip
        return line[: found.end()] + inner
    if re.match(
        r"[A-Z_][A-Z0-9_]*=", line
    ):  # a line of an environment file; a unit's own keys are mixed case
        return line.split("=", 1)[0] + "=<masked>"
    return line
