"""Find names of machines, by the suffix of a private network or by their place."""

# ruff: noqa: SIM905 - words read better one after the other

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llamaops.record.marks import line_starts, lowered, matches, places
from llamaops.record.spans import HOST, Span


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


ORDINARY_HOSTS = frozenset(
    """localhost localhost.localdomain ip6-localhost host server node gpu cpu llama ollama llama-server
    llama.cpp main model models ubuntu debian fedora alpine linux darwin windows localhost4 localhost6
    docker container host.docker.internal gateway.docker.internal metadata.google.internal unknown none null
    true false default local lan home internal router proxy api web app db redis postgres mysql nginx
    version kernel name user root inference vllm llm client worker hostname broadcasthost yes no
    on off to and or is at in for of the a
    example.com huggingface.co hf.co github.com api.openai.com ghcr.io docker.io pypi.org static
    transient""".split()
)


def host_of(value: str) -> str:
    """Return the host of `host:port`, of the first of a list, or of `host/path`."""
    return value.split(",", maxsplit=1)[0].split("/", maxsplit=1)[0].split(":", maxsplit=1)[0].rstrip(".")


def is_private_host(value: str) -> bool:
    """Say whether a value is the name of a machine of somebody, and no address or well-known word."""
    host = host_of(value)
    if host.lower() in ORDINARY_HOSTS or host.lower().startswith("localhost") or len(host) < 2:
        return False
    return (
        any(c.isalpha() for c in host)
        and len(host) <= 253
        and _re(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*").fullmatch(host) is not None
    )


_SUFFIXES = (
    ".internal",
    ".local",
    ".lan",
    ".corp",
    ".intranet",
    ".home.arpa",
    ".localdomain",
    ".private",
    ".fritz.box",
    ".ts.net",
    ".home",
    ".priv",
    ".domain",
    ".cluster",
)
_HOST_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."
# What a pattern begins with, in lower case, and the pattern.
_HOST_MARKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("linux ",), r"\bLinux ((?!version\b)[A-Za-z0-9][\w.-]{0,127}) \d{1,2}\.\d{1,3}\.\d"),
    (
        ("darwin ", "freebsd ", "openbsd ", "netbsd "),
        r"\b(?:Darwin|FreeBSD|OpenBSD|NetBSD) ([A-Za-z0-9][\w.-]{0,127}) \d{1,2}\.\d",
    ),
    (("$ hostname",), r"(?m)^\$ hostname(?: -[a-z])?\n([A-Za-z0-9][\w.-]{0,127})$"),
    (
        ("--rpc", "llama_arg_rpc"),
        r"(?:--rpc|LLAMA_ARG_RPC)(?:[ \t]{1,8}|=|[\"'],?[ \t]{0,4}[\"']?|: ?[\"']?)([\w.:,-]{1,512})",
    ),
    (
        ("--host", "--bind", "--listen"),
        (
            r"(?<![\w-])--(?:host|hostname|bind|listen)(?:[ \t]{1,8}|=|[\"'],[ \t]{0,4}[\"'])"
            r"([A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,6})"
        ),
    ),
    (("rpc",), r"\bRPC\d+ {0,4}: ([A-Za-z0-9][\w.-]{0,127})(?=:\d)"),
    (
        (
            "resolv",
            "getaddrinfo ",
            "lookup ",
            "ping ",
            "connect to ",
            "connecting to ",
            "connected to ",
            "traceroute to ",
            "no route to ",
            "reach ",
        ),
        (
            r"(?i)\b(?:resolv\w+|getaddrinfo|lookup|ping|connect(?:ing|ed)? to|traceroute to|no route to"
            r"|reach) (?:host )?[\"']?([A-Za-z0-9][\w-]{0,62}-?\d[\w-]{0,20}(?:\.[\w-]{1,63}){0,6})"
            r"(?=[\s:\"',]|$)"
        ),
    ),
)
_LOG_LINES = (
    (
        r"(?<!\w)[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([A-Za-z0-9][\w.-]{0,127}) [A-Za-z_][\w./@()"
        r"-]{0,63}(?:\[\d+\])?:"
    ),
    (
        r"(?<!\w)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d) ([A-Za-z0-9][\w.-]{0,127})"
        r" [A-Za-z_][\w./@()-]{0,63}(?:\[\d+\])?:"
    ),
)
# Of each of these: how far into it the first colon of the time is, and what stands before the hour.
_LOG_TIMES = ((9, " "), (13, "T"))
_HEADER_INSIDE = (
    r"(?i)(?<=[ \t])(?:host|x-forwarded-host|hostname):[ \t]{1,8}((?=[\w.-]*\d)[A-Za-z][\w.-]{1,127})"
    r"(?=[:\s\"'\\]|$)"
)
_HOST_LINE = (
    r"(?im)^[ \t]*(?:static |transient |pretty )?host ?name[ \t]{0,30}:[ \t]{1,30}([A-Za-z0-9][\w.-]{0,127})"
)
_HEADER = (
    r"(?im)(?:^|[\"'])(?:host|x-forwarded-host|x-forwarded-server)[\"']?:[ "
    r"\t]{0,8}[\"']?([A-Za-z0-9][\w.-]{0,127})(?=[:\"'\r\n]|$)"
)


