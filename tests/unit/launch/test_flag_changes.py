from __future__ import annotations

from llamaops.facts.canary import DefaultChange, FlagChange
from llamaops.facts.capabilities import Capabilities, Option
from llamaops.launch.flag_changes import compare_flags


def offers(*options: Option) -> Capabilities:
    return Capabilities(grammar="common", options=options)


def option(*aliases: str, **fields: object) -> Option:
    return Option(aliases=aliases, **fields)  # type: ignore[arg-type]  # as the test says


NOW = offers(
    option("-c", "--ctx-size", value_hints=("N",), default="4096"),
    option("--mlock"),
    option("-dt", "--defrag-thold", value_hints=("N",)),
    option("-fa", "--flash-attn"),
    option("--mode", value_hints=("M",), allowed_values=("a", "b")),
    option("--old-name", "-on", value_hints=("N",)),
    option("--port", value_hints=("P",), default="8080"),
    option("--going"),
)
THEN = offers(
    option("-c", "--ctx-size", value_hints=("N",), default="0"),
    option("-dt", "--defrag-thold", value_hints=("N",), removed=True),
    option("-fa", "--flash-attn", value_hints=("M",), allowed_values=("on", "off", "auto")),
    option("--mode", value_hints=("M",), allowed_values=("a",)),
    option("--new-name", "-on", value_hints=("N",)),
    option("--port", value_hints=("P",), default="9931"),
    option("--load-mode", value_hints=("M",)),
    option("--going", deprecated=True, help="use --mode"),
)


def states(*flags: str) -> dict[str, str]:
    return {change.flag: change.state for change in compare_flags(flags, NOW, THEN).in_use}


def test_what_became_of_each_flag_in_use() -> None:
    assert states(
        "--ctx-size", "1024", "--mlock", "-dt", "-fa", "--mode", "--old-name", "--going", "-on"
    ) == {
        "--ctx-size": "default_changed",
        "--mlock": "vanished",
        "-dt": "vanished",
        "-fa": "takes_other_value",
        "--mode": "takes_other_value",
        "--old-name": "renamed",
        "--going": "deprecated",
        "-on": "same",
    }


def test_the_new_spelling_or_the_replacement_is_named() -> None:
    changes = compare_flags(("--mlock", "--old-name"), NOW, THEN).in_use
    assert changes[0].then == "--load-mode mlock"
    assert changes[1] == FlagChange(flag="--old-name", state="renamed", then="--new-name")


def test_defaults_of_flags_not_in_use_change_silently() -> None:
    changed = compare_flags(("--ctx-size",), NOW, THEN).defaults
    assert changed == (DefaultChange(flag="--port", now="8080", then="9931"),)
