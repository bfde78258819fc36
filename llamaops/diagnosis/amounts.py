# ruff: noqa: E501 - a table is read by its rows
"""Amounts of memory and counts of cores that parts tell in their own words, under names that rules know.

People and tools write the same amount in many ways (`ram_mib: 32768`, `MemTotal: 32768000 kB`,
`memory: 8Gi` below `limits`, `docker run -m 6g`). A key is taken apart into words, and the words say
what is counted; what a tool prints in a form of its own is a row of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

Amount = tuple[str, float, int, str]
"""Name of the fact, its value (MiB, or a count), number of the line and its text."""
MAX_LINES = 4000
LOG_KINDS = ("log", "text")

_MIB = {
    "": 1.0, "b": 2.0**-20, "bytes": 2.0**-20, "byte": 2.0**-20, "k": 2.0**-10, "kb": 2.0**-10,
    "kib": 2.0**-10, "ki": 2.0**-10, "m": 1.0, "mb": 1.0, "mib": 1.0, "mi": 1.0, "g": 2.0**10, "gb": 2.0**10,
    "gib": 2.0**10, "gi": 2.0**10, "t": 2.0**20, "tb": 2.0**20, "tib": 2.0**20, "ti": 2.0**20,
}  # fmt: skip
_PAIR = re.compile(
    r"(?P<key>[A-Za-z][A-Za-z0-9_. -]{0,40}?)\"?\s?[:=]\s{0,12}\"?~?(?P<value>\d[\d_]*(?:\.\d+)?)\s?"
    r"(?P<unit>[KMGT]i?[Bb]?|bytes|[kmg][bB]?)?(?![\w.-])"
)
_OPENS = re.compile(r"\"?([A-Za-z][\w.-]{0,40})\"?\s?[:=]\s?[\[{]+$")
_UNITS = frozenset(("mib", "gib", "kib", "mb", "gb", "kb", "bytes", "b"))
_CPU = frozenset(("cpu", "cpus", "ncpus"))
_VRAM = frozenset(("vram", "gpu", "gpus", "device", "dedicated", "card", "cuda"))
_MODEL = frozenset(("model", "file", "weights", "gguf"))
_MEMORY = frozenset(("ram", "mem", "memory", "memtotal", "memavailable", "memfree"))
_SAYS_MEMORY = _MEMORY | frozenset(("vram", "total", "dedicated", "free", "available", "avail", "used"))
_LIMIT = frozenset(("limit", "limits", "max", "cgroup", "memorymax", "quota"))
_FREE = frozenset(("free", "available", "avail", "memavailable", "memfree"))
_USED = frozenset(("used", "use", "usage", "rss", "current", "peak"))
_OTHER = frozenset((
    "shared", "swap", "cache", "pid", "util", "bandwidth", "tokens", "layers", "port", "count", "index",
    "id", "version", "s", "ms", "percent", "process", "buffer", "kv", "context", "driver", "enable", "unified",
    "disable", "allow", "force", "fraction",
))  # fmt: skip
"""Words of keys that count something else."""
_SIZE = frozenset(("size", "total", "file", "bytes", "memory", "length"))


class _Row(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    """Group 1 is the value, group 2 its unit where there is one."""
    unit: str = ""
    kinds: tuple[str, ...] = ()


_ROWS = (
    _Row("memory_limit_mib", re.compile(r"(?:docker|podman)\b.*?\s(?:-m|--memory)[ =](\d+)([bkmg]?)\b"), "b"),
    _Row("memory_limit_mib", re.compile(r"^\s*(?:mem_limit|MemoryMax|MemoryLimit|MemoryHigh)\s?[:=]\s?\"?(\d+)([KMGTkmgt]?)i?b?\b"), "b"),
    _Row("memory_limit_mib", re.compile(r"memory\.max\b\D{0,12}(\d{7,})()"), "b"),
    _Row("ram_total_mib", re.compile(r"^\s*Mem:\s+(\d{4,7})()\s+\d+\s+\d+\s+\d+")),
    _Row("ram_total_mib", re.compile(r"^\s*Mem:\s+(\d+(?:\.\d+)?)([MGT]i)\s")),
    _Row("cpu_limit", re.compile(r"--cpus[ =](\d+(?:\.\d+)?)()")),
    _Row("cpu_limit_percent", re.compile(r"^\s*CPUQuota=(\d+)()%")),
    _Row("model_mib", re.compile(r"^-[rwxst-]{9}\S? +\d+ +\S+ +\S+ +(\d+)() .*\.gguf\b"), "b"),
    _Row("model_mib", re.compile(r"^-[rwxst-]{9}\S? +\d+ +\S+ +\S+ +(\d+(?:\.\d+)?)([KMGT]) .*\.gguf\b")),
    _Row("model_mib", re.compile(r"\bfile size\s+= (\d+(?:\.\d+)?) (GiB|MiB)")),
    _Row("model_mib", re.compile(r"\bmodel size\s+= (\d+(?:\.\d+)?) (GiB|MiB|GB|MB)")),
    _Row("cores_physical", re.compile(r"(?i)\b(\d{1,3})() ?(?:physical cores|P-cores|performance cores|cores\b(?! visible))")),
    _Row("cores_logical", re.compile(r"^\s*CPU\(s\):\s+(\d+)()")),
    _Row("cores_per_socket", re.compile(r"Core\(s\) per socket:\s+(\d+)()")),
    _Row("sockets", re.compile(r"(?:Socket\(s\):\s+|\bsockets: )(\d+)()")),
    _Row("cores_physical", re.compile(r"(?i)(?<!logical_)(?<!logical )\b(?:physical_cores|cores_physical|performance_cores|p_cores|pcores|cores)\"?[:=] ?(\d{1,3})()")),
    _Row("cores_logical", re.compile(r"(?i)\b(?:threads|logical_cores|cores_logical|hardware_threads|hw_threads|nproc|vcpus?)\"?[:=] ?(\d{1,3})()"), kinds=("host-facts",)),
)  # fmt: skip


_ASKED = (
    ("address_space_mib", re.compile(r"\bulimit (?:-\w+ )*-\w*v\b"), "kib"),
    ("memory_limit_mib", re.compile(r"/memory(?:\.max|\.limit_in_bytes|/memory\.limit_in_bytes)\b"), "b"),
    ("cores_logical", re.compile(r"\bnproc\b"), ""),
)
"""Commands that print one figure: the fact, the command, the figure's unit."""
_CPUSET = re.compile(
    r"(?i)(?:cpuset(?:[._-]cpus)?(?:\.effective)?|AllowedCPUs|CPUAffinity|Cpus_allowed_list|taskset -c|"
    r"numactl (?:-C|--physcpubind)|--cpuset-cpus)\"?[:= ]+\"?(\d[\d,-]*)(?=[\s\"']|$)"
)
"""A list of CPUs that a process may run on."""
_FIGURE = re.compile(r"\s*(\d{1,15})\s*")

