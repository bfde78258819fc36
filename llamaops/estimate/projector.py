"""What a vision projector computes with: the graph that the engine reserves when it loads it.

The engine reserves for a picture of a fixed size, or for a small one where pictures of any size are taken; a
larger picture makes the buffer grow later. So the figure is a band: at the load, and for the largest picture
that the projector takes.

Source: clip_model_loader::load_hparams and warmup in tools/mtmd/clip.cpp of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import msgspec

from llamaops.estimate import projector_graphs as graphs
from llamaops.estimate.allocator import CPU_ALIGNMENT, Buffer, Replay
from llamaops.estimate.card_support import HEAD_STEP
from llamaops.estimate.cards import memory_of
from llamaops.estimate.compute import Band
from llamaops.estimate.graph import Tensor
from llamaops.estimate.model import Model
from llamaops.estimate.placement import place_graph
from llamaops.estimate.plan import Build, Load
from llamaops.estimate.projector_tower import Tower

LARGEST_SIDE = 2**14
"""Pixels; a header that asks for more is not believed."""
OLDER = 0.9, 1.2
"""Between which parts of the figure the older way of rotating was seen to lie."""
MOST_BLOCKS = 512


class ProjectorBytes(msgspec.Struct, frozen=True):
    """Bytes of the compute buffers on both sides, each as a band."""

    host: Band
    device: Band


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One type of projector."""

    finish: Callable[[Tower], Tensor]
    """Makes the graph."""
    merge: int = 1
    """How many patches in a row become one, where the header does not say."""
    merge_key: str = "vision.projector.scale_factor"
    """Key of the header that does."""
    first_side: int = 0
    """Side of the picture of the load, in merged patches; 0 where pictures are of the header's size."""
    most_tokens: int = 0
    """Merged patches of the largest picture; 0 where pictures are of the header's size."""
    rotates_by_two: bool = False
    """Whether rows and columns are rotated one after the other, which older builds did in another way."""


def projector_bytes(model: Model, card: str, build: Build) -> ProjectorBytes | None:
    """Return the sizes of a projector's compute buffers, None for a type that is not described.

    Units: bytes. `card`: driver of the card that it is on, empty for the host.
    """
    kind = KINDS.get(str(model.value("projector_type", "") or model.value("vision.projector_type", "")))
    if kind is None or model.value("has_audio_encoder", default=False):
        return None
    try:
        merge = model.number(kind.merge_key, kind.merge)
        found = [_replayed(model, kind, side, merge, card, build) for side in _sides(model, kind, merge)]
    except (KeyError, ValueError, ZeroDivisionError, IndexError, TypeError):
        return None
    less, more = OLDER if kind.rotates_by_two and not build.projects_rows else (1.0, 1.0)
    sides = zip(found[0], found[-1], strict=True)
    host, device = ((int(first * less), int(max(first, last) * more)) for first, last in sides)
    return ProjectorBytes(host, device)


def _sides(model: Model, kind: Kind, merge: int) -> list[int]:
    """Return the sides of the pictures: of the load, and the largest where it is another one.

    Raises: ValueError for a header that nobody would write.
    """
    step = model.number("vision.patch_size") * merge
    sides = [model.number("vision.image_size")]
    if kind.most_tokens:
        largest = isqrt(kind.most_tokens) * step
        sides = [kind.first_side * step or largest, largest]
    if step < 1 or not 0 < max(sides) <= LARGEST_SIDE or model.number("vision.block_count") > MOST_BLOCKS:
        raise ValueError
    return sides


def _replayed(model: Model, kind: Kind, side: int, merge: int, card: str, build: Build) -> tuple[int, int]:
    head = model.number("vision.attention.head_dim") or (
        model.number("vision.embedding_length") // model.number("vision.attention.head_count")
    )
    flash = card != "vulkan" or head % HEAD_STEP == 0
    tower = Tower(model, side, merge, flash=flash, casts_masks=not build.mixes_inputs)
    tower.g.expand(kind.finish(tower))
    if not card:
        return Replay([Buffer(CPU_ALIGNMENT)]).run(tower.g)[0], 0
    load = Load(
        context_tokens=0, sequence_tokens=0, slots=1, is_unified=True, batch_tokens=tower.patches, outputs=0,
        card=card, gpu_layers=1,
    )  # fmt: skip
    rules = memory_of(card)
    buffers = [Buffer(CPU_ALIGNMENT), Buffer(rules.alignment, rules.chunk_bytes)]
    host, device = Replay(buffers).run(place_graph(tower.g, model, load))
    return host, device


SPATIAL = "vision.spatial_merge_size"
KINDS: dict[str, Kind] = {
    "mlp": Kind(finish=graphs.llava),
    "gemma3": Kind(finish=graphs.gemma3, merge=4),
    "idefics3": Kind(finish=graphs.idefics3),
    "internvl": Kind(finish=graphs.internvl),
    "llama4": Kind(finish=graphs.llama4, rotates_by_two=True),
    "lfm2": Kind(finish=graphs.lfm2, most_tokens=256),
    "pixtral": Kind(
        finish=graphs.pixtral, merge_key=SPATIAL, first_side=16, most_tokens=1024, rotates_by_two=True
    ),
    "kimivl": Kind(finish=graphs.kimi, first_side=16, most_tokens=1024, rotates_by_two=True),
    "gemma4v": Kind(finish=graphs.gemma4, merge=3, first_side=16, most_tokens=1120, rotates_by_two=True),
    "glm4v": Kind(finish=graphs.glm4, merge=2, merge_key=SPATIAL, first_side=46, most_tokens=4096),
    "qwen2vl_merger": Kind(finish=graphs.qwen2, merge=2, merge_key=SPATIAL, first_side=46, most_tokens=4096),
    "qwen2.5vl_merger": Kind(
        finish=graphs.qwen25, merge=2, merge_key=SPATIAL, first_side=46, most_tokens=4096
    ),
    "qwen3vl_merger": Kind(finish=graphs.qwen3, merge=2, merge_key=SPATIAL, first_side=46, most_tokens=4096),
}
