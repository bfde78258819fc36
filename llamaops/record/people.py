"""Find who somebody is: mail addresses, home folders, owners of files and sessions, users at hosts."""

# ruff: noqa: SIM905 - words read better one after the other

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from llamaops.record.hosts import is_private_host
from llamaops.record.marks import line_starts, matches, places
from llamaops.record.spans import EMAIL, HOST, USER, Span


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


ORDINARY_USERS = frozenset(
    """root llama ollama user users nobody daemon bin sys www-data ubuntu debian docker git admin runner node
    app     server service system default guest test linuxbrew shared public all host main model models
    gpu cpu
    localhost local none null nvidia vllm llm inference worker build ci jenkins postgres redis mysql nginx
    systemd-network messagebus sshd me you name username administrator public client http https api web
    assistant tool token tokens key""".split()
)


_NO_TOP_LEVEL = frozenset(
    """service socket target timer slice scope mount path device swap automount gguf so py md txt json
    yaml yml
    toml     cpp c h hpp cu js ts png jpg svg html css log conf cfg bin exe dll zip gz tar whl lock sh
    internal_call
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


def find_mail(text: str) -> Iterator[Span]:
    """Yield mail addresses."""
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


_PROMPT = (
    r"(?m)^[\[(]?(?:\([\w.-]{1,40}\) )?([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w.-]{0,127})(?=[: "
    r"][~/\w][^\n]{0,200}?[$#%>])"
)
_SSH = (
    r"\b(?:ssh|scp|sftp|rsync|mosh|sshfs|autossh|ssh-copy-id)"
    r"\b[^\n@]{0,200}?[\s\"']([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w.-]{0,127})"
)
_AT_HOST = (
    r"(?<![\w.@/-])([A-Za-z_][\w.-]{0,63})@([A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,6})(?=:[~/]|'s "
    r"password)"
)
_PUBLIC_KEY = (
    r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w+|sk-\w+@openssh\.com) [A-Za-z0-9+/=]{40,2048} "
    r"([\w.+-]{1,64})@([\w.-]{1,128})"
)


def find_users_at_hosts(text: str) -> Iterator[Span]:
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


_NO_HOMES = frozenset(
    ("linuxbrew", "shared", "public", "default", "all", "user", "username", "you", "user_name", "me")
)
_HOME = (
    r"(?:/|%2[Ff]|\\/)(?:home|Users|export/home|var/home)(?:/|%2[Ff]|\\/)"
    r"|[A-Za-z](?::|%3[Aa])(?:\\+|/|%5[Cc])(?:Users|Documents and Settings)(?:\\+|/|%5[Cc])"
    r"|\\+wsl(?:\.localhost|\$)\\+\w{1,40}\\+home\\+"
)


def find_homes(text: str) -> Iterator[Span]:
    """Yield user names in paths of home folders."""
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


_LISTING = (
    r"(?<![\w-])[bcdlps-](?:[r-][w-][xsStT-]){3}[.+@]? +\d+ +([A-Za-z_][\w.-]{0,63}) "
    r"+([A-Za-z_][\w.-]{0,63}) +\d"
)
_OWNERS = (
    r"\b[ug]id=\d+\(([A-Za-z_][\w.-]{0,63})\)",
    (
        r"\b(?:Accepted|Failed) (?:publickey|password|none|keyboard-interactive/pam) for (?:invalid user )"
        r"?([A-Za-z_][\w.-]{0,63}) from"
    ),
    r"\bsession (?:opened|closed) for user ([A-Za-z_][\w.-]{0,63})",
    r"(?<![\w-])(?:login|user|User Id|uid|UID)=([A-Za-z_][\w.-]{0,63})(?=[;\s\"']+(?:pass|pwd|Password|PWD))",
    r"\bmachine \S{1,128} login ([^\s]{1,64})",
)
_OWNER_MARKS: tuple[tuple[str, ...], ...] = (
    ("uid=", "gid="), ("Accepted ", "Failed "), ("session ",),
    ("login=", "user=", "User Id=", "uid=", "UID="), ("machine ",),
)  # fmt: skip


def find_owners(text: str) -> Iterator[Span]:
    """Yield user names of listings, sessions and logins."""
    starts = [at - 1 for at in places(text, "rw", "r-") if at > 0 and text[at - 1] in "bcdlps-"]
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
