"""The types of the fact group about binaries."""

from __future__ import annotations

from llamaops.facts.capabilities import Capabilities
from llamaops.facts.device_list import Device
from llamaops.facts.discovery import FoundBy
from llamaops.facts.elf import ElfFacts
from llamaops.facts.installed import Installed
from llamaops.facts.libraries import BackendLibrary, Library, MissingLibrary
from llamaops.facts.run_failure import RunFailure
from llamaops.facts.version_text import VersionFacts
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape


class Inherited(Shape, frozen=True, kw_only=True):
    """What would change an engine without anybody having asked for it on a command line."""

    variables: tuple[str, ...]
    """Names of inherited variables that engines read; our children do not get them."""
    config_files: tuple[str, ...]
    """llama.cpp configuration files that exist; one below /etc cannot be kept from a child."""


class Probe(Shape, frozen=True, kw_only=True):
    """One time that a program was run to learn about it."""

    arguments: tuple[str, ...]
    """What it was run with."""
    end: str
    """How it ended."""
    elapsed_s: float
    """Seconds."""
    evidence: tuple[str, ...] = ()
    """Ids of its output."""


class BinaryFacts(Shape, frozen=True, kw_only=True):
    """One program."""

    role: str
    """What it is for: the name that llama.cpp gives such a program today; `main` and `llama` stay."""
    path: str
    """As found."""
    also_at: tuple[str, ...] = ()
    """Other paths that lead to the same file."""
    found_by: FoundBy
    """Whether it was given, or lies in --bin-dir, on PATH, or in a usual build folder."""
    real_path: str
    """The file, symbolic links resolved."""
    wrapper: bool
    """Whether that file is a script or launcher and not the program itself."""
    executes: Fact[str]
    """The ELF file that really runs."""
    elf: Fact[ElfFacts]
    """What that file says about itself."""
    size_bytes: Fact[int]
    """Size of that file."""
    sha256: Fact[str]
    """Digest of that file in hex."""
    libraries: Fact[tuple[Library, ...]]
    """llama.cpp's own libraries that it uses, or that lie beside it as plugins."""
    missing_libraries: Fact[tuple[MissingLibrary, ...]]
    """Libraries that the loader does not find."""
    backends: Fact[tuple[BackendLibrary, ...]]
    """Back ends present as libraries."""
    installed: Fact[Installed]
    """How it came onto the machine."""
    runs: Fact[bool]
    """Whether it ran and gave an answer that we know; False comes with a failure."""
    failures: tuple[RunFailure, ...] = ()
    """Every probe that crashed, hung or did not start."""
    probes: tuple[Probe, ...] = ()
    """Every time that it was run."""
    version: VersionFacts
    """What it says about its build."""
    capabilities: Fact[Capabilities]
    """The options of its own help text."""
    devices: Fact[tuple[Device, ...]]
    """The devices it lists; empty when it says that there is none."""
    inherited: Inherited
    """Variables and files that would change it."""


class BinariesFacts(Shape, frozen=True, kw_only=True):
    """All llama.cpp programs that were found."""

    found: Fact[tuple[BinaryFacts, ...]]
    """In order of precedence: given, --bin-dir, PATH, build folders."""
    searched: tuple[str, ...]
    """Folders that were looked into."""
    not_run: tuple[str, ...] = ()
    """Files with an ambiguous name (server, main) that were left alone: they do not speak of llama.cpp."""
    inherited: Inherited
    """Variables and files that would change any of them."""
    digest_elapsed_s: float | None = None
    """Seconds that the digests of programs and libraries took, all together."""
