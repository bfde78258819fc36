"""Can this host carry the run: memory, processor, limits, and the place of the model?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.host import HostFacts
from llamaops.facts.host_cpu import family_of
from llamaops.schema.amount import amount
from llamaops.schema.fact import Fact, Known, Unknown

_OPEN_FILES = 1024
_STORAGE_MEANS = {
    "network": "a network file system: every page that leaves memory is fetched again over the network",
    "memory": "a file system in memory: the file takes memory that the server needs, and is never dropped",
    "host_share": "a folder shared with a virtual machine's host: slow to read and often unable to map files",
    "user_space": "a file system in user space: slow to read",
}


def _evidence(*facts: Fact[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.source.evidence for fact in facts if fact.source.evidence is not None))


def _binding(host: HostFacts) -> str:
    """Say which limit decides how much memory is available."""
    bound = host.memory.bound_by.need()
    if bound == "host":
        return "free on the host"
    limit = host.memory.cgroup_limit_bytes.need()
    return f"left under the control group limit of {amount(limit)} ({bound})"


@check(
    "host.memory-is-known",
    title="The memory that a server may take is known, the container's limit included",
    boundary="host",
    remedy="run where /proc/meminfo and our own control group's files can be read",
)
def memory_is_known(host: HostFacts) -> Verdict:
    """Ask for the memory that is really available, whichever limit binds."""
    available = host.memory.effective_available_bytes.need()
    total = host.memory.effective_total_bytes.need()
    return Verdict(
        holds=True,
        summary=f"{amount(available)} of {amount(total)} available: {_binding(host)}",
        expected="available memory and the limit that binds it",
        observed=amount(available),
        evidence=_evidence(host.memory.available_bytes),
    )


@check(
    "host.limits-are-known",
    title="The limits that a server inherits are known",
    boundary="host",
    severity="advisory",
    remedy="run where /proc/self/limits can be read, or look at `ulimit -a` by hand",
)
def limits_are_known(host: HostFacts) -> Verdict:
    """Ask for the limits on locked memory and open files."""
    locked, files = host.limits.memlock_bytes.need().soft, host.limits.open_files.need().soft
    memory = "unlimited" if locked is None else amount(locked)
    observed = f"locked memory {memory}, open files {'unlimited' if files is None else files}"
    return Verdict(holds=True, summary=observed, expected="both limits", observed=observed)


@check(
    "host.cpu-can-run-llamacpp",
    title="The processor has the instruction sets that common builds are compiled for",
    boundary="host",
    severity="advisory",
    remedy="use a build with run-time dispatch (GGML_CPU_ALL_VARIANTS) or one compiled on this machine",
)
def cpu_can_run_llamacpp(host: HostFacts) -> Verdict | NotApplicable:
    """Compare with what packaged builds assume; a build for more ends with an illegal instruction."""
    family = family_of(host.os.architecture.need())
    usual = {"x86": ("avx", "avx2", "fma", "f16c"), "arm": ("asimd",)}.get(family)
    if usual is None:
        return NotApplicable(f"no common packaged build for {family}")
    flags = host.cpu.flags.need()
    missing = [name for name in usual if name not in flags and not (name == "asimd" and "neon" in flags)]
    observed = ", ".join(flags) or "none of those that llama.cpp has code for"
    return Verdict(
        holds=not missing,
        summary=f"the processor has {observed}" + (f"; it lacks {', '.join(missing)}" if missing else ""),
        expected=", ".join(usual),
        observed=observed,
    )


@check(
    "host.memory-holds-model",
    title="Memory holds at least the model's weights",
    boundary="host",
    remedy="take a smaller quantization or model, free memory, or raise the limit that binds",
)
def memory_holds_model(
    gguf: GgufFacts, host: HostFacts, asked: AskedFacts, accelerators: AcceleratorFacts
) -> Verdict:
    """Compare the weights with what may be taken now; KV cache and compute buffers come on top."""
    weights = gguf.tensor_bytes.need()
    available = host.memory.effective_available_bytes.need()
    binding = _binding(host)
    device = 0 if asked.n_gpu_layers == "0" else device_free_bytes(accelerators)
    holds = weights <= available + device
    on_device = f" and {amount(device)} free on devices" if device and weights > available else ""
    return Verdict(
        holds=holds,
        summary=f"weights of {amount(weights)} against {amount(available)} {binding}{on_device};"
        " KV cache and compute buffers come on top"
        + (", and the part that is not on a device must fit the host" if on_device and holds else ""),
        expected=f"at least {amount(weights)}",
        observed=f"{amount(available)} {binding}{on_device}",
        remedy=_memory_remedy(host, weights),
        evidence=_evidence(gguf.tensor_bytes, host.memory.available_bytes),
    )


def device_free_bytes(accelerators: AcceleratorFacts) -> int:
    """Return the free memory of devices that have their own, as far as drivers tell it."""
    free = 0
    if isinstance(accelerators.nvidia.devices, Known):
        for card in accelerators.nvidia.devices.value:
            told = [part.memory_free_bytes for part in card.mig_devices] or [card.memory_free_bytes]
            free += sum(fact.value for fact in told if isinstance(fact, Known))
    if isinstance(accelerators.amd.devices, Known):
        for one in accelerators.amd.devices.value:
            if isinstance(one.memory_total_bytes, Known) and isinstance(one.memory_used_bytes, Known):
                free += one.memory_total_bytes.value - one.memory_used_bytes.value
    return free


def _memory_remedy(host: HostFacts, weights: int) -> str | None:
    limit = host.memory.cgroup_limit_bytes
    if isinstance(limit, Known) and host.memory.bound_by.need() != "host":
        total = host.memory.total_bytes
        room = f" (the host has {amount(total.value)})" if isinstance(total, Known) else ""
        return (
            f"raise the container's memory limit above {amount(weights)} plus KV cache and buffers{room},"
            " or take a smaller quantization"
        )
    return None


@check(
    "host.model-file-is-readable",
    title="We may read the model file",
    boundary="host",
    remedy="give the user that runs llama.cpp permission to read the file and to search its folders",
)
def model_file_is_readable(host: HostFacts) -> Verdict | NotApplicable:
    """Ask the kernel whether this user may read the file; it is not opened here."""
    fact = host.model_folder.readable
    if isinstance(fact, Unknown) and fact.why == "not_attempted":
        return NotApplicable("no model was named")
    readable = fact.need()
    return Verdict(
        holds=readable,
        summary="this user may read the model file" if readable else "this user may not read the model file",
        expected="read permission",
        observed="granted" if readable else "refused",
    )


@check(
    "host.model-folder-is-local",
    title="The model lies on a local file system",
    boundary="host",
    severity="advisory",
    remedy="copy the model to a local disk, or load it without mapping (--load-mode none, --no-mmap before)",
)
def model_folder_is_local(host: HostFacts) -> Verdict | NotApplicable:
    """Name file systems on which a mapped model is slow or takes memory twice."""
    fact = host.model_folder.storage
    if isinstance(fact, Unknown) and fact.why == "not_attempted":
        return NotApplicable("no model was named")
    storage, kind = fact.need(), host.model_folder.file_system.need()
    meaning = _STORAGE_MEANS.get(storage)
    return Verdict(
        holds=meaning is None,
        summary=f"the model lies on {kind}" + (f", {meaning}" if meaning else ""),
        expected="a local file system",
        observed=kind,
        remedy="keep the model on a disk, or count the file's size as memory in use"
        if storage == "memory"
        else None,
    )


@check(
    "host.swap-is-not-needed",
    title="The run does not have to swap",
    boundary="host",
    severity="advisory",
    remedy="free memory before a measurement: a server whose pages are swapped answers at disk speed",
)
def swap_is_not_needed(host: HostFacts) -> Verdict | NotApplicable:
    """Tell a host that already swaps a good part of its memory."""
    total, free = host.memory.swap_total_bytes.need(), host.memory.swap_free_bytes.need()
    if total == 0:
        return NotApplicable("the host has no swap")
    used = total - free
    available = host.memory.effective_available_bytes.need()
    # Old pages rest in swap on healthy hosts; more of them than there is room for is another matter.
    return Verdict(
        holds=used <= available,
        summary=f"{amount(used)} of {amount(total)} swap in use, {amount(available)} of memory available",
        expected="less in swap than memory could take back",
        observed=f"{amount(used)} in swap",
    )


@check(
    "host.memlock-allows-mlock",
    title="The limit on locked memory allows what --mlock asks for",
    boundary="host",
    severity="advisory",
    remedy="raise the limit (LimitMEMLOCK=infinity in the unit, --ulimit memlock=-1:-1 for a container), or"
    " drop mlock: the server goes on without it, unlocked",
)
def memlock_allows_mlock(host: HostFacts, asked: AskedFacts, gguf: GgufFacts) -> Verdict | NotApplicable:
    """Compare the weights with the soft limit, unless a capability lifts it."""
    if not asked.mlock:
        return NotApplicable("mlock was not asked for")
    limit = host.limits.memlock_bytes.need().soft
    lifted = host.limits.may_lock_any_memory
    if limit is None or (isinstance(lifted, Known) and lifted.value):
        return Verdict(holds=True, summary="locked memory is not limited for us", observed="unlimited")
    weights = gguf.tensor_bytes.need()
    return Verdict(
        holds=weights <= limit,
        summary=f"weights of {amount(weights)} against a locked-memory limit of {amount(limit)}",
        expected=f"at least {amount(weights)}",
        observed=amount(limit),
    )


@check(
    "host.threads-within-quota",
    title="The threads have processors to run on",
    boundary="host",
    severity="advisory",
    remedy="set --threads to what the quota and the affinity leave, rounded down, and measure again",
)
def threads_within_quota(host: HostFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Compare threads with affinity and quota; without --threads a build counts the visible cores."""
    share = host.cpu.effective_cpus.need()
    threads = asked.threads
    if threads is None or threads <= 0:
        if not isinstance(host.cpu.quota_cpus, Known):
            return NotApplicable("no quota, and the engine chooses its threads by what it sees")
        threads, whose = _default_threads(host), "by default"
    else:
        whose = "asked for"
    return Verdict(
        holds=threads <= max(1, share),
        summary=f"{threads} threads {whose} on {share:g} processors{_throttled(host)}",
        expected=f"at most {max(1, int(share))} threads",
        observed=f"{threads} threads",
        remedy=f"set --threads {max(1, int(share))} and measure again",
    )


