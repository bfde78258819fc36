"""Did the model load, onto the devices and with the context that were asked for?

Where weights lie is judged by the names of their buffers. The engine's count of offloaded layers is no
proof: a build with the RPC backend says that all layers are offloaded on a machine without any device.
"""

from __future__ import annotations

import re

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.facts.load_log_buffers import MIB, Buffer
from llamaops.launch.settings import LaunchSettings, Plan, resolve
from llamaops.schema.fact import Fact, Known, Unknown

HOST_WORDS = frozenset({"cpu", "none", "host"})
LEAST_SHARE = 0.97
"""Buffers may leave out tensors that the engine does not use."""
MOST_SHARE = 2.2
"""A file mapped whole, and all of it on devices too."""


@check(
    "load.model-is-loaded",
    title="The engine says that the model is loaded",
    boundary="model_load",
    remedy="read the first error line of the load log in this record",
)
def model_is_loaded(load: LoadFacts) -> Verdict:
    """Ask for the engine's own `model loaded`, of a model that the server has itself."""
    if isinstance(load.router_mode, Known) and load.router_mode.value:
        return Verdict(
            holds=False,
            summary="the server runs as a router and has no model of its own",
            expected="one model loaded",
            observed="router mode",
            remedy="start it with --model and a path that is not empty",
            evidence=_evidence(load),
        )
    holds = load.model_loaded.need()
    failure = load.failure.value.text if isinstance(load.failure, Known) else "no error line"
    name = load.model_path.value if isinstance(load.model_path, Known) else "the model"
    return Verdict(
        holds=holds,
        summary=f"{name} is loaded" if holds else f"{name} did not load: {failure}",
        expected="model loaded",
        observed="model loaded" if holds else failure,
        evidence=_evidence(load),
    )


