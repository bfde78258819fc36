"""Fit: what a load will take, against what there is, before anything is loaded."""

from __future__ import annotations

from typing import Literal

import msgspec

from llamaops.errors import UsageError
from llamaops.estimate.fit_facts import FitFacts, MemoryPart, Room
from llamaops.estimate.kv_cache import refused_cache
from llamaops.estimate.memory import Estimate, estimate
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Build, Load
from llamaops.estimate.projector import projector_bytes
from llamaops.estimate.read import model_of
from llamaops.estimate.resolve import FrontEnd, build_of, least_build_of, load_for
from llamaops.estimate.room import largest_room
from llamaops.facts.accelerator import AcceleratorFacts, collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import collect_gguf
from llamaops.facts.gguf_probe import look
from llamaops.facts.host import HostFacts, collect_host
from llamaops.facts.version_text import VersionFacts
from llamaops.launch.settings import LaunchSettings
from llamaops.operations.session import Session
from llamaops.operations.side_by_side import side_by_side
from llamaops.schema.fact import Fact, Known, Source, Unknown, known, not_attempted
from llamaops.system.catalogue import catalogue
from llamaops.system.machine import Machine

NOT_COVERED = (
    "nothing was loaded: that the model loads is not shown by an estimate",
    "what drivers and the program itself take on top (some hundred MiB on a card) is not in the sums",
)
PROJECTOR_FORMULA = (
    "replay of the graph allocator on the projector's graph: for the picture of the load, "
    "and for the largest one (clip_model_loader::warmup)"
)
PROMPT_CACHE_BYTES = 8192 * 2**20


class FitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to work out."""

    model_path: str
    settings: LaunchSettings
    front_end: FrontEnd = "server"
    cpu_moe_layers: int = 0
    offloads_cache: bool = True
    full_window_cache: bool = False
    pooling: str | None = None
    mmproj: str | None = None
    engine: str | None = None
    build: Build | None = None
    least_build: Build | None = None
    """Habits of the build that takes least, where it does not tell which it is."""
    picture: str | None = None
    """File to draw memory by part against context into."""


def fit(session: Session, machine: Machine, request: FitRequest) -> str:
    """Collect model, host and cards side by side, work the need out, and judge it."""
    session.begin(("model_file", "host"), NOT_COVERED)
    session.add("asked", AskedFacts(via="fit", model_path=request.model_path))
    with session.step("look", f"read the header of {request.model_path}, host memory and cards"):
        seen = side_by_side(
            {
                "model": lambda: collect_gguf(machine, request.model_path),
                "host": lambda: collect_host(machine, model_path=request.model_path),
                "accelerators": lambda: collect_accelerators(machine),
            }
        )
    for name in ("model", "host", "accelerators"):
        session.add(name, seen[name])
    session.judge("model")
    model = read_model(machine, request.model_path)
    if model is None:
        return "nothing could be worked out: the header is not whole"
    if request.engine is not None and request.build is None:
        build, least = _engine_build(machine, request.engine)
        request = msgspec.structs.replace(request, build=build, least_build=least)
    with session.step("estimate", "work out what the load takes"):
        facts = fit_facts(model, request, seen["host"], seen["accelerators"], machine)
    if request.engine is not None:
        from llamaops.operations.ask_engine import ask_engine

        with session.step("ask-engine", f"let {request.engine} project the same, and end it before it loads"):
            answer = ask_engine(machine, request.engine, request.model_path, request.settings)
        facts = msgspec.structs.replace(facts, engine=answer)
    session.add("fit", facts)
    session.judge("fit")
    drawn = ""
    if request.picture is not None:
        from llamaops.operations.fit_plot import write_plot

        _, load = _load(model, request, seen["accelerators"])
        drawn = write_plot(model, load, request.picture, session.redactor)
    return f"{verdict(facts)}; {drawn}" if drawn else verdict(facts)


def _load(model: Model, request: FitRequest, accelerators: AcceleratorFacts | None) -> tuple[str, Load]:
    return load_for(
        model,
        request.settings,
        front_end=request.front_end,
        host_experts=request.cpu_moe_layers,
        offloads_cache=request.offloads_cache,
        full_window_cache=request.full_window_cache,
        pooling=request.pooling,
        card=_card(request, accelerators),
        build=request.build,
    )


def _engine_build(machine: Machine, program: str) -> tuple[Build, Build]:
    from llamaops.facts.binary_probe import ask, read_version

    return builds_of(read_version(ask(machine, program, "--version")))


def builds_of(version: VersionFacts) -> tuple[Build, Build]:
    """Return the habits of the build that a program says it is, and the least that it could take.

    A clone without history calls itself build 1; of those that we fetch the commit tells the number.
    """
    number = version.build.value if isinstance(version.build, Known) else None
    semver = version.semver.value if isinstance(version.semver, Known) else None
    commit = version.commit.value if isinstance(version.commit, Known) else None
    for item in catalogue().values():
        if commit and item.commit and item.build and item.commit == commit[: len(item.commit)]:
            number = int(item.build.removeprefix("b"))
    return build_of(number, semver), least_build_of(number, semver)


def read_model(machine: Machine, path: str) -> Model | None:
    """Return the model as the estimator takes it, None where its headers are not whole."""
    return model_of(look(machine, path))


def fit_facts(
    model: Model,
    request: FitRequest,
    host: HostFacts | None,
    accelerators: AcceleratorFacts | None,
    machine: Machine,
    *,
    seeks_room: bool = True,
) -> FitFacts:
    """Work out what a load takes and hold it against what there is.

    Raises: UsageError for a request that no engine would take.
    """
    plan, load = _load(model, request, accelerators)
    if refused := refused_cache(model, load):
        raise UsageError(
            f"{request.model_path}: {refused}, which the engine refuses with flash attention",
            hint="take f16 or another type whose blocks divide it (--cache-type-k, --cache-type-v)",
        )
    extra, missing = _projector(machine, request, load)
    found = _estimate(model, load, request.least_build)
    found = msgspec.structs.replace(found, unknown=found.unknown + missing)
    available, free = _available(host), _device_free(accelerators)
    return FitFacts(
        model_path=request.model_path,
        architecture=model.architecture,
        is_described=found.is_described,
        front_end=request.front_end,
        plan=plan,
        context_tokens=load.context_tokens,
        slots=load.slots,
        parts=tuple(_part(p.name, p.place, p.low, p.high, p.formula) for p in found.parts) + extra,
        unknown=found.unknown,
        host_bytes=_sum(found, "host", extra),
        host_low_bytes=found.low("host") + sum(p.low_bytes for p in extra if p.place == "host"),
        device_bytes=_sum(found, "device", extra),
        device_low_bytes=found.low("device") + sum(p.low_bytes for p in extra if p.place == "device"),
        host_available_bytes=available,
        device_free_bytes=free,
        prompt_cache_bytes=_prompt_cache(request.front_end),
        room=_room(model, load, found, available, free)
        if seeks_room
        else not_attempted("the largest settings were not sought; `llamaops fit` does"),
        engine=not_attempted("the engine was not asked; --ask-engine does"),
        naive_bytes=_naive(model, load, counts_cache=bool(found.parts)),
    )


def _estimate(model: Model, load: Load, least: Build | None) -> Estimate:
    """Return the estimate; parts are bands where the build could be one that takes less."""
    found = estimate(model, load)
    if least is None or least == load.build:
        return found
    other = estimate(model, msgspec.structs.replace(load, build=least))
    lows = {(part.name, part.place): part.low for part in other.parts}
    parts = [
        msgspec.structs.replace(part, low=min(part.low, lows.get((part.name, part.place), 0)))
        for part in found.parts
    ]
    return msgspec.structs.replace(found, parts=tuple(parts))


def _card(request: FitRequest, accelerators: AcceleratorFacts | None) -> str:
    """Return the driver of the card that is meant: NVIDIA's where there is one, else Vulkan."""
    wanted = request.settings.n_gpu_layers
    if wanted in {None, "auto"} or request.settings.device == "none":
        return ""
    devices = None if accelerators is None else accelerators.nvidia.devices
    if isinstance(devices, Known) and devices.value:
        return "cuda"
    return "vulkan" if wanted not in {"0", "-1"} else ""


def verdict(facts: FitFacts) -> str:
    """Return how it ended in a sentence."""
    pairs = [(facts.host_bytes, facts.host_low_bytes, facts.host_available_bytes)]
    if facts.device_low_bytes:
        pairs.append((facts.device_bytes, facts.device_low_bytes, facts.device_free_bytes))
    answers = [_answer(*pair) for pair in pairs]
    word = "does not fit" if "no" in answers else "unknown" if "unknown" in answers else "fits"
    return f"{word}: {facts.plan}"


