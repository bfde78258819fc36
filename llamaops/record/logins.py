"""Find passwords in URLs, and in options of programs whose names do not tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from llamaops.record.people import ORDINARY_USERS
from llamaops.record.shapes import boundary_before
from llamaops.record.spans import SECRET, USER, Span
from llamaops.record.values import is_no_value, looks_secret, value_at


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_NO_LOGINS = frozenset(
    ("git", "hg", "svn", "x-access-token", "oauth2", "oauth", "token", "__token__", "user", "username")
)
_SCHEME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"


def find_url_logins(text: str) -> Iterator[Span]:
    """Yield passwords, tokens and user names of URLs."""
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


_LOGIN_OPTION = r"(?:-u|--user|--proxy-user|-U|--http-user|--auth|-a)(?:=|[ \t]{1,4}|\\*[\"'],[ \t]?)?"


def find_program_logins(text: str, lower: str) -> Iterator[Span]:
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
    for match in _re(r"(?<![\w-])" + _LOGIN_OPTION + r"(?=[^\s-])").finditer(text, at, end):
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