def _default_threads(host: HostFacts) -> int:
    """Return what the engine takes by itself: the physical cores it may run on."""
    allowed = host.cpu.affinity_cpus.need()
    cores = host.cpu.cores
    return min(cores.value, allowed) if isinstance(cores, Known) else allowed


def _throttled(host: HostFacts) -> str:
    periods, throttled = host.cpu.quota_periods, host.cpu.throttled_periods
    if isinstance(periods, Known) and isinstance(throttled, Known) and periods.value and throttled.value:
        return f"; the group was held back in {throttled.value} of {periods.value} periods so far"
    return ""


@check(
    "host.open-files-limit",
    title="A server may open the files and connections it needs",
    boundary="host",
    severity="advisory",
    remedy="raise the limit (LimitNOFILE= in the unit, `ulimit -n`) to 1024 or more",
)
def open_files_limit(host: HostFacts) -> Verdict:
    """Compare the soft limit with what shards and connections take."""
    limit = host.limits.open_files.need().soft
    told = "unlimited" if limit is None else str(limit)
    return Verdict(
        holds=limit is None or limit >= _OPEN_FILES,
        summary=f"open files limited to {told}",
        expected=f"at least {_OPEN_FILES}",
        observed=told,
    )


@check(
    "host.commit-limit-allows-model",
    title="The kernel promises enough memory for the model",
    boundary="host",
    severity="advisory",
    remedy="set vm.overcommit_memory to 0, raise vm.overcommit_ratio, or map the model instead of reading it",
)
def commit_limit_allows_model(host: HostFacts, gguf: GgufFacts) -> Verdict | NotApplicable:
    """Compare with the commit limit where the kernel does not overcommit."""
    if host.memory.overcommit_mode.need() != 2:  # noqa: PLR2004 - the mode that refuses
        return NotApplicable("the kernel overcommits")
    left = host.memory.commit_limit_bytes.need() - host.memory.committed_bytes.need()
    weights = gguf.tensor_bytes.need()
    return Verdict(
        holds=weights <= left,
        summary=f"weights of {amount(weights)} against {amount(max(0, left))} that the kernel still promises",
        expected=f"at least {amount(weights)}",
        observed=amount(max(0, left)),
    )
