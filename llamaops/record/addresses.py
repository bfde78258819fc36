"""Find addresses of machines: IP and MAC."""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from llamaops.record.marks import matches
from llamaops.record.shapes import boundary_before
from llamaops.record.spans import ADDRESS, DEVICE, HOST, Span


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_VERSIONS = (
    r"(?i)(?:version|driver|release|firmware|vbios|bios|cuda|rocm|cudnn|cublas|nccl|toolkit|build|"
    r"glibc|gcc|clang|kernel|runtime|api|level|v|rev|tag|==|>=|~=|lib\w*)[\"']?[ \t:=/-]{0,3}\Z"
)
_PRODUCT = r"(?:^|[\s(\"'])[A-Za-z][\w.+-]*/\Z"


def find_ipv4(text: str) -> Iterator[Span]:
    """Yield IPv4 addresses that are no loopback, version or time."""
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


def find_ipv6(text: str) -> Iterator[Span]:
    """Yield IPv6 addresses of networks and links."""
    pattern = (
        r"(?i)(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|[23][0-9a-f]{3}|64:ff9b|::ffff):[0-9a-f:.]{2,45}"
        r"(?:%[\w.-]{1,16})?|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
    )
    for match in _in_lines(pattern, text, lambda line: "::" in line or line.count(":") >= 7):
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


def _in_lines(pattern: str, text: str, may: Callable[[str], bool]) -> Iterator[re.Match[str]]:
    """Yield the matches, none of which goes beyond a line, in those lines that may have one."""
    at = 0
    for line in text.split("\n"):
        if may(line):
            yield from _re(pattern).finditer(text, at, at + len(line))
        at += len(line) + 1


def find_mac(text: str) -> Iterator[Span]:
    """Yield hardware addresses."""
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