@check(
    "load.weights-on-expected-device",
    title="The weights lie on the device that was asked for",
    boundary="model_load",
    remedy="see that the build has the device's backend, that --list-devices shows the device in this "
    "environment, and that its driver and device files are there",
)
def weights_on_expected_device(load: LoadFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that buffers of the weights lie where they were asked for, by name and size."""
    if not _asks_for_device(asked) and not _asks_for_host(asked):
        return NotApplicable("no device was asked for")
    on_devices, on_host = load.weights_on_devices_bytes.need(), load.weights_on_host_bytes.need()
    observed = f"{_where(load)}; {_mib(on_devices)} on devices, {_mib(on_host)} on the host"
    if _asks_for_host(asked):
        expected, holds = "all weights in host memory", on_devices == 0 and on_host > 0
    elif asked.expect_device:
        size = _bytes_on(load, asked.expect_device)
        expected, holds = f"weights on {asked.expect_device}", size > 0
    else:
        expected, holds = f"weights on a device (--n-gpu-layers {asked.n_gpu_layers})", on_devices > 0
    return Verdict(
        holds=holds,
        summary=f"expected {expected}, found {observed}{_claim(load, on_devices)}",
        expected=expected,
        observed=observed,
        evidence=_evidence(load),
    )


@check(
    "load.no-silent-cpu-fallback",
    title="The engine did not fall back to the CPU without saying so",
    boundary="model_load",
    remedy="use a build with the device's backend, and see with --list-devices that it finds the device; "
    "or ask for --n-gpu-layers 0 if the CPU is what you want",
)
def no_silent_cpu_fallback(load: LoadFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that layers asked onto a device are not all computed by the CPU."""
    if not _asks_for_device(asked):
        return NotApplicable("no device was asked for")
    ignored = next((line for line in load.warnings if line.known == "gpu-ignored"), None)
    if ignored is not None:
        return Verdict(
            holds=False,
            summary=f"the engine ignored the request for a device: {ignored.text}",
            expected="weights on a device",
            observed=f"line {ignored.number}: {ignored.text}",
            evidence=_evidence(load),
        )
    on_devices = load.weights_on_devices_bytes.need()
    return Verdict(
        holds=on_devices > 0,
        summary=f"{_mib(on_devices)} of weights are on devices ({_where(load)}){_claim(load, on_devices)}",
        expected="weights on a device",
        observed=_where(load),
        evidence=_evidence(load),
    )


@check(
    "load.context-as-asked",
    title="The context is as large as asked",
    boundary="model_load",
    remedy="ask for a context that fits the memory and the trained length, and switch the fit step off "
    "(--fit off) if the size must not change",
)
def context_as_asked(load: LoadFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that the context is at least what was asked and no more than its padding adds."""
    if asked.ctx_size is None:
        return NotApplicable("no context was asked for")
    trained = _known(load.n_ctx_train)
    wanted = asked.ctx_size or load.n_ctx_train.need()
    plan = _plan(asked, trained)
    found, what = _context(load, plan)
    most = max(plan.n_ctx or wanted, wanted)
    capped = plan.n_ctx_slot is not None and plan.n_ctx_seq is not None and plan.n_ctx_slot < plan.n_ctx_seq
    note = f"; a slot has {plan.n_ctx_slot}, the trained length" if capped else ""
    return Verdict(
        holds=wanted <= found <= most,
        summary=f"asked for a context of {wanted} tokens, {what} is {found} tokens{note}",
        expected=f"{wanted} to {most} tokens",
        observed=f"{found} tokens",
        evidence=_evidence(load),
    )


@check(
    "load.slots-as-asked",
    title="The server has the slots that were asked for",
    boundary="model_load",
    remedy="pass --parallel (and --kv-unified or --no-kv-unified) explicitly; defaults differ between builds",
)
def slots_as_asked(load: LoadFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that number and kind of slots are as asked."""
    if asked.via == "completion" or (asked.parallel is None and asked.kv_unified is None):
        return NotApplicable("no slots were asked for")
    if isinstance(load.n_slots, Unknown) and _holds_back(load):
        return NotApplicable("this build holds its own lines back; /props and /slots are asked instead")
    expected, observed = [], []
    if asked.parallel is not None:
        expected.append(f"{asked.parallel} slots")
        observed.append(f"{load.n_slots.need()} slots")
    if asked.kv_unified is not None:
        expected.append(_kind(asked.kv_unified))
        observed.append(_kind(load.kv_unified.need()))
    return Verdict(
        holds=expected == observed,
        summary=f"asked for {', '.join(expected)}, the log says {', '.join(observed)}",
        expected=", ".join(expected),
        observed=", ".join(observed),
        evidence=_evidence(load),
    )


@check(
    "load.no-errors-after-load",
    title="The log has no error after the model was loaded",
    boundary="model_load",
    severity="advisory",
    remedy="read the error line; it came while the server was already up",
)
def no_errors_after_load(load: LoadFacts) -> Verdict | NotApplicable:
    """Ask that nothing was logged as an error once the model was loaded."""
    if isinstance(load.loaded_line, Unknown) and _holds_back(load):
        return NotApplicable("this build holds its own lines back: the log does not say where the load ends")
    line = load.loaded_line.need()
    errors = [
        e
        for e in load.errors_after_loaded
        if not (e.harmless or _is_refusal(e.text) or _is_not_restored(e.text))
    ]
    first = f"line {errors[0].number}: {errors[0].text}" if errors else "no error"
    return Verdict(
        holds=not errors,
        summary=f"{len(errors)} error lines after line {line} (model loaded); {first}",
        expected="no error line",
        observed=first,
        evidence=_evidence(load),
    )


def _holds_back(load: LoadFacts) -> bool:
    """Whether it was /health that said the model is loaded, because the log does not say so in time."""
    return isinstance(load.model_loaded, Known) and load.model_loaded.source.kind == "http"


def _is_refusal(text: str) -> bool:
    """Whether a client's request was refused as documented: our own probes ask for it."""
    return "exceeds the available context size" in text or "logits computation" in text


NOT_RESTORED = (
    re.compile(r"state_read_meta: failed to find \d+ available cells in kv cache"),
    re.compile(r"state_seq_set_data: error loading state: failed to restore kv cache"),
    re.compile(r"failed to restore state with size \d+"),
)


def _is_not_restored(text: str) -> bool:
    """Whether a prompt kept in host memory found no room in the KV cache: it is processed anew, none fails.

    Our own context probe fills a cache that slots share, and brings this about in builds that keep prompts.
    """
    return any(pattern.search(text) for pattern in NOT_RESTORED)


@check(
    "load.device-is-hardware",
    title="The device that holds weights is hardware, not a driver that computes on the CPU",
    boundary="model_load",
    severity="advisory",
    remedy="install the driver of the GPU, or run on the CPU backend, which is faster than a software driver",
)
def device_is_hardware(load: LoadFacts) -> Verdict | NotApplicable:
    """Ask what the devices with weights really are: llvmpipe is offered as a Vulkan device."""
    if load.weights_on_devices_bytes.need() == 0:
        return NotApplicable("no weights are on a device")
    devices = {device.name: device for device in load.devices_present.need()}
    used = sorted({b.device for b in _buffers(load) if b.on_device and b.size_bytes and b.device})
    named = {name: devices[name].description for name in used if name in devices}
    software = [name for name in named if devices[name].software]
    described = ", ".join(f"{name} ({text})" for name, text in named.items()) or ", ".join(used)
    return Verdict(
        holds=not software,
        summary=f"weights are on {described}" + ("; that is a software driver" if software else ""),
        expected="hardware",
        observed=described,
        evidence=_evidence(load),
    )


@check(
    "load.buffers-match-model",
    title="The buffers of the weights are as large as the tensors of the file",
    boundary="model_load",
    severity="advisory",
    remedy="see whether another file was loaded than the one that was inspected",
)
def buffers_match_model(load: LoadFacts, model: GgufFacts) -> Verdict:
    """Ask that the buffers together hold the model: no less, and no more than mapped and copied."""
    buffers = sum(buffer.size_bytes for buffer in load.weight_buffers.need())
    tensors = model.tensor_bytes.need()
    return Verdict(
        holds=LEAST_SHARE * tensors <= buffers <= MOST_SHARE * tensors + 16 * MIB,
        summary=f"weight buffers hold {_mib(buffers)}, the file's tensors are {_mib(tensors)}",
        expected=f"about {_mib(tensors)}, more where a mapped file is also on a device",
        observed=_mib(buffers),
        evidence=_evidence(load),
    )


def _asks_for_device(asked: AskedFacts) -> bool:
    if asked.expect_device:
        return asked.expect_device.lower() not in HOST_WORDS
    layers = asked.n_gpu_layers
    return layers == "all" or (layers is not None and layers.isdigit() and int(layers) > 0)


def _asks_for_host(asked: AskedFacts) -> bool:
    if asked.expect_device:
        return asked.expect_device.lower() in HOST_WORDS
    return asked.n_gpu_layers == "0"


def _bytes_on(load: LoadFacts, expected: str) -> int:
    """Return the bytes of weights on devices whose name begins as expected; CUDA1 is not CUDA10."""
    buffers = _buffers(load)
    if buffers:
        return sum(
            b.size_bytes
            for b in buffers
            if b.on_device and any(_begins(name, expected) for name in (b.device, b.name) if name)
        )
    rows = load.breakdown.value if isinstance(load.breakdown, Known) else ()
    return sum(row.model_bytes for row in rows if row.kind == "device" and _begins(row.name, expected))


def _begins(name: str, expected: str) -> bool:
    ending = r"(?!\d)" if expected[-1:].isdigit() else ""
    return re.match(re.escape(expected) + ending, name, re.IGNORECASE) is not None


def _buffers(load: LoadFacts) -> tuple[Buffer, ...]:
    return load.weight_buffers.value if isinstance(load.weight_buffers, Known) else ()


def _where(load: LoadFacts) -> str:
    buffers = _buffers(load)
    if buffers:
        return ", ".join(f"{b.name} {_mib(b.size_bytes)}" for b in buffers[:8])
    rows = load.breakdown.value if isinstance(load.breakdown, Known) else ()
    return ", ".join(f"{row.name} {_mib(row.model_bytes)}" for row in rows[:8]) or "no buffer lines"


def _claim(load: LoadFacts, on_devices: int) -> str:
    """Say that the engine's own count is no proof, where it contradicts the buffers."""
    if on_devices == 0 and isinstance(load.offload, Known) and load.offload.value.layers > 0:
        count = f"{load.offload.value.layers}/{load.offload.value.of}"
        return f"; its line of {count} offloaded layers proves nothing"
    return ""


def _plan(asked: AskedFacts, trained: int | None) -> Plan:
    settings = LaunchSettings(
        model_path="asked",
        ctx_size=asked.ctx_size,
        parallel=1 if asked.via == "completion" else asked.parallel,
        kv_unified=asked.kv_unified,
    )
    return resolve(settings, n_ctx_train=trained)


def _context(load: LoadFacts, plan: Plan) -> tuple[int, str]:
    """Return the context in tokens and where it was read."""
    if isinstance(load.n_ctx, Known):
        return load.n_ctx.value, "the engine's context"
    slot = load.n_ctx_slot
    if isinstance(slot, Known) and isinstance(load.n_slots, Known) and slot.value == plan.n_ctx_slot:
        # Default verbosity shows slots only; one that is smaller may be capped by the trained length.
        total = slot.value if plan.kv_unified else slot.value * load.n_slots.value
        return total, "the slots' context"
    return load.n_ctx.need(), "the engine's context"


def _known(fact: Fact[int]) -> int | None:
    return fact.value if isinstance(fact, Known) else None


def _kind(unified: bool) -> str:
    return "one shared KV cache" if unified else "a KV cache for each slot"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.2f} MiB"


def _evidence(load: LoadFacts) -> tuple[str, ...]:
    evidence = load.model_loaded.source.evidence
    return (evidence,) if evidence else ()
