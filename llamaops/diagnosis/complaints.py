"""What an operator complains of: it is no evidence, and says only what an answer has to be about."""

from __future__ import annotations

import re

_OF_A_MESSAGE = re.compile(r"(?i)\b(?:warn\w*|(?:error|log) (?:lines?|messages?)|alarm\w*|printed|logged)\b")
_OF_SECURITY = re.compile(
    r"(?i)\b(?:keys?|secrets?|tokens?|passwords?|expos\w*|reach\w*|public\w*|internet|networks?|anyone|strangers?"
    r"|secur\w*|leak\w*|firewall|scan\w*|origins?|warn\w*|prompts?|visible|sees?|listen\w*|audit\w*|access\w*)\b"
)


def of_a_message(complaint: str) -> bool:
    """Say whether it is about a printed line; that the program got over it answers such a one."""
    return bool(_OF_A_MESSAGE.search(complaint))


def of_security(complaint: str) -> bool:
    """Say whether it may be about who reaches the server or reads its secrets."""
    return bool(_OF_SECURITY.search(complaint))
