"""The same facts on macOS, from sysctl and vm_stat; what these do not tell is `unsupported`."""

from __future__ import annotations

from msgspec.structs import replace

from llamaops.errors import ParseError
from llamaops.facts.command import tell
from llamaops.facts.derive import all_unknown, computed, derive, pick
from llamaops.facts.host_cpu import CpuFacts
from llamaops.facts.host_memory import MemoryFacts
from llamaops.facts.host_os import OsFacts, kernel_facts
from llamaops.schema.fact import Fact, Source, Unknown
from llamaops.system.ports import System

SYSCTL = ("/usr/sbin/sysctl", "hw", "machdep.cpu", "kern.osproductversion", "vm.swapusage", "vm.loadavg")
VM_STAT = ("/usr/bin/vm_stat",)
UNSUPPORTED = Unknown(
    why="unsupported",
    detail="llamaops has no source for this on macOS",
    source=Source(kind="computed", name="platform"),
)
# sysctl's names for what llama.cpp has code for, by Linux's words.
_ARM = {
    "hw.optional.neon": "asimd",
    "hw.optional.arm.FEAT_FP16": "asimdhp",
    "hw.optional.arm.FEAT_DotProd": "asimddp",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_SME": "sme",
    "hw.optional.arm.FEAT_SME2": "sme2",
}
_INTEL = {"SSE4.2": "sse4_2", "AVX1.0": "avx", "AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "BMI2": "bmi2"}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def collect_darwin(system: System) -> tuple[OsFacts, CpuFacts, MemoryFacts]:
    """Read operating system, processor and memory on macOS."""
    told = derive(tell(system, SYSCTL), parse_sysctl)
    return _os(system, told), _cpu(told), _memory(system, told)


def parse_sysctl(text: str) -> dict[str, str]:
    """Parse lines of a name, a colon and a value.

    Raises: ParseError when there is none.
    """
    pairs = (line.partition(": ") for line in text.splitlines())
    found = {name.strip(): value.strip() for name, colon, value in pairs if colon}
    if not found:
        raise ParseError("no line of a name and a value")
    return found


def _number(told: Fact[dict[str, str]], name: str) -> Fact[int]:
    def parse(text: str) -> int:
        if not text.isdecimal():
            raise ParseError(f"{name} is not a number")
        return int(text)

    return derive(pick(told, name), parse)


def _os(system: System, told: Fact[dict[str, str]]) -> OsFacts:
    kernel, architecture = kernel_facts(system)
    version = pick(told, "kern.osproductversion")
    return replace(
        all_unknown(OsFacts, UNSUPPORTED),
        kernel=kernel,
        architecture=architecture,
        name=derive(version, lambda number: f"macOS {number}"),
        id=computed("macos", "uname"),
        version=version,
    )


def _cpu(told: Fact[dict[str, str]]) -> CpuFacts:
    threads = _number(told, "hw.logicalcpu")
    flags = derive(told, darwin_flags)
    return replace(
        all_unknown(CpuFacts, UNSUPPORTED),
        model=pick(told, "machdep.cpu.brand_string"),
        sockets=_number(told, "hw.packages"),
        cores=_number(told, "hw.physicalcpu"),
        threads=threads,
        flags=flags,
        affinity_cpus=threads,
        effective_cpus=derive(threads, float),
        load_1min=derive(pick(told, "vm.loadavg"), _load),
    )


def darwin_flags(told: dict[str, str]) -> tuple[str, ...]:
    """Return the instruction sets that sysctl names, by the words that Linux has for them."""
    arm = tuple(word for name, word in _ARM.items() if told.get(name) == "1")
    words = f"{told.get('machdep.cpu.features', '')} {told.get('machdep.cpu.leaf7_features', '')}".split()
    return arm or tuple(word for name, word in _INTEL.items() if name in words)


def _load(text: str) -> float:
    try:
        return float(text.strip("{ }").split()[0].replace(",", "."))
    except (IndexError, ValueError):
        raise ParseError("no load figure") from None


def _memory(system: System, told: Fact[dict[str, str]]) -> MemoryFacts:
    total = _number(told, "hw.memsize")
    available = derive(tell(system, VM_STAT), parse_vm_stat)
    swap = derive(pick(told, "vm.swapusage"), parse_swap)
    return replace(
        all_unknown(MemoryFacts, UNSUPPORTED),
        total_bytes=total,
        available_bytes=available,
        effective_total_bytes=total,
        effective_available_bytes=available,
        bound_by=computed("host", "macOS has no control groups"),
        swap_total_bytes=derive(swap, lambda found: found[0]),
        swap_free_bytes=derive(swap, lambda found: found[1]),
    )


def parse_vm_stat(text: str) -> int:
    """Return free, inactive, speculative and purgeable pages of vm_stat, in bytes.

    Raises: ParseError.
    """
    size = text.partition("page size of ")[2].partition(" ")[0]
    pages = dict(line.rstrip(".").split(":", 1) for line in text.splitlines()[1:] if ":" in line)
    names = ("Pages free", "Pages inactive", "Pages speculative", "Pages purgeable")
    counts = [pages[name].strip() for name in names if name in pages]
    if not size.isdecimal() or not counts or not all(count.isdecimal() for count in counts):
        raise ParseError("no page size and page counts")
    return int(size) * sum(map(int, counts))


def parse_swap(text: str) -> tuple[int, int]:
    """Parse `total = 2048.00M  used = 1.00M  free = 2047.00M` into total and free bytes.

    Raises: ParseError.
    """
    words = text.split()
    sizes = {words[at]: words[at + 2] for at in range(len(words) - 2) if words[at + 1] == "="}
    try:
        total, free = (int(float(sizes[n][:-1]) * _UNITS[sizes[n][-1]]) for n in ("total", "free"))
    except (KeyError, ValueError):
        raise ParseError("no total and free swap") from None
    return total, free
