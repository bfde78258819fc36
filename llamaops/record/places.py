"""Secrets known by their place: a variable, flag, header, member or key whose name says so.

A name is found by one of ANCHORS inside of it, read to both sides, and understood by `names.meaning`, so
that one piece of code serves environment dumps, command lines, JSON (also inside of JSON), YAML, TOML,
unit files, headers and queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from llamaops.record import names
from llamaops.record.shapes import boundary_before
from llamaops.record.spans import DEVICE, HOST, SECRET, USER, Span

ANCHORS = (
    "key", "token", "secret", "pass", "pwd", "credential", "auth", "psk", "cookie", "sig", "session",
    "sid", "otp", "jwt", "webhook", "hostname", "nodename", "computername", "fqdn", "servername", "uuid", "serial",
    "machine", "boot", "-hft", "kennwort", "user", "logname", "pin", "hwid", "guid",
)  # fmt: skip
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_LONGEST_NAME = 64
_LONGEST_VALUE = 8192
_LONG_VALUE = 512
_MOST_LONG_VALUES = 16  # in each stretch of a text as long as the longest value
_MOST_ESCAPED_QUOTES = 512

# Words that stand where a value could, and are none.
_NO_VALUES = frozenset(
    """null none nil true false undefined empty unset set missing required optional invalid valid unknown
    redacted hidden masked removed omitted key token password secret string str int bool file path value
    yes no on off is was are not and or for from in with to the a an by of via at if when must has have had
    should can could will would bearer basic digest argument option flag variable header environment
    authentication authorization authenticated unauthorized default disabled enabled provided expected
    given api_key apikey api-key changed rotated loaded present absent failed error incorrect wrong
    expired denied fname n tokens keys passwords secrets mismatch number text word words string bytes object anything something nothing""".split()
)
_MASKED = r"""(?xi) [*\u2022\u25cf.\#?_~=-]{2,} | x{3,} | \u2022{3,}.* | .*\*{3,}.* | <[^<>]*> | \[[^\[\]]*\] | \(.*\) | \{\{?.*
    | \\*\$\{[A-Za-z_]\w*(?:[:?-][^}]*)?\} | \\*\$\$?[A-Z_][A-Z0-9_]* | \$\(.*\)? | %[A-Za-z_]+% | %%?[sdv]
    | \.\.\. | -+ | !(?:secret|vault|ref|env)\b.* | env: .*"""
_PATH = (
    r"(?:~|\.{1,2})?/(?:etc|usr|var|home|run|opt|srv|root|mnt|data|models?|tmp|Users|proc|dev|workspace|app|secrets?|certs?)"
    r"(?:/.*)?|[A-Za-z]:\\.*|(?:~|\.{1,2})/.*|[\w./-]+\.(?:pem|key|crt|cer|txt|json|ya?ml|toml|env|conf|cfg|gguf|jinja|log|pub)"
)


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_places(text: str) -> Iterator[Span]:
    """Yield every value whose name tells that it is none of a reader's business."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length
        lower = "".join(c.lower() if c.isascii() else c for c in text)
    done: set[int] = set()
    long_values = _LongValues()
    for anchor in ANCHORS:
        at = lower.find(anchor)
        while at >= 0:
            start, end = _name_at(text, at, len(anchor))
            if start not in done:
                done.add(start)
                means = names.meaning(text[start:end])
                if means:
                    yield from _values(text, start, end, means, long_values)
            at = lower.find(anchor, max(end, at + 1))
    yield from _bearer(text, lower)
    yield from _logins(text, lower)


def _name_at(text: str, at: int, size: int) -> tuple[int, int]:
    left = text[max(0, at - _LONGEST_NAME) : at]
    start = at - (len(left) - len(left.rstrip(_NAME)))
    rest = text[at + size : at + size + _LONGEST_NAME]
    end = at + size + len(rest) - len(rest.lstrip(_NAME))
    while end > at + size and text[end - 1] in ".-":
        end -= 1
    if start >= 1 and text[start - 1] == "\\" and text[start] in "nrt" and start < at:
        start += 1  # an escaped end of line stands before it
    elif start >= 1 and text[start - 1] == "%" and start + 2 < at:
        start += 2
    return start, end


