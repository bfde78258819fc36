"""Which of the embedded engine's builds this processor can run: the newest one that fits.

A build that was compiled for newer processors starts and answers here, and dies when it first computes
with a quantized model. So the choice is made from the flags of /proc/cpuinfo, before anything starts.
"""

from __future__ import annotations

from llamaops.errors import FetchError
from llamaops.schema.shape import Shape
from llamaops.system import fetch as installer
from llamaops.system.catalogue import Artefact, variants
from llamaops.system.cpu_flags import CPUINFO, cpu_flags
from llamaops.system.ports import System

ENGINE = "engine"


class Variant(Shape, frozen=True, kw_only=True):
    """One build of the embedded engine and what this processor lacks for it."""

    name: str
    """Its name in the catalogue, such as engine-b10434."""
    item: Artefact
    """Its entry."""
    missing_flags: tuple[str, ...] | None
    """The flags it needs that the processor lacks; none: it fits. None when the flags are not known."""

    @property
    def fits(self) -> bool:
        """Say whether the processor is known to have every instruction set it uses."""
        return self.missing_flags == ()

    @property
    def shortcoming(self) -> str:
        """Return what the processor lacks for it, as part of a sentence."""
        if self.missing_flags is None:
            return f"{self.name} needs instruction sets that {CPUINFO} does not confirm here"
        return f"{self.name} needs {', '.join(self.missing_flags)}, which this processor lacks"


def engine_variants(system: System) -> tuple[Variant, ...]:
    """Return all builds of the embedded engine, newest first, each against this processor. Cheap."""
    flags = cpu_flags(system)
    return tuple(
        Variant(name=name, item=item, missing_flags=_missing(item, flags))
        for name, item in variants(ENGINE).items()
    )


def _missing(item: Artefact, flags: frozenset[str] | None) -> tuple[str, ...] | None:
    needed = item.needs.cpu_flags if item.needs else ()
    return None if flags is None else tuple(flag for flag in needed if flag not in flags)


def chosen_variant(system: System) -> Variant:
    """Return the newest build that this platform and processor can run.

    Raises: FetchError with what is missing and what to do instead.
    """
    offered = engine_variants(system)
    for variant in offered:
        installer.see_that_it_runs_here(variant.item, system)
        if variant.fits:
            return variant
    if all(variant.missing_flags is None for variant in offered):
        what = f"{CPUINFO} does not say which instruction sets this processor has"
        raise FetchError(f"no embedded engine can be chosen: {what}", hint=installer.INSTEAD)
    lacks = "; ".join(variant.shortcoming for variant in reversed(offered))
    raise FetchError(f"no embedded engine runs on this processor: {lacks}", hint=installer.INSTEAD)


def why_chosen(name: str, system: System) -> str | None:
    """Say in one sentence why a build is taken, or what happens when it runs here; None for anything else."""
    offered = engine_variants(system)
    own = next((variant for variant in offered if variant.name == name), None)
    if own is None:
        return None
    if not own.fits:
        return f"{own.shortcoming}: it may be ended by SIGILL here, and llamaops does not choose it"
    newer = offered[: offered.index(own)]
    too_new = [variant.shortcoming for variant in newer if not variant.fits]
    if len(too_new) < len(newer):
        return f"{name} was named; a newer embedded engine runs on this processor too"
    return "; ".join([f"{name} is the newest embedded engine that this processor can run", *too_new])
