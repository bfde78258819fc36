"""Does the build have every flag that it was started with?"""

from __future__ import annotations

from llamaops.checks.registry import Verdict, check
from llamaops.facts.launch import LaunchFacts, MissingFlag


@check(
    "binary.has-needed-flags",
    title="The build's own help has every flag it is started with",
    boundary="binary",
    remedy="use the nearest flag that this build has, or a build that has the flag",
)
def has_needed_flags(launch: LaunchFacts) -> Verdict:
    """Ask that each flag of the command line is in the program's own --help and not marked as removed."""
    launch.help_read.need()
    missing = ", ".join(_named(flag) for flag in launch.missing)
    count = len(launch.flags)
    return Verdict(
        holds=not launch.missing,
        summary=f"not in this build's help: {missing}" if missing else f"all {count} flags are in the help",
        expected=f"{count} flags in the program's own help",
        observed=f"{count - len(launch.missing)} of {count}",
        evidence=_evidence(launch),
    )


def _named(missing: MissingFlag) -> str:
    return f"{missing.flag} (nearest: {missing.nearest})" if missing.nearest else missing.flag


def _evidence(launch: LaunchFacts) -> tuple[str, ...]:
    evidence = launch.help_read.source.evidence
    return (evidence,) if evidence else ()
