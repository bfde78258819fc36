"""Identifiers of people and machines: URLs with logins, mail addresses, home folders, hosts, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from llamaops.record.marks import line_starts, lowered, matches, places
from llamaops.record.places import ORDINARY_USERS, is_no_value, is_private_host, looks_secret
from llamaops.record.shapes import boundary_before
from llamaops.record.spans import ADDRESS, DEVICE, EMAIL, HOST, SECRET, USER, Span


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_identifiers(text: str) -> Iterator[Span]:
    """Yield everything that names a person, a machine or an address."""
    if "@" in text or "%40" in text:
        yield from _url_logins(text)
        yield from _mail(text)
        yield from _at_hosts(text)
    yield from _homes(text)
    yield from _ipv4(text)
    if ":" in text:
        yield from _ipv6(text)
    yield from _mac(text)
    yield from _hosts(text)
    yield from _owners(text)


# ------------------------------------------------------------------------------------------------- URLs

_NO_LOGINS = frozenset("git hg svn x-access-token oauth2 oauth token __token__ user username".split())
_SCHEME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"


def _url_logins(text: str) -> Iterator[Span]:
    for match in _re(r":(?:\\*/){2}|%3[Aa]%2[Ff]%2[Ff]").finditer(text):
        start = match.end()
        left = text[max(0, match.start() - 24) : match.start()]
        scheme = left[len(left.rstrip(_SCHEME)) :].lower()
        end = _login_end(text, start, encoded=match[0][0] == "%")
        if end is not None and scheme:
            yield from _login(text, scheme, start, end)


def _login_end(text: str, start: int, *, encoded: bool) -> int | None:
    """Return where the `@` after a login stands."""
    if encoded:
        match = _re(r"((?:(?!%40|%2[Ff])[^\s\"'<>&#]){0,512}?)(?:%40|@)").match(text, start)
        return match.end(1) if match else None
    authority = _re(r"[^\s/?#\"'<>\\`\0]{0,1024}").match(text, start)
    if authority is None:
        return None
    sign = authority[0].rfind("@")
    if sign >= 0:
        return start + sign
    # A password with a raw slash, hash or question mark, which no URL may have and people write.
    match = _re(
        r"[^\s/?#\"'<>\\:@]{0,64}:(?!\d{1,5}[/?#])[^\s\"'<>\\`@]{1,128}(?=@[\w.-]+(?:[:/?#\s]|$))"
    ).match(text, start)
    return match.end() if match else None


def _login(text: str, scheme: str, start: int, end: int) -> Iterator[Span]:
    login = text[start:end]
    sign = _re(":|%3[Aa]").search(login)
    user = login[: sign.start()] if sign else login
    if sign:
        password = login[sign.end() :]
        if not is_no_value(password):
            yield Span(start + sign.end(), end, SECRET, "url-password", password)
        if looks_secret(user):
            yield Span(start, start + len(user), SECRET, "url-password", user)
            return
    elif scheme.startswith("http") and looks_secret(user):
        yield Span(start, end, SECRET, "url-password", login)
        return
    if (
        user
        and user.lower() not in _NO_LOGINS
        and user.lower() not in ORDINARY_USERS
        and not is_no_value(user)
    ):
        yield Span(start, start + len(user), USER, "url-user", user)


# ------------------------------------------------------------------------------------------------- mail

_NO_TOP_LEVEL = frozenset(
    """service socket target timer slice scope mount path device swap automount gguf so py md txt json yaml yml toml
    cpp c h hpp cu js ts png jpg svg html css log conf cfg bin exe dll zip gz tar whl lock sh internal_call
    weight bias safetensors jinja""".split()
)
_KEPT_MAIL = (
    "git@github.com",
    "git@gitlab.com",
    "git@hf.co",
    "git@bitbucket.org",
    "git@huggingface.co",
    "git@ssh.github.com",
)
_MAIL_END = r"(?:@|%40|\\u0040|\\x40)(?:[A-Za-z0-9-]{1,63}\.){1,8}([A-Za-z]{2,24})(?![A-Za-z0-9-])"
_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"


def _mail(text: str) -> Iterator[Span]:
    for match in _re(_MAIL_END).finditer(text):
        before = text[max(0, match.start() - 96) : match.start()]
        bare = before.rstrip("\\") if text[match.start()] == "\\" else before
        local = _without_escape(bare, bare[len(bare.rstrip(_LOCAL)) :])
        start = match.start() - (len(before) - len(bare)) - len(local)
        address = text[start : match.end()]
        if not local or match[1].lower() in _NO_TOP_LEVEL:
            continue
        if address.lower() in _KEPT_MAIL or _in_authority(text, start):
            continue
        yield Span(start, match.end(), EMAIL, "e-mail", address)


def _in_authority(text: str, at: int) -> bool:
    """Say whether a place is inside of the login of a URL, where the at sign means something else."""
    scheme = text.rfind("//", max(0, at - 256), at)
    return scheme >= 0 and _re(r"[^\s/\"'<>]*").fullmatch(text, scheme + 2, at) is not None


def _without_escape(before: str, local: str) -> str:
    """Take off what belongs to an escape before the local part, such as the n of an escaped line end."""
    rest = before[: len(before) - len(local)]
    if rest.endswith("\\") and local[:1] in ("n", "r", "t") and len(local) > 1:
        local = local[1:]
    while (match := _re(r"%(?!2[Bb])[0-9A-Fa-f]{2}").match(local)) is not None:
        local = local[match.end() :]
    cut = max((m.end() for m in _re(r"%(?!2[BbEe5])[0-9A-Fa-f]{2}").finditer(local)), default=0)
    return local[cut:].lstrip(".-")


_PROMPT = r"(?m)^[\[(]?(?:\([\w.-]{1,40}\) )?([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w.-]{0,127})(?=[: ][~/\w][^\n]{0,200}?[$#%>])"
_SSH = r"\b(?:ssh|scp|sftp|rsync|mosh|sshfs|autossh|ssh-copy-id)\b[^\n@]{0,200}?[\s\"']([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w.-]{0,127})"
_AT_HOST = r"(?<![\w.@/-])([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,6})(?=:[~/]|'s password)"
_PUBLIC_KEY = r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w+|sk-\w+@openssh\.com) [A-Za-z0-9+/=]{40,2048} ([\w.+-]{1,64})@([\w.-]{1,128})"


def _at_hosts(text: str) -> Iterator[Span]:
    """Yield user and host of prompts, of ssh and its relatives, and of the comments of public keys."""
    signs = list(places(text, "@"))
    for pattern, starts in (
        (_PROMPT, line_starts(text, signs)),
        (_SSH, places(text, "ssh", "scp", "sftp", "rsync", "mosh", "autossh")),
        (_AT_HOST, (_name_start(text, sign) for sign in signs)),
        (_PUBLIC_KEY, places(text, "ssh-rsa ", "ssh-ed25519 ", "ssh-dss ", "ecdsa-sha2-", "sk-")),
    ):
        for match in matches(_re(pattern), text, starts):
            user, host = match[1], match[2]
            if user.lower() == "git":
                continue
            if user.lower() not in ORDINARY_USERS:
                yield Span(match.start(1), match.end(1), USER, "user-at-host", user)
            if is_private_host(host):
                yield Span(
                    match.start(2),
                    match.start(2) + len(host.rstrip(".")),
                    HOST,
                    "user-at-host",
                    host.rstrip("."),
                )


def _name_start(text: str, sign: int) -> int:
    """Return where the name that ends before an `@` begins."""
    at = sign
    while at > 0 and sign - at < 65 and (text[at - 1].isalnum() or text[at - 1] in "_.-"):
        at -= 1
    return at


# ------------------------------------------------------------------------------------------------ homes

_NO_HOMES = frozenset(
    ("linuxbrew", "shared", "public", "default", "all", "user", "username", "you", "user_name", "me")
)
_HOME = (
    r"(?:/|%2[Ff]|\\/)(?:home|Users|export/home|var/home)(?:/|%2[Ff]|\\/)"
    r"|[A-Za-z](?::|%3[Aa])(?:\\+|/|%5[Cc])(?:Users|Documents and Settings)(?:\\+|/|%5[Cc])"
    r"|\\+wsl(?:\.localhost|\$)\\+\w{1,40}\\+home\\+"
)


def _homes(text: str) -> Iterator[Span]:
    if "home" not in text and "Users" not in text and "Settings" not in text:
        return
    for match in _re(_HOME).finditer(text):
        name = _re(r"(?:[\w.@+~-]|%(?!2[Ff]|5[Cc]|22|27|20|0)[0-9A-Fa-f]{2}){1,64}").match(text, match.end())
        if name is None:
            continue
        user = name[0].rstrip(".")
        before = text[max(0, match.start() - 1) : match.start()]
        if (
            not user
            or user.lower() in _NO_HOMES
            or (before.isalnum() and text[match.start()] in "/%" and _inside(text, match.start()))
        ):
            continue
        yield Span(match.end(), match.end() + len(user), USER, "home-folder", user)


def _inside(text: str, at: int) -> bool:
    """Say whether a path like x/home/y is a relative one: nothing before it that ends a word or an escape."""
    before = text[max(0, at - 3) : at]
    if len(before) >= 2 and before[-2] == "\\":
        return False
    if len(before) == 3 and before[0] == "%":
        return False
    left = text[max(0, at - 200) : at]
    word = left[len(left.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")) :]
    return "/" not in word  # /srv/export/home/y is one; docs/home/y is none


# -------------------------------------------------------------------------------------------- addresses

_VERSIONS = r"(?i)(?:version|driver|release|firmware|vbios|bios|cuda|rocm|cudnn|cublas|nccl|toolkit|build|glibc|gcc|clang|kernel|runtime|api|level|v|rev|tag|==|>=|~=|lib\w*)[\"']?[ \t:=/-]{0,3}\Z"
_PRODUCT = r"(?:^|[\s(\"'])[A-Za-z][\w.+-]*/\Z"


def _ipv4(text: str) -> Iterator[Span]:
    dots = (match.start() for match in _re(r"\.(?=\d{1,3}\.\d{1,3}\.\d)").finditer(text))
    for match in matches(
        _re(r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"), text, (_number_start(text, dot) for dot in dots)
    ):
        start, end = match.span()
        if not _stands_alone(text, start, end) or not _is_host_address(match[0]):
            continue
        if _re(r" [A-Z] ").match(text, end):
            continue  # llama.cpp's clock: minutes, seconds, thousandths, millionths
        before = text[max(0, start - 24) : start]
        if _re(r"-[A-Za-z]").match(text, end) and not _is_private(match[0]):
            continue  # the release of a kernel
        if _re(_VERSIONS).search(before) or (_re(_PRODUCT).search(before) and not _is_private(match[0])):
            continue
        yield Span(start, end, ADDRESS, "ip-address", match[0])
    if "ip-" in text:
        for match in _re(r"\bip-((?:\d{1,3}-){3}\d{1,3})\b").finditer(text):
            yield Span(match.start(), match.end(), HOST, "ip-address", match[0])


def _number_start(text: str, dot: int) -> int:
    """Return where a number of at most three digits before a dot begins."""
    at = dot
    while at > 0 and dot - at < 3 and text[at - 1].isdecimal():
        at -= 1
    return at


def _stands_alone(text: str, start: int, end: int) -> bool:
    if start and (text[start - 1] == "." or not boundary_before(text, start)) and text[start - 1] != "_":
        return False
    if start >= 2 and text[start - 1] == "-" and text[start - 2].isalnum() and text[end : end + 1] == "-":
        return False
    after = text[end : end + 2]
    if after[:1].isalpha() and after[:1] != "\\":
        return False
    return not (after[:1].isdigit() or (after[:1] == "." and after[1:].isdigit()))


def _is_host_address(address: str) -> bool:
    parts = address.split(".")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return False
    numbers = [int(part) for part in parts]
    if any(
        number > 255 or (part[0] == "0" and len(part) > 1)
        for number, part in zip(numbers, parts, strict=True)
    ):
        return False
    return not (
        numbers[0] in (0, 127, 255) or address in ("169.254.169.254", "1.2.3.4") or numbers[1:] == [0, 0, 0]
    )


def _is_private(address: str) -> bool:
    first, second = (int(part) for part in address.split(".")[:2])
    return first == 10 or (first, second) == (192, 168) or (first == 172 and 16 <= second <= 31)


def _ipv6(text: str) -> Iterator[Span]:
    pattern = r"(?i)(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|[23][0-9a-f]{3}|64:ff9b|::ffff):[0-9a-f:.]{2,45}(?:%[\w.-]{1,16})?|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
    for match in _in_lines(_re(pattern), text, lambda line: "::" in line or line.count(":") >= 7):
        start, end = match.span()
        address = match[0].split("%")[0].rstrip(":.") if not match[0].endswith("::") else match[0]
        mapped = address.rpartition(":")[2] if "." in address else ""
        if (
            not boundary_before(text, start)
            or text[start - 1 : start] == ":"
            or text[end : end + 1].isalnum()
        ):
            continue
        if mapped and not _is_host_address(mapped):
            continue
        groups = address.split(":")
        if any(len(group) > 4 for group in groups if "." not in group) or not (
            "::" in address or len(groups) == 8
        ):
            continue
        yield Span(
            start,
            start + len(match[0].rstrip(".")) if "%" in match[0] else start + len(address),
            ADDRESS,
            "ip-address",
            address,
        )


def _in_lines(pattern: re.Pattern[str], text: str, may: Callable[[str], bool]) -> Iterator[re.Match[str]]:
    """Yield the matches, none of which goes beyond a line, in those lines that may have one."""
    at = 0
    for line in text.split("\n"):
        if may(line):
            yield from pattern.finditer(text, at, at + len(line))
        at += len(line) + 1


def _mac(text: str) -> Iterator[Span]:
    if text.count(":") < 5 and text.count("-") < 5:
        return
    for match in _re(
        r"[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})(?:[:-][0-9A-Fa-f]{2}){0,16}"
    ).finditer(text):
        start, end = match.span()
        size = len(match[0])
        if size not in (17, 23, 59) or text[end : end + 1].isalnum() or not boundary_before(text, start):
            continue
        if text[start - 1 : start] in (":", "-") and text[max(0, start - 2) : start - 1].isalnum():
            continue
        if len(set(match[0].lower().replace("-", ":").split(":"))) == 1:
            continue
        yield Span(start, end, DEVICE, "mac-address", match[0])


# ------------------------------------------------------------------------------------------------ hosts

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
        r"(?<![\w-])--(?:host|hostname|bind|listen)(?:[ \t]{1,8}|=|[\"'],[ \t]{0,4}[\"'])([A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,6})",
    ),
    (("rpc",), r"\bRPC\d+ {0,4}: ([A-Za-z0-9][\w.-]{0,127})(?=:\d)"),
    (
        ("resolv", "getaddrinfo", "lookup", "ping", "connect", "traceroute to", "no route to", "reach"),
        r"(?i)\b(?:resolv\w+|getaddrinfo|lookup|ping|connect(?:ing|ed)? to|traceroute to|no route to|reach) (?:host )?[\"']?([A-Za-z0-9][\w-]{0,62}-?\d[\w-]{0,20}(?:\.[\w-]{1,63}){0,6})(?=[\s:\"',]|$)",
    ),
)
_LOG_LINES = (
    r"(?<!\w)[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([A-Za-z0-9][\w.-]{0,127}) [A-Za-z_][\w./@()-]{0,63}(?:\[\d+\])?:",
    r"(?<!\w)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d) ([A-Za-z0-9][\w.-]{0,127}) [A-Za-z_][\w./@()-]{0,63}(?:\[\d+\])?:",
)
_LOG_TIMES = (9, 13)  # how far into each of these the first colon of the time is
_HEADER_INSIDE = r"(?i)(?<=[ \t])(?:host|x-forwarded-host|hostname):[ \t]{1,8}((?=[\w.-]*\d)[A-Za-z][\w.-]{1,127})(?=[:\s\"'\\]|$)"
_HOST_LINE = (
    r"(?im)^[ \t]*(?:static |transient |pretty )?host ?name[ \t]{0,30}:[ \t]{1,30}([A-Za-z0-9][\w.-]{0,127})"
)
_HEADER = r"(?im)(?:^|[\"'])(?:host|x-forwarded-host|x-forwarded-server)[\"']?:[ \t]{0,8}[\"']?([A-Za-z0-9][\w.-]{0,127})(?=[:\"'\r\n]|$)"


def _at_marks(text: str, lower: str) -> Iterator[re.Match[str]]:
    for marks, pattern in _HOST_MARKS:
        starts = list(places(lower, *marks))
        if starts:
            yield from matches(_re(pattern), text, starts)


def _in_log_lines(text: str, _lower: str) -> Iterator[re.Match[str]]:
    times = [match.start() for match in _re(r":(?=\d\d:\d\d)").finditer(text)]
    if times:
        for pattern, before in zip(_LOG_LINES, _LOG_TIMES, strict=True):
            yield from matches(_re(pattern), text, [at - before for at in times if at >= before])


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


def _hosts(text: str) -> Iterator[Span]:
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
    """Say whether a word is the name of a machine; after a flag, where help has words of prose, it needs a sign."""
    host = item.split(":")[0].rstrip(".")
    if not is_private_host(host) or host.replace(".", "").isdigit():
        return False
    return not around.startswith("-") or ":" in item or any(c.isdigit() or c in "-." for c in host)


def _url_hosts(text: str) -> Iterator[Span]:
    """Yield hosts of URLs that are names of machines in a private network: one label, with a digit or hyphen."""
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


# ------------------------------------------------------------------------------------------------ users

_LISTING = r"(?<![\w-])[bcdlps-](?:[r-][w-][xsStT-]){3}[.+@]? +\d+ +([A-Za-z_][\w.-]{0,63}) +([A-Za-z_][\w.-]{0,63}) +\d"
_OWNERS = (
    r"\b[ug]id=\d+\(([A-Za-z_][\w.-]{0,63})\)",
    r"\b(?:Accepted|Failed) (?:publickey|password|none|keyboard-interactive/pam) for (?:invalid user )?([A-Za-z_][\w.-]{0,63}) from",
    r"\bsession (?:opened|closed) for user ([A-Za-z_][\w.-]{0,63})",
    r"(?<![\w-])(?:login|user|User Id|uid|UID)=([A-Za-z_][\w.-]{0,63})(?=[;\s\"']+(?:pass|pwd|Password|PWD))",
    r"\bmachine \S{1,128} login ([^\s]{1,64})",
)
_OWNER_MARKS: tuple[tuple[str, ...], ...] = (
    ("uid=", "gid="), ("Accepted ", "Failed "), ("session ",),
    ("login=", "user=", "User Id=", "uid=", "UID="), ("machine ",),
)  # fmt: skip


def _owners(text: str) -> Iterator[Span]:
    starts = [at - 1 for at in places(text, "rw", "r-") if at > 0]
    if starts:
        yield from _owners_of(matches(_re(_LISTING), text, starts))
    for marks, pattern in zip(_OWNER_MARKS, _OWNERS, strict=True):
        starts = list(places(text, *marks))
        if starts:
            yield from _owners_of(matches(_re(pattern), text, starts))


def _owners_of(found: Iterable[re.Match[str]]) -> Iterator[Span]:
    for match in found:
        for group in range(1, match.re.groups + 1):
            if match[group].lower() not in ORDINARY_USERS:
                yield Span(*match.span(group), USER, "user-place", match[group])
