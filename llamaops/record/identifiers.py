"""Find what names a person, a machine or an address."""

from __future__ import annotations

from collections.abc import Iterator

from llamaops.record.addresses import find_ipv4, find_ipv6, find_mac
from llamaops.record.hosts import find_hosts
from llamaops.record.logins import find_url_logins
from llamaops.record.people import find_homes, find_mail, find_owners, find_users_at_hosts
from llamaops.record.spans import Span


def find_identifiers(text: str) -> Iterator[Span]:
    """Yield everything that names a person, a machine or an address."""
    if "@" in text or "%40" in text:
        yield from find_url_logins(text)
        yield from find_mail(text)
        yield from find_users_at_hosts(text)
    yield from find_homes(text)
    yield from find_ipv4(text)
    if ":" in text:
        yield from find_ipv6(text)
    yield from find_mac(text)
    yield from find_hosts(text)
    yield from find_owners(text)
