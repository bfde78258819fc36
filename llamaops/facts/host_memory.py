"""Memory: what the machine has, what our control group lets us take, and the smaller of the two."""

from __future__ import annotations

from collections.abc import Callable

from llamaops.errors import ParseError
from llamaops.facts.cgroup import Groups, MemoryCeiling, collect_memory_ceiling, collect_swap_limit
from llamaops.facts.derive import computed, derive, pick, read_fact, read_int
from llamaops.facts.observe import observe
from llamaops.schema.bounds import KIB
from llamaops.schema.evidence import evidence_of
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

MEMINFO = "/proc/meminfo"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


class MemoryFacts(Shape, frozen=True, kw_only=True):
    """Host memory, the limit on our share of it, and what is left of both."""

    total_bytes: Fact[int]
    """Memory that the kernel manages (in LXC: what lxcfs shows)."""
    available_bytes: Fact[int]
    """What the kernel estimates new programs can take without swapping (MemAvailable)."""
    swap_total_bytes: Fact[int]
    """Swap space."""
    swap_free_bytes: Fact[int]
    """Swap space not in use."""
    cgroup_version: Fact[int]
    """Version of control groups that limits our memory."""
    cgroup_limit_bytes: Fact[int]
    """The limit of our control group or of an ancestor that leaves least; absent when none limits us."""
    cgroup_usage_bytes: Fact[int]
    """What that group uses now, its page cache included."""
    cgroup_reclaimable_bytes: Fact[int]
    """Of that, inactive file pages, which the kernel drops before it stops anybody."""
    cgroup_headroom_bytes: Fact[int]
    """Limit minus usage plus reclaimable."""
    cgroup_swap_limit_bytes: Fact[int]
    """Swap that the group may use; absent when nothing limits it."""
    effective_available_bytes: Fact[int]
    """The smaller of available memory and the group's headroom: what a server can really take now."""
    effective_total_bytes: Fact[int]
    """The smaller of total memory and the group's limit: what it could take at best."""
    bound_by: Fact[str]
    """What binds `effective_available_bytes`: `host`, or the file that holds the group's limit."""
    overcommit_mode: Fact[int]
    """vm.overcommit_memory: 0 guesses, 1 always grants, 2 refuses beyond the commit limit."""
    commit_limit_bytes: Fact[int]
    """What may be promised in total when the mode is 2."""
    committed_bytes: Fact[int]
    """What has been promised so far."""
    transparent_huge_pages: Fact[str]
    """Mode of transparent huge pages: `always`, `madvise` or `never`."""
    huge_pages_free: Fact[int]
    """Free pages of the reserved pool, which ordinary programs cannot use."""
    huge_pages_total: Fact[int]
    """Pages of the reserved pool."""
    huge_page_bytes: Fact[int]
    """Size of one such page."""


def collect_linux_memory(system: System, groups: Fact[Groups]) -> MemoryFacts:
    """Read memory on Linux; `groups` are those of the controller `memory`."""
    table = _meminfo(system)
    total, available = pick(table, "MemTotal"), pick(table, "MemAvailable")
    ceiling = collect_memory_ceiling(system, groups)
    return MemoryFacts(
        total_bytes=total,
        available_bytes=available,
        swap_total_bytes=pick(table, "SwapTotal"),
        swap_free_bytes=pick(table, "SwapFree"),
        cgroup_version=derive(groups, lambda found: found.version),
        cgroup_limit_bytes=derive(ceiling, lambda found: found.limit_bytes),
        cgroup_usage_bytes=derive(ceiling, lambda found: found.usage_bytes),
        cgroup_reclaimable_bytes=derive(ceiling, lambda found: found.reclaimable_bytes),
        cgroup_headroom_bytes=derive(ceiling, lambda found: found.headroom_bytes),
        cgroup_swap_limit_bytes=collect_swap_limit(system, groups),
        effective_available_bytes=_smaller(available, ceiling, lambda found: found.headroom_bytes),
        effective_total_bytes=_smaller(total, ceiling, lambda found: found.limit_bytes),
        bound_by=_bound_by(available, ceiling),
        overcommit_mode=read_int(system, "/proc/sys/vm/overcommit_memory"),
        commit_limit_bytes=pick(table, "CommitLimit"),
        committed_bytes=pick(table, "Committed_AS"),
        transparent_huge_pages=read_fact(system, HUGE_PAGES, parse_choice),
        huge_pages_free=pick(table, "HugePages_Free"),
        huge_pages_total=pick(table, "HugePages_Total"),
        huge_page_bytes=pick(table, "Hugepagesize"),
    )


def _meminfo(system: System) -> Fact[dict[str, int]]:
    """Read the table once, so that its figures belong together, and keep it."""

    def read() -> str:
        return system.read_text(MEMINFO, limit_bytes=64 * KIB)

    text = observe(Source(kind="file", name=MEMINFO), read=read, parse=str)
    if isinstance(text, Unknown):
        return text
    kept = system.keep(evidence_of("file", MEMINFO, text.value.encode()))
    source = Source(kind="file", name=MEMINFO, evidence=kept)
    return observe(source, read=lambda: text.value, parse=parse_meminfo)


def parse_meminfo(text: str) -> dict[str, int]:
    """Parse /proc/meminfo; figures with the unit kB become bytes, page counts stay counts.

    Raises: ParseError when no line has the form.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _colon, value = line.partition(":")
        words = value.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0]) * (KIB if words[1:] == ["kB"] else 1)
    if "MemTotal" not in found:
        raise ParseError("no MemTotal")
    return found


def parse_choice(text: str) -> str:
    """Parse a list whose chosen word is in brackets, such as `always [madvise] never`.

    Raises: ParseError.
    """
    chosen = text.partition("[")[2].partition("]")[0].strip()
    if not chosen:
        raise ParseError("no word in brackets")
    return chosen


def _smaller(host: Fact[int], ceiling: Fact[MemoryCeiling], of: Callable[[MemoryCeiling], int]) -> Fact[int]:
    if isinstance(host, Unknown):
        return host
    if isinstance(ceiling, Known):
        formula = f"min({host.source.name}, {ceiling.value.limit_file} - usage + inactive file pages)"
        return computed(min(host.value, of(ceiling.value)), formula)
    # A limit that may exist and cannot be read: the host's figure would be a guess.
    return host if ceiling.why == "absent" else ceiling


def _bound_by(available: Fact[int], ceiling: Fact[MemoryCeiling]) -> Fact[str]:
    if isinstance(available, Unknown):
        return available
    if isinstance(ceiling, Known):
        tighter = ceiling.value.headroom_bytes < available.value
        return computed(ceiling.value.limit_file if tighter else "host", "the smaller of both")
    return computed("host", "no control group limits memory") if ceiling.why == "absent" else ceiling