_IN_LOGS = ("file size", "model size", "memory.max", "--memory", ".gguf", "emory=")
_NO_PAIRS = ("http-request", "http-response", "bench", *LOG_KINDS)


def amounts(text: str, kind: str) -> Iterator[Amount]:
    """Yield the amounts in a part that tells of a machine, a container or a file.

    Args:
        text: The part's text.
        kind: Its kind; logs are read for their own rows only.
    """
    outer: list[tuple[int, frozenset[str]]] = []
    asked: tuple[str, str] | None = None
    for number, line in enumerate(text.splitlines()[:MAX_LINES], 1):
        if kind in LOG_KINDS and not any(words in line for words in _IN_LOGS):
            continue  # a log is long, and tells no more than this
        cpus = _CPUSET.search(line)
        if cpus and (count := _count(cpus[1])):
            yield "cpus_allowed", count, number, line
        figure = _FIGURE.fullmatch(line)
        if asked and figure:
            yield asked[0], _value(figure[1], asked[1]), number, line
        asked = _asked(line)
        for row in _ROWS:
            found = row.pattern.search(line) if not row.kinds or kind in row.kinds else None
            if found:
                unit = found[2].lower() or row.unit
                yield row.name, _value(found[1], unit), number, line
        if kind not in _NO_PAIRS:
            context = _context(outer, line)
            for pair in _PAIR.finditer(line):
                named = _named(_words(pair["key"]), context | _before(line[: pair.start()]))
                if named == "cpu_limit":
                    value = float(pair["value"].replace("_", ""))
                    yield named, value / 1000 if pair["unit"] == "m" else value, number, line
                elif named is not None:
                    yield named, _value(pair["value"], _unit(pair)), number, line


