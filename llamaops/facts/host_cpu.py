"""The processor: model, instruction sets that llama.cpp has code for, and how much of it is ours."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.facts.cgroup import CpuQuota, Groups, collect_cpu_quota, collect_throttling
from llamaops.facts.derive import computed, derive, pick, read_fact
from llamaops.facts.host_limits import STATUS, parse_status
from llamaops.facts.observe import observe
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

CPUINFO = "/proc/cpuinfo"
NODES = "/sys/devices/system/node"

_MAX_PROCESSOR = 1 << 20

# Instruction sets that ggml's CPU back end has code for, by the names that the kernel gives them.
INSTRUCTION_SETS: dict[str, tuple[str, ...]] = {
    "x86": (
        "sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx_vnni", "avx512f", "avx512vl", "avx512bw",
        "avx512dq", "avx512vbmi", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16",
    ),
    "arm": ("asimd", "neon", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "sme", "sme2"),
    "riscv": ("v", "zfh", "zvfh", "zicbop", "zihintpause"),
    "ppc": ("altivec", "vsx", "mma"),
    "s390": ("vx", "vxe", "vxe2", "nnpa"),
    "loongarch": ("lsx", "lasx"),
}  # fmt: skip

_FAMILIES = (
    ("x86", ("x86_64", "amd64", "i386", "i486", "i586", "i686")),
    ("arm", ("aarch64", "arm64", "armv")),
    ("riscv", ("riscv",)),
    ("ppc", ("ppc",)),
    ("s390", ("s390",)),
    ("loongarch", ("loongarch",)),
)
# PowerPC says nothing of its vector units in cpuinfo; these are bits of AT_HWCAP and AT_HWCAP2.
_AUXILIARY = "/proc/self/auxv"
_PPC_BITS = {"altivec": (16, 0x10000000), "vsx": (16, 0x80), "mma": (26, 0x20000)}

# Arm cores tell numbers only: implementer and part, as on servers and boards that run llama.cpp.
_ARM_CORES = {
    ("0x41", "0xd03"): "Cortex-A53", ("0x41", "0xd05"): "Cortex-A55", ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0b"): "Cortex-A76", ("0x41", "0xd0c"): "Neoverse N1", ("0x41", "0xd40"): "Neoverse V1",
    ("0x41", "0xd49"): "Neoverse N2", ("0x41", "0xd4f"): "Neoverse V2", ("0x41", "0xd41"): "Cortex-A78",
    ("0x41", "0xd85"): "Cortex-X925", ("0x41", "0xd87"): "Cortex-A725", ("0xc0", "0xac3"): "Ampere-1",
}  # fmt: skip


class CpuFacts(Shape, frozen=True, kw_only=True):
    """The processor and our share of it."""

    model: Fact[str]
    """Name that the processor gives itself."""
    sockets: Fact[int]
    """Packages."""
    cores: Fact[int]
    """Physical cores of all packages."""
    threads: Fact[int]
    """Processors that the kernel schedules on."""
    flags: Fact[tuple[str, ...]]
    """Instruction sets present on every core, of those that llama.cpp has code for."""
    missing_flags: Fact[tuple[str, ...]]
    """Instruction sets of the same list that the kernel does not name."""
    affinity_cpus: Fact[int]
    """Processors that this process may run on (affinity and cpuset)."""
    quota_cpus: Fact[float]
    """Processor time that the tightest control group gives us, in processors; absent without a quota."""
    quota_periods: Fact[int]
    """Scheduling periods in which the group ran."""
    throttled_periods: Fact[int]
    """Of these, periods in which it was held back."""
    effective_cpus: Fact[float]
    """The smaller of affinity and quota: more threads than this wait for each other."""
    numa_nodes: Fact[int]
    """Memory nodes."""
    load_1min: Fact[float]
    """Runnable processes, averaged over a minute; anything near `threads` disturbs a measurement."""
    steal_share: Fact[float]
    """Share of processor time since start that the hypervisor gave to other machines, 0 to 1."""


def collect_linux_cpu(system: System, groups: Fact[Groups]) -> CpuFacts:
    """Read the processor on Linux; `groups` are those of the controller `cpu`."""
    blocks = read_fact(system, CPUINFO, parse_cpuinfo, limit_bytes=4 * MIB)
    family = family_of(system.uname().machine)
    flags = _flags(system, blocks, family)
    affinity = derive(read_fact(system, STATUS, parse_status), _allowed)
    quota = collect_cpu_quota(system, groups)
    throttling = collect_throttling(system, groups, quota)
    return CpuFacts(
        model=derive(blocks, _model),
        sockets=derive(blocks, lambda found: len(_packages(found))),
        cores=derive(blocks, _cores),
        threads=derive(blocks, _threads),
        flags=flags,
        missing_flags=derive(flags, lambda present: _missing(family, present)),
        affinity_cpus=affinity,
        quota_cpus=derive(quota, lambda found: found.cpus),
        quota_periods=pick(throttling, "nr_periods"),
        throttled_periods=pick(throttling, "nr_throttled"),
        effective_cpus=_effective(affinity, quota),
        numa_nodes=read_fact(system, f"{NODES}/online", lambda text: len(parse_ranges(text))),
        load_1min=read_fact(system, "/proc/loadavg", parse_load),
        steal_share=read_fact(system, "/proc/stat", parse_steal, limit_bytes=4 * MIB),
    )


def family_of(machine: str) -> str:
    """Return the family of an architecture, a key of INSTRUCTION_SETS, or the name itself."""
    for family, prefixes in _FAMILIES:
        if machine.lower().startswith(prefixes):
            return family
    return machine


def parse_cpuinfo(text: str) -> tuple[dict[str, str], ...]:
    """Parse /proc/cpuinfo into blocks of names and values.

    Raises: ParseError when there is none.
    """
    blocks: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            blocks[-1][name.strip()] = value.strip()
        elif blocks[-1]:
            blocks.append({})
    found = tuple(block for block in blocks if block)
    if not found:
        raise ParseError("no line of a name and a value")
    return found


def _processors(blocks: tuple[dict[str, str], ...]) -> list[dict[str, str]]:
    # Blocks without a number (Hardware, platform) are about the machine.
    return [block for block in blocks if block.get("processor", "").isdecimal()]


def _threads(blocks: tuple[dict[str, str], ...]) -> int:
    many = len(_processors(blocks))
    if many == 0:  # s390x counts them in one line and calls them "processor 0"
        many = next((int(b["# processors"]) for b in blocks if b.get("# processors", "").isdecimal()), 0)
    if many == 0:
        raise ParseError("no processor is listed")
    return many


def _packages(blocks: tuple[dict[str, str], ...]) -> set[str]:
    packages = {block["physical id"] for block in _processors(blocks) if "physical id" in block}
    if not packages:
        raise FileNotFoundError(2, "this kernel does not list packages")
    return packages


def _cores(blocks: tuple[dict[str, str], ...]) -> int:
    cores = {
        (block["physical id"], block["core id"])
        for block in _processors(blocks)
        if "physical id" in block and "core id" in block
    }
    if not cores:
        raise FileNotFoundError(2, "this kernel does not list cores")
    return len(cores)


def _model(blocks: tuple[dict[str, str], ...]) -> str:
    for name in ("model name", "Model Name", "cpu", "uarch", "cpu model", "Model", "Hardware"):
        told = next((block[name] for block in blocks if block.get(name)), None)
        if told and not told.isdecimal():
            return told
    kinds = dict.fromkeys(
        (block["CPU implementer"], block.get("CPU part", ""))
        for block in _processors(blocks)
        if "CPU implementer" in block
    )
    if kinds:
        return " + ".join(_ARM_CORES.get(kind, f"Arm {kind[0]}/{kind[1]}") for kind in kinds)
    raise FileNotFoundError(2, "the processor has no name")


def _flags(system: System, blocks: Fact[tuple[dict[str, str], ...]], family: str) -> Fact[tuple[str, ...]]:
    if family not in INSTRUCTION_SETS:
        return Unknown(
            why="unsupported",
            detail=f"no list of instruction sets for {family}",
            source=Source(kind="library", name="uname"),
        )
    if family == "ppc":
        source = Source(kind="file", name=_AUXILIARY)
        return observe(
            source, read=lambda: system.read_bytes(_AUXILIARY, limit_bytes=4096), parse=parse_ppc_vectors
        )
    return derive(blocks, lambda found: _present(found, family))


def _present(blocks: tuple[dict[str, str], ...], family: str) -> tuple[str, ...]:
    told = {
        block[name] for block in blocks for name in ("flags", "Features", "features", "isa") if name in block
    }
    if not told:
        raise FileNotFoundError(2, "the kernel lists no instruction sets")
    split = _riscv_extensions if family == "riscv" else _words
    common = set.intersection(*(split(line) for line in told))
    return tuple(name for name in INSTRUCTION_SETS[family] if name in common)


def _words(line: str) -> set[str]:
    return set(line.split())


def _riscv_extensions(isa: str) -> set[str]:
    """Split `rv64imafdcv_zicbop_zfh` into its single letters and named extensions."""
    first, *named = isa.lower().split("_")
    return {*first.removeprefix("rv64").removeprefix("rv32"), *named}


def _missing(family: str, present: tuple[str, ...]) -> tuple[str, ...]:
    # `neon` is what a 32-bit kernel calls asimd: neither name is missed where the other is there.
    same = {"asimd", "neon"} if {"asimd", "neon"} & set(present) else set()
    return tuple(name for name in INSTRUCTION_SETS[family] if name not in present and name not in same)


def parse_ppc_vectors(data: bytes) -> tuple[str, ...]:
    """Parse the auxiliary vector, pairs of 64-bit words in little-endian order.

    Raises: ParseError when it holds no AT_HWCAP.
    """
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) - 7, 8)]
    entries = dict(zip(words[::2], words[1::2], strict=False))
    if 16 not in entries:  # noqa: PLR2004 - AT_HWCAP
        raise ParseError("no AT_HWCAP")
    return tuple(name for name, (kind, bit) in _PPC_BITS.items() if entries.get(kind, 0) & bit)


def _allowed(status: dict[str, str]) -> int:
    if "Cpus_allowed_list" not in status:
        raise FileNotFoundError(2, "it has no Cpus_allowed_list")
    return len(parse_ranges(status["Cpus_allowed_list"]))


def parse_ranges(text: str) -> tuple[int, ...]:
    """Parse a kernel list such as `0-3,8`.

    Raises: ParseError.
    """
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not first.isdecimal() or not last.isdecimal() or int(last) > _MAX_PROCESSOR:
            raise ParseError(f"not a list of numbers: {text.strip()[:40]!r}")
        numbers.extend(range(int(first), int(last) + 1))
    return tuple(numbers)


def _effective(affinity: Fact[int], quota: Fact[CpuQuota]) -> Fact[float]:
    if isinstance(affinity, Unknown):
        return affinity
    if isinstance(quota, Known):
        return computed(min(float(affinity.value), quota.value.cpus), f"min(affinity, {quota.value.file})")
    if quota.why == "absent":
        return computed(float(affinity.value), "affinity; no quota")
    return quota


def parse_load(text: str) -> float:
    """Parse the first figure of /proc/loadavg.

    Raises: ParseError.
    """
    try:
        return float(text.split(maxsplit=1)[0])
    except (IndexError, ValueError):
        raise ParseError("no load figure") from None


def parse_steal(text: str) -> float:
    """Parse the share of stolen time from the first line of /proc/stat.

    Raises: ParseError.
    """
    words = text.split("\n", 1)[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):  # noqa: PLR2004
        raise ParseError("no line cpu with eight figures")
    ticks = [int(word) for word in words[1:9]]
    total = sum(ticks)
    return round(ticks[7] / total, 4) if total else 0.0
