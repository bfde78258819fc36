"""Write the compact form of the rules: `python -m llamaops.diagnosis.build`."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from llamaops.diagnosis.source import RuleErrors, read_source

TARGET = Path(__file__).with_name("rules.json")


def compact() -> bytes:
    """Return the compact form of the rules as they are written now.

    Raises: RuleErrors.
    """
    return msgspec.json.encode(read_source().rules) + b"\n"


def main() -> int:
    """Validate the rules and write the compact form."""
    try:
        data = compact()
    except RuleErrors as error:
        sys.stderr.write(f"{error}\n")
        return 1
    TARGET.write_bytes(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