def _count(cpus: str) -> int:
    """Return how many CPUs a list such as 0-3,8 has; 0 where it is none."""
    ends = [part.split("-") for part in cpus.split(",") if part]
    if not all(len(pair) <= 2 and all(end.isdigit() for end in pair) for pair in ends):  # noqa: PLR2004 - a range
        return 0
    return sum(max(0, int(pair[-1]) - int(pair[0]) + 1) for pair in ends)


def _asked(line: str) -> tuple[str, str] | None:
    """Return the fact that the figure on the next line is, and its unit, where a line is such a command."""
    if not line.lstrip().startswith("$ "):
        return None
    return next(((name, unit) for name, command, unit in _ASKED if command.search(line)), None)


def _context(outer: list[tuple[int, frozenset[str]]], line: str) -> frozenset[str]:
    """Return the words of the keys that a line stands under, by its indent."""
    indent = len(line) - len(line.lstrip(" -"))
    while outer and outer[-1][0] >= indent:
        outer.pop()
    words: frozenset[str] = frozenset().union(*(own for _, own in outer))
    head = re.match(r"^[\s-]*\"?([A-Za-z][\w. -]{0,40})\"?:\s*$", line)
    if head:
        outer.append((indent, _words(head[1])))
    return words


def _before(text: str) -> frozenset[str]:
    """Return the words of the keys whose braces are still open at the end of a text."""
    open_keys: list[frozenset[str]] = []
    for index, char in enumerate(text):
        if char in "[{":
            key = _OPENS.search(text[max(0, index - 60) : index + 1])
            open_keys.append(_words(key[1]) if key else frozenset())
        elif char in "]}" and open_keys:
            open_keys.pop()
    return frozenset().union(*open_keys)


def _words(key: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", key.strip().lower()))


def _unit(pair: re.Match[str]) -> str:
    if pair["unit"]:
        return pair["unit"].lower()
    last = re.split(r"[^a-z0-9]+", pair["key"].strip().lower())[-1]
    if last in _UNITS:
        return last
    return "b" if float(pair["value"].replace("_", "")) > 10**7 else ""  # more MiB than any machine has


def _named(words: frozenset[str], context: frozenset[str]) -> str | None:
    """Return the fact that a key's words mean, where they mean one."""
    sized = bool(words & _UNITS)
    every = words | context
    if every & _OTHER:
        return None
    if words & _CPU:
        return "cpu_limit" if every & _LIMIT or words == frozenset(("cpus",)) else None
    if every & _VRAM and (
        words & (_FREE | _USED | _MEMORY | frozenset(("vram", "total", "dedicated"))) or sized
    ):
        return "vram_free_mib" if words & _FREE else "vram_used_mib" if words & _USED else "vram_total_mib"
    if every & _LIMIT and (every & _MEMORY or "memorymax" in words):
        return None if words & (_USED | _FREE) else "memory_limit_mib"
    if (words | context) & _MODEL and (words & _SIZE or sized):
        return "model_expected_mib" if "expected" in words else "model_mib"
    if words & _MEMORY:
        return "ram_free_mib" if words & _FREE else None if words & _USED else "ram_total_mib"
    return None


def _value(text: str, unit: str) -> float:
    return float(text.replace("_", "")) * _MIB.get(unit, 1.0)