def _answer(need: Fact[int], low: int, room: Fact[int]) -> Literal["yes", "no", "unknown"]:
    if isinstance(room, Unknown):
        return "unknown"
    if low > room.value:
        return "no"
    if isinstance(need, Unknown):
        return "unknown"
    return "yes" if need.value <= room.value else "no"


def _part(name: str, place: str, low: int, high: int, formula: str) -> MemoryPart:
    where: Literal["host", "device"] = "device" if place == "device" else "host"
    return MemoryPart(name=name, place=where, low_bytes=low, high_bytes=high, formula=formula)


def _sum(found: Estimate, place: str, extra: tuple[MemoryPart, ...]) -> Fact[int]:
    source = Source(kind="computed", name=f"sum of the parts on the {place}, upper ends")
    if found.unknown:
        return Unknown(why="unsupported", detail="; ".join(found.unknown), source=source)
    return known(found.high(place) + sum(p.high_bytes for p in extra if p.place == place), source)


def _projector(
    machine: Machine, request: FitRequest, load: Load
) -> tuple[tuple[MemoryPart, ...], tuple[str, ...]]:
    """Return the parts of a projector, and what of it is unknown."""
    if request.mmproj is None:
        return (), ()
    probe = look(machine, request.mmproj)
    model = model_of(probe)
    if model is None:
        raise UsageError(
            f"--mmproj {request.mmproj}: its header could not be read",
            hint="`llamaops inspect` of the same file says why",
        )
    if probe.kind != "projector":
        raise UsageError(
            f"--mmproj {request.mmproj}: it is no projector but {probe.kind}",
            hint="take the mmproj file that was published with this model",
        )
    size = sum(weight.size_bytes or 0 for weight in model.weights)
    place = "device" if load.card else "host"
    weights = _part("projector", place, size, size, "sum of the projector's tensors")
    compute = projector_bytes(model, load.card, load.build)
    if compute is None:
        return (weights,), ("the compute buffer of a projector of this type is not worked out",)
    parts = [weights]
    for side, band in (("host", compute.host), ("device", compute.device)):
        if band[1]:
            parts.append(_part("projector compute", side, *band, PROJECTOR_FORMULA))
    return tuple(parts), ()


def _available(host: HostFacts | None) -> Fact[int]:
    return (
        not_attempted("the host was not looked at") if host is None else host.memory.effective_available_bytes
    )


def _device_free(accelerators: AcceleratorFacts | None) -> Fact[int]:
    """Return the free memory of all cards together, where their driver tells it."""
    if accelerators is None:
        return not_attempted("cards were not looked for")
    devices = accelerators.nvidia.devices
    if isinstance(devices, Unknown):
        return devices
    source = Source(kind="computed", name="sum of the free memory of the NVIDIA devices")
    sizes = [device.memory_free_bytes for device in devices.value]
    unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
    if unknown is not None:
        return unknown
    return known(sum(size.value for size in sizes if isinstance(size, Known)), source)


def _prompt_cache(front_end: FrontEnd) -> Fact[int]:
    source = Source(kind="computed", name="the server's --cache-ram, 8192 MiB where it is not given")
    return known(PROMPT_CACHE_BYTES if front_end == "server" else 0, source)


def _room(model: Model, load: Load, found: Estimate, available: Fact[int], free: Fact[int]) -> Fact[Room]:
    source = Source(kind="computed", name="the same estimate for other settings, by bisection")
    if isinstance(available, Unknown):
        return available
    if found.unknown:
        return Unknown(why="unsupported", detail="; ".join(found.unknown), source=source)
    device = free.value if isinstance(free, Known) else None
    if load.gpu_layers > 0 and device is None:
        return Unknown(why="absent", detail="the free memory of the cards is not known", source=source)
    context, slots, cache = largest_room(model, load, available.value, device)
    return known(Room(context_tokens=context, slots=slots, cache_type=cache), source)


def _naive(model: Model, load: Load, *, counts_cache: bool) -> int:
    """Return what many calculators say: the file and a full cache in F16; of absurd keys the file."""
    file_bytes = sum(weight.size_bytes or 0 for weight in model.weights)
    if not counts_cache:  # as many layers as a broken header says would keep us busy for ever
        return file_bytes
    row = sum(
        2 * (model.key_length() + model.value_length()) * model.kv_heads(i) for i in range(model.layers)
    )
    return file_bytes + load.context_tokens * row