# Between a name and its value; the value may have a quote of its own before it.
_SIGN = r"(?:\\*[\"'`]|%22|%27)?\]?[ \t]{0,40}(?:=>|:=|==?|:(?!:)|%3[DdAa])[ \t]{0,40}"
_FLAG = r"(?:[ \t]{1,8}|=|\\*[\"'],[ \t]{0,8}(?=\\*[\"'])|\\*[\"'][ \t]{1,8}|\\n[ \t]{0,8}(?=[^-\s]))"
_LISTED = r"\\*[\"'],[ \t]{0,8}(?=\\*[\"'])"
_NAMED_VALUE = r"\\*[\"']?(?:,|\s|\\n){1,40}\\*[\"']?(?:value|Value|VALUE)\\*[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
_ELEMENT = r">(?=[^<>\s]{1,512}</)"


class _LongValues:
    """Bounds the work on long runs without a space, where every name has all of the rest for its value."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.cookie = range(0)
        """Where the last cookie stands: what it holds was read with it."""

    def add(self, start: int, end: int) -> None:
        """Count a value."""
        if end - start >= _LONG_VALUE:
            part = start // _LONGEST_VALUE
            self._seen[part] = self._seen.get(part, 0) + 1

    def full(self, at: int) -> bool:
        """Say whether enough long values were read in this part of the text."""
        return self._seen.get(at // _LONGEST_VALUE, 0) >= _MOST_LONG_VALUES


def _values(text: str, start: int, end: int, means: str, long_values: _LongValues) -> Iterator[Span]:
    """Yield the value or values that stand after a name."""
    name = text[start:end]
    match = _after_name(text, start, end, name)
    if match is None:
        return
    at = match.end()
    if "," in match[0] and not name.startswith("-") and _re(r"\\*[\"'][a-z_-]+\\*[\"']").match(text, at):
        return  # a list of names
    if long_values.full(at) or at in long_values.cookie:
        return
    if means in (names.AUTHORIZATION, names.COOKIE):
        found = list(_authorization(text, at) if means == names.AUTHORIZATION else _cookie(text, at, name))
        if found:
            long_values.add(at, found[-1].end)
            long_values.cookie = range(at, found[-1].end if means == names.COOKIE else at)
        yield from found
        return
    value_start, value_end = value_at(text, at, in_query=_in_query(text, start))
    long_values.add(value_start, value_end)
    value = text[value_start:value_end]
    if is_no_value(value) or (value_start == at and _is_prose_or_code(text, match[0], value, value_end)):
        return
    yield from _judged(text, name, means, value_start, value_end, value)


def _is_prose_or_code(text: str, sign: str, value: str, end: int) -> bool:
    """Say whether a value without quotes is a flag, an expression of a program, or the next word of a sentence."""
    if _re(r"--?[a-z]+(?:-[a-z]+)*").fullmatch(value):
        return True
    if _re(
        r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[\[(].*|(?:self|args|os|request|settings|config)\.[\w.]+|[a-z_]+(?:\.[a-z_]+)+"
    ).match(value):
        return True
    if not value.isalpha() or not value.islower():
        return False
    return (
        sign.rstrip(" \t").endswith(":") and sign[-1] in " \t" and _re(r" [a-z]").match(text, end) is not None
    )


def _after_name(text: str, start: int, end: int, name: str) -> re.Match[str] | None:
    flag = name.startswith("-") or (start > 0 and text[start - 1] == "-")
    patterns = [_SIGN]
    if flag:
        patterns.insert(0, _FLAG)
    patterns.append(_NAMED_VALUE)
    if "-" in name and not flag:
        patterns.append(_LISTED)
    if start > 0 and text[start - 1] == "<":
        patterns.append(_ELEMENT)
    if name == "password" and _re(r"\b(?:login|user|machine)\s+\S+\s{1,8}\Z").search(
        text[max(0, start - 160) : start]
    ):
        patterns.append(r"[ \t]{1,8}|\s{1,8}")
    for pattern in patterns:
        match = _re(pattern).match(text, end)
        if match is not None:
            return match
    return None


def _judged(text: str, name: str, means: str, start: int, end: int, value: str) -> Iterator[Span]:
    rule = (
        f"named-{means}" if means in (names.HOST_NAME, names.USER_NAME, names.DEVICE_ID) else "named-secret"
    )
    if means == names.HOST_NAME:
        if is_private_host(value):
            yield Span(start, start + len(_host_of(value)), HOST, rule, _host_of(value))
    elif means == names.USER_NAME:
        if value.lower() not in ORDINARY_USERS and _re(r"[\w.@+-]{2,64}").fullmatch(value):
            yield Span(start, end, USER, rule, value)
    elif means == names.DEVICE_ID:
        if len(value) >= 6 and _re(r"(?=.*\d)[\w.:-]+").fullmatch(value) and "." not in value:
            yield Span(start, end, DEVICE, rule, value)
    elif means == names.STRONG:
        if not _strong_is_ordinary(name, value):
            yield Span(start, end, SECRET, rule, value)
    elif looks_secret(value) or (
        _in_query(text, start - len(name) - 1) and len(value) >= 8 and not value.isdigit()
    ):
        yield Span(start, end, SECRET, rule, value)


def _strong_is_ordinary(name: str, value: str) -> bool:
    words = names.words_of(name)
    if words[-1] in ("key", "keys") and value.replace("_", "").isdigit() and len(value) < 12:
        return True
    if _re(r"--?[a-z]+(?:-[a-z]+)*").fullmatch(value):
        return True
    tells_file = words[-1].startswith(("key", "credential", "cred", "secret", "keys"))
    if _re(_PATH).fullmatch(value) and (
        tells_file or value.startswith(("/run/secrets", "/etc/", "/var/run/secrets"))
    ):
        return True
    return words[-1].startswith("token") and value.isdigit() and len(value) < 8


def looks_secret(value: str) -> bool:
    """Say whether a value looks like a key: long, of letters and digits, and nothing that one can read."""
    if len(value) < 16 or not _re(r"[\w+/=.~:%@!*#-]+").fullmatch(value):
        return False
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return not (
        _re(_PATH).fullmatch(value)
        or "://" in value
        or _re(r"[a-z]+\d{0,3}(?:[._/-]+[a-z]+\d{0,3})*").fullmatch(value)
    )


def names_a_file(value: str) -> bool:
    """Say whether a value is the path of a file, which may be told."""
    return _re(_PATH).fullmatch(value) is not None


def is_no_value(value: str) -> bool:
    """Say whether there is nothing to hide: empty, masked already, a variable, or a word of prose."""
    bare = value.strip().strip("\"'").rstrip(".,;:!?")
    if (
        not bare
        or bare.lower() in _NO_VALUES
        or (bare.isupper() and bare in ("KEY", "TOKEN", "PASSWORD", "SECRET", "FNAME"))
    ):
        return True
    return _re(_MASKED).fullmatch(bare) is not None or bare.startswith("-----BEGIN")


def _in_query(text: str, start: int) -> bool:
    return start > 0 and (
        text[start - 1] in "?&" or text[max(0, start - 3) : start].lower() in ("%3f", "%26")
    )


_OPEN = r"'\"'\"'|'\\''|\\*[\"'`]|%22|%27"
_BARE = r"(?:[^\s\"'`\\;<\0]|\\(?![nrt\"'`\\])|;(?=\S)|<(?![\w-]+>|/)){1,4096}+"
_BARE_IN_QUERY = r"[^\s\"'`\\;<>&#\0]{1,4096}+"


def value_at(text: str, at: int, *, in_query: bool = False) -> tuple[int, int]:
    """Return where the value that begins at a place starts and ends, its quotes not counted."""
    opening = _re(_OPEN).match(text, at)
    if opening is not None:
        start = opening.end()
        end = _closing(text, start, opening[0])
        if end is not None:
            return start, end
        at = start
    match = _re(_BARE_IN_QUERY if in_query else _BARE).match(text, at)
    if match is None:
        return at, at
    value = match[0]
    cut = _re(r",(?:[\"'\s]|$)|,(?=[\w-]+[=:])").search(value)
    if cut is not None:
        value = value[: cut.start()]
    while value and (value[-1] in ".,:" or (value[-1] in ")]}" and not any(c in value for c in "([{"))):
        value = value[:-1]
    return at, at + len(value)


def _closing(text: str, start: int, quote: str) -> int | None:
    """Return where a quoted value ends: at the same quote, escaped as often as the one that opened it."""
    limit = min(len(text), start + _LONGEST_VALUE)
    if quote in ("'\"'\"'", "'\\''") or quote.startswith("%"):
        end = text.find(quote, start, limit)
        return end if end >= 0 else None
    mark, depth = quote[-1], len(quote) - 1
    end = text.find(mark, start, limit)
    for _quote in range(_MOST_ESCAPED_QUOTES):
        if end < 0:
            break
        before = text[max(start, end - 64) : end]
        escapes = len(before) - len(before.rstrip("\\"))
        if escapes <= depth or (depth == 0 and escapes % 2 == 0):
            # One that is escaped less closes something further out, and this value with it.
            return end - escapes if escapes <= depth else end
        end = text.find(mark, end + 1, limit)
    return None


_SCHEMES = (
    r"(?i:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|digest|hawk|oauth|aws4-hmac-sha256|signature)"
)


def _authorization(text: str, at: int) -> Iterator[Span]:
    opening = _re(_OPEN).match(text, at)
    at = opening.end() if opening else at
    scheme = _re(rf"({_SCHEMES})(?:[ \t]+|%20|\+)").match(text, at)
    if scheme is not None and scheme[1].lower() in (
        "digest",
        "hawk",
        "oauth",
        "aws4-hmac-sha256",
        "signature",
    ):
        rest = _re(r"[^\n\\]{1,4096}").match(text, scheme.end())
        if rest is not None and "=" in rest[0] and not is_no_value(rest[0]):
            end = rest.end() - (len(rest[0]) - len(rest[0].rstrip("'\" \t\r}])")))
            yield Span(scheme.end(), end, SECRET, "authorization", text[scheme.end() : end])
        return
    start = scheme.end() if scheme else at
    match = _re(r"[^\s\"'`\\,;<>]{1,8192}").match(text, start)
    if match is None or is_no_value(match[0]):
        return
    follows = text[match.end() : match.end() + 2]
    if scheme is None and follows[:1] == " " and follows.strip() and not looks_secret(match[0]):
        return  # prose: "authorization: failed for this route"
    yield Span(start, match.end(), SECRET, "authorization", match[0])


def _bearer(text: str, lower: str) -> Iterator[Span]:
    """Yield tokens after the word bearer alone."""
    at = lower.find("bearer")
    while at >= 0:
        match = _re(r"[: \t]{1,4}([A-Za-z0-9._~+/=-]{12,8192})").match(text, at + 6)
        if (
            match
            and (any(c.isdigit() for c in match[1]) or len(match[1]) >= 24)
            and not is_no_value(match[1])
        ):
            yield Span(match.start(1), match.end(1), SECRET, "authorization", match[1])
        at = lower.find("bearer", at + 6)


def _cookie(text: str, at: int, name: str) -> Iterator[Span]:
    opening = _re(_OPEN).match(text, at)
    start = opening.end() if opening else at
    first_only = name.lower() == "set-cookie"
    match = _re(r"[^\n\"'\\<>;]{1,4096}" if first_only else r"[^\n\"'\\<>]{1,4096}").match(text, start)
    if match is None:
        return
    for pair in _re(r"([^\s=;]{1,128})=([^;\s]{4,4096})").finditer(match[0]):
        if not is_no_value(pair[2]):
            yield Span(start + pair.start(2), start + pair.end(2), SECRET, "cookie", pair[2])


_USER_AND_PASSWORD = r"(?:-u|--user|--proxy-user|-U|--http-user|--auth|-a)(?:=|[ \t]{1,4}|\\*[\"'],[ \t]?)?"


def _logins(text: str, lower: str) -> Iterator[Span]:
    """Yield passwords that programs take by options without telling names."""
    for program, options in _PROGRAMS.items():
        at = lower.find(program)
        while at >= 0:
            line_end = text.find("\n", at, at + 2048)
            end = line_end if line_end >= 0 else min(len(text), at + 2048)
            if boundary_before(text, at):
                for finder in options:
                    yield from finder(text, at + len(program), end)
                at = lower.find(program, end)
            else:
                at = lower.find(program, at + len(program))


def _user_colon_password(text: str, at: int, end: int) -> Iterator[Span]:
    for match in _re(r"(?<![\w-])" + _USER_AND_PASSWORD + r"(?=[^\s-])").finditer(text, at, end):
        start, stop = value_at(text, match.end())
        user, sign, password = text[start:stop].partition(":")
        if sign and password and not is_no_value(password) and not (user.isdigit() and password.isdigit()):
            if user.startswith(("http", "/")) or password.startswith("//"):
                continue
            yield Span(stop - len(password), stop, SECRET, "login", password)


def _option(pattern: str) -> Callable[[str, int, int], Iterator[Span]]:
    def find(text: str, at: int, end: int) -> Iterator[Span]:
        for match in _re(r"(?<![\w-])" + pattern).finditer(text, at, end):
            start, stop = value_at(text, match.end())
            if not is_no_value(text[start:stop]):
                yield Span(start, stop, SECRET, "login", text[start:stop])

    return find


_SEPARATE = r"(?:[ \t]{1,4}|\\*[\"'],[ \t]?)(?=[^\s-])"
_PROGRAMS: dict[str, tuple[Callable[[str, int, int], Iterator[Span]], ...]] = {
    "curl": (_user_colon_password,),
    "wget": (_user_colon_password,),
    "http ": (_user_colon_password,),
    "https ": (_user_colon_password,),
    "mysql": (_option(r"-p(?=[^\s=])"),),
    "mariadb": (_option(r"-p(?=[^\s=])"),),
    "mysqldump": (_option(r"-p(?=[^\s=])"),),
    "sshpass": (_option(r"-p[ \t]{0,4}(?=\S)"),),
    "redis-cli": (_option("-a" + _SEPARATE),),
    "docker login": (_option("-p" + _SEPARATE),),
    "podman login": (_option("-p" + _SEPARATE),),
    "helm registry login": (_option("-p" + _SEPARATE),),
    "smbclient": (_option(r"(?:-U|--user)[ =][^\s%]{1,64}%(?=\S)"),),
    "openssl": (_option(r"(?:-passin|-passout|-pass)[ \t]+pass:(?=\S)"), _option("-k" + _SEPARATE)),
    "ldapsearch": (_option("-w" + _SEPARATE),),
    "ipmitool": (_option("-P" + _SEPARATE),),
    "mosquitto": (_option("-P" + _SEPARATE),),
    "rabbitmqadmin": (_option("-p" + _SEPARATE),),
}  # fmt: skip

ORDINARY_USERS = frozenset(
    """root llama ollama user users nobody daemon bin sys www-data ubuntu debian docker git admin runner node app
    server service system default guest test linuxbrew shared public all host main model models gpu cpu
    localhost local none null nvidia vllm llm inference worker build ci jenkins postgres redis mysql nginx
    systemd-network messagebus sshd me you name username administrator public client http https api web
    assistant tool token tokens key""".split()
)
ORDINARY_HOSTS = frozenset(
    """localhost localhost.localdomain ip6-localhost host server node gpu cpu llama ollama llama-server
    llama.cpp main model models ubuntu debian fedora alpine linux darwin windows localhost4 localhost6
    docker container host.docker.internal gateway.docker.internal metadata.google.internal unknown none null
    true false default local lan home internal router proxy api web app db redis postgres mysql nginx
    version kernel name user root inference vllm llm client worker hostname broadcasthost yes no on off to and or is at in for of the a
    example.com huggingface.co hf.co github.com api.openai.com ghcr.io docker.io pypi.org static transient""".split()
)


def _host_of(value: str) -> str:
    return value.split(",")[0].split("/")[0].split(":")[0].rstrip(".")


def is_private_host(value: str) -> bool:
    """Say whether a value is the name of a machine of somebody, and no address or well-known word."""
    host = _host_of(value)
    if host.lower() in ORDINARY_HOSTS or host.lower().startswith("localhost") or len(host) < 2:
        return False
    return (
        any(c.isalpha() for c in host)
        and len(host) <= 253
        and _re(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*").fullmatch(host) is not None
    )