def _at_marks(text: str, lower: str) -> Iterator[re.Match[str]]:
    for marks, pattern in _HOST_MARKS:
        starts = list(places(lower, *marks))
        if starts:
            yield from matches(_re(pattern), text, starts)


def _in_log_lines(text: str, _lower: str) -> Iterator[re.Match[str]]:
    times = [match.start() for match in _re(r":(?=\d\d:\d\d)").finditer(text)]
    if times:
        for pattern, (before, sign) in zip(_LOG_LINES, _LOG_TIMES, strict=True):
            if starts := [at - before for at in times if at >= before and text[at - 3] == sign]:
                yield from matches(_re(pattern), text, starts)


def _in_headers(text: str, lower: str) -> Iterator[re.Match[str]]:
    names = list(places(lower, "hostname", "host name"))
    if names:
        yield from matches(_re(_HOST_LINE), text, line_starts(text, names))
    names = [at for at in places(lower, "host", "x-forwarded-") if _ends_name(lower, at)]
    if names:
        yield from matches(_re(_HEADER), text, [max(0, at - before) for at in names for before in (0, 1)])
        yield from matches(_re(_HEADER_INSIDE), text, names)


def _ends_name(lower: str, at: int) -> bool:
    """Say whether a colon follows soon, as it does in a header."""
    return ":" in lower[at : at + 24]


def find_hosts(text: str) -> Iterator[Span]:
    """Yield names of machines."""
    lower = lowered(text)
    for suffix in _SUFFIXES:
        at = lower.find(suffix)
        while at >= 0:
            end = at + len(suffix)
            left = text[max(0, at - 128) : at]
            name = left[len(left.rstrip(_HOST_LETTERS)) :]
            name = _after_escape(left, name).lstrip(".-")
            if (
                name
                and _is_host_end(text, end, suffix)
                and _is_host_start(text, at - len(name))
                and is_private_host(name + suffix)
            ):
                yield Span(at - len(name), end, HOST, "host-name", text[at - len(name) : end])
            at = lower.find(suffix, end)
    for find in (_at_marks, _in_log_lines, _in_headers):
        for match in find(text, lower):
            yield from _listed_hosts(match)
    yield from _url_hosts(text)


def _listed_hosts(match: re.Match[str]) -> Iterator[Span]:
    at = match.start(1)
    for item in match[1].split(","):
        host = item.split(":")[0].rstrip(".")
        if _names_a_machine(item, match[0]) and not _is_well_known(host):
            yield Span(at, at + len(host), HOST, "host-place", host)
        at += len(item) + 1


def _names_a_machine(item: str, around: str) -> bool:
    """Say whether a word is the name of a machine; after a flag, where help has prose, it needs a sign."""
    host = item.split(":", maxsplit=1)[0].rstrip(".")
    if not is_private_host(host) or host.replace(".", "").isdigit():
        return False
    return not around.startswith("-") or ":" in item or any(c.isdigit() or c in "-." for c in host)


def _url_hosts(text: str) -> Iterator[Span]:
    """Yield hosts of URLs that are names of machines in a private network: one label, with a digit."""
    for match in _re(r"://(?:[^\s/@\"'<>]{1,256}@)?([A-Za-z][\w-]{1,62})(?=[:/?#\s\"']|$)").finditer(text):
        host = match[1]
        if any(c.isdigit() for c in host) and is_private_host(host):
            yield Span(match.start(1), match.end(1), HOST, "host-place", host)


def _is_well_known(host: str) -> bool:
    """Say whether a name is of the public network: such a name is no secret of the operator's network."""
    return "." in host and host.rsplit(".", 1)[1].lower() in (
        "co",
        "com",
        "org",
        "net",
        "io",
        "dev",
        "ai",
        "gov",
        "edu",
    )


def _after_escape(left: str, name: str) -> str:
    rest = left[: len(left) - len(name)]
    if rest.endswith("\\") and name[:1] in ("n", "r", "t"):
        return name[1:]
    if rest.endswith("%") and len(name) > 2:
        return name[2:]
    return name


def _is_host_start(text: str, start: int) -> bool:
    return text[start - 1 : start] not in ("_", "~", "$") if start else True


def _is_host_end(text: str, end: int, suffix: str) -> bool:
    after = text[end : end + 2]
    if after[:1].isalnum() or after[:1] in ("_", "-", "("):
        return False
    if after[:1] == "." and after[1:].isalnum():
        return suffix == ".cluster" and text.startswith(".local", end)
    return suffix not in (".home", ".domain", ".private", ".cluster", ".priv") or after[:1] in (":", "")
