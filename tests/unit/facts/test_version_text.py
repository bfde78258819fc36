from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.version_text import VersionFacts, parse_version
from llamaops.schema.fact import Fact, Known, Source

SOURCE = Source(kind="command", name="llama-server --version", evidence="ev-1")


def parts(facts: VersionFacts) -> tuple[object, ...]:
    def of(fact: Fact[str] | Fact[int] | Fact[bool]) -> object:
        return fact.value if isinstance(fact, Known) else fact.why

    return (
        of(facts.semver), of(facts.development), of(facts.build), of(facts.commit), of(facts.compiler),
        of(facts.target),
    )  # fmt: skip


BUILT = "built with GNU 11.4.0 for Linux x86_64\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 0.1.0-dev (build 1, commit 7e4c0a9)\n" + BUILT,
         ("0.1.0", True, 1, "7e4c0a9", "GNU 11.4.0", "Linux x86_64")),
        ("version: 0.7.0 (build 11669, commit Debian)\n" + BUILT,
         ("0.7.0", False, 11669, "Debian", "GNU 11.4.0", "Linux x86_64")),
        ("version: 0.6.0-dev (build 0, commit unknown)\n" + BUILT,
         ("0.6.0", True, "absent", "absent", "GNU 11.4.0", "Linux x86_64")),
        ("version: 3086 (554c247c)\nbuilt with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu\n",
         ("absent", "absent", 3086, "554c247c", "cc (Debian 12.2.0-14) 12.2.0", "x86_64-linux-gnu")),
        ("version: 0 (unknown)\n" + BUILT,
         ("absent", "absent", "absent", "absent", "GNU 11.4.0", "Linux x86_64")),
        ("version: unknown\n", ("absent", "absent", "absent", "absent", "absent", "absent")),
        ("load_backend: loaded CPU backend from x.so\nversion: 0.7.0 (build 11669, commit Debian)\n",
         ("0.7.0", False, 11669, "Debian", "absent", "absent")),
    ],
)  # fmt: skip
def test_each_grammar_gives_each_part_or_says_that_it_is_absent(
    text: str, expected: tuple[object, ...]
) -> None:
    facts = parse_version(text, SOURCE)
    assert parts(facts) == expected
    assert facts.text.need().startswith("version: ")
    assert facts.text.source.evidence == "ev-1"


@pytest.mark.parametrize(
    "text", ["", "usage: llama-quantize [--help]\n", "Version 1.0\n", "the version: 5 (abc)\n"]
)
def test_other_text_is_no_version(text: str) -> None:
    with pytest.raises(ParseError):
        parse_version(text, SOURCE)
