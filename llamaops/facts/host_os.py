"""Operating system: name, kernel, architecture, C library, uptime."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.facts.derive import derive, pick, read_fact
from llamaops.facts.observe import observe
from llamaops.schema.fact import Fact, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System


class OsFacts(Shape, frozen=True, kw_only=True):
    """The operating system."""

    kernel: Fact[str]
    """Kernel name and release, such as `Linux 6.1.0`."""
    architecture: Fact[str]
    """Machine name of the kernel, such as `x86_64` or `aarch64`."""
    name: Fact[str]
    """Name and version for people, such as `Debian GNU/Linux 12 (bookworm)`."""
    id: Fact[str]
    """Short name for a script, such as `debian` or `macos`."""
    version: Fact[str]
    """Version number alone; a rolling distribution has none."""
    libc: Fact[str]
    """C library and version, such as `glibc 2.36` or `musl`."""
    uptime_s: Fact[float]
    """Seconds since the kernel started."""


def kernel_facts(system: System) -> tuple[Fact[str], Fact[str]]:
    """Return kernel and architecture, which every POSIX system tells."""
    source = Source(kind="library", name="uname")
    kernel = observe(source, read=system.uname, parse=lambda told: f"{told.sysname} {told.release}")
    return kernel, observe(source, read=system.uname, parse=lambda told: told.machine)


def collect_linux_os(system: System) -> OsFacts:
    """Read what Linux tells about itself."""
    kernel, architecture = kernel_facts(system)
    release = read_fact(system, "/etc/os-release", parse_os_release)
    if isinstance(release, Unknown):
        release = read_fact(system, "/usr/lib/os-release", parse_os_release)
    return OsFacts(
        kernel=kernel,
        architecture=architecture,
        name=derive(release, _display_name),
        id=pick(release, "ID"),
        version=pick(release, "VERSION_ID"),
        libc=_libc(system),
        uptime_s=read_fact(system, "/proc/uptime", parse_uptime),
    )


def parse_os_release(text: str) -> dict[str, str]:
    """Parse os-release: shell assignments, with or without quotes.

    Raises: ParseError when there is no assignment.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name and not name.startswith("#"):
            values[name] = value.strip().strip("\"'")
    if not values:
        raise ParseError("no NAME=value line")
    return values


def _display_name(release: dict[str, str]) -> str:
    name = release.get("PRETTY_NAME") or release.get("NAME") or release.get("ID")
    if not name:
        raise ParseError("neither PRETTY_NAME nor NAME")
    return name


def parse_uptime(text: str) -> float:
    """Parse /proc/uptime.

    Raises: ParseError.
    """
    try:
        return float(text.split(maxsplit=1)[0])
    except (IndexError, ValueError):
        raise ParseError("no number of seconds") from None


def _libc(system: System) -> Fact[str]:
    fact = observe(
        Source(kind="library", name="confstr(CS_GNU_LIBC_VERSION)"),
        read=lambda: system.confstr("CS_GNU_LIBC_VERSION"),
        parse=str.strip,
    )
    if not isinstance(fact, Unknown):
        return fact
    # musl answers no such question; its loader's name is how it is known.
    musl = observe(Source(kind="file", name="/lib"), read=lambda: system.list_dir("/lib"), parse=_musl)
    return fact if isinstance(musl, Unknown) else musl


def _musl(names: list[str]) -> str:
    if not any(name.startswith("ld-musl-") for name in names):
        raise ParseError("no loader of musl")
    return "musl"
