"""From settings to a load: the rules of the engine, and what a build is taken for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from llamaops.estimate.memory import estimate
from llamaops.estimate.model import Model, Weight
from llamaops.estimate.plan import Build, layout_of, window_cells
from llamaops.estimate.resolve import build_of, least_build_of, load_for
from llamaops.estimate.room import largest_room, with_context, with_slots
from llamaops.launch.settings import LaunchSettings
from tests.fakes.memory_truth import BUILDS, models

LLAMA = "llama-3.2-1b-q8_0"


def settings(**changes: object) -> LaunchSettings:
    return replace(LaunchSettings(model_path="m.gguf"), **changes)


def test_a_server_without_slots_takes_four_and_one_cache() -> None:
    plan, load = load_for(models()[LLAMA], settings(ctx_size=4000))
    assert (load.slots, load.is_unified, load.context_tokens, load.outputs) == (4, True, 4096, 4)
    assert "4 slots" in plan


def test_other_front_ends_take_one_slot_and_reserve_a_whole_batch() -> None:
    _, load = load_for(models()[LLAMA], settings(ctx_size=4096), front_end="completion")
    assert (load.slots, load.outputs) == (1, 2048)


def test_split_slots_get_their_own_part() -> None:
    _, load = load_for(models()[LLAMA], settings(ctx_size=10000, parallel=3, ubatch_size=200))
    assert (load.sequence_tokens, load.streams, load.context_tokens) == (3584, 3, 10752)
    assert load.batch_tokens == 200


def test_automatic_flash_attention_is_certain_with_a_quantized_cache() -> None:
    model = models()[LLAMA]
    assert load_for(model, settings())[1].flash_is_auto
    assert not load_for(model, settings(cache_type_v="q8_0"))[1].flash_is_auto
    assert not load_for(model, settings(flash_attn="off"))[1].flash_attention


def test_the_context_cuts_the_batch_only_of_a_model_that_looks_back_only() -> None:
    asked = settings(ctx_size=256, parallel=5, ubatch_size=300)
    assert load_for(models()[LLAMA], asked)[1].batch_tokens == 256
    assert load_for(models()["embeddinggemma-300m-q8_0"], asked)[1].batch_tokens == 300
    assert load_for(models()["made-dream"], asked)[1].batch_tokens == 300


def test_an_encoder_embeds_only_where_that_is_asked() -> None:
    bert = models()["bge-base-en-f16"]
    assert not load_for(bert, settings(ctx_size=512))[1].embeddings
    assert load_for(bert, settings(ctx_size=512, embeddings=True))[1].pooling == 2
    assert load_for(bert, settings(ctx_size=512, embeddings=True), pooling="mean")[1].pooling == 1


def test_a_decoder_that_reads_an_encoder_keeps_rows_of_a_whole_batch() -> None:
    assert load_for(models()["made-t5"], settings(ctx_size=512, parallel=1))[1].outputs == 512


def test_a_tied_embedding_that_the_processor_reorders_is_there_twice_but_not_beside_a_card() -> None:
    tied = models()["made-gemma-q4_0"]
    table = tied.by_name["token_embd.weight"].size_bytes
    load = load_for(tied, settings(ctx_size=256))[1]
    beside_card = estimate(tied, replace(load, card="vulkan")).of("weights")
    assert estimate(tied, load).of("weights") - beside_card == table


def test_layers_on_a_card() -> None:
    model = models()[LLAMA]
    assert load_for(model, settings(n_gpu_layers="all"))[1].gpu_layers == model.blocks + 1
    assert load_for(model, settings(n_gpu_layers="5"))[1].gpu_layers == 5
    assert load_for(model, settings())[1].gpu_layers == 0


@pytest.mark.parametrize(
    ("number", "semver", "expected"),
    [
        (11669, "0.7.0", Build()),
        (11434, "0.5.0", Build(mixes_inputs=False, pads_encoders=False, gathers_states=False)),
        (10434, None, BUILDS["b10434"]),
        (10068, None, BUILDS["b10068"]),
        (1, "0.5.0", Build(mixes_inputs=False, pads_encoders=False, gathers_states=False)),
        (1, None, Build()),
        (None, None, Build()),
    ],
)
def test_a_build_is_known_by_its_number_or_its_version(
    number: int | None, semver: str | None, expected: Build
) -> None:
    assert build_of(number, semver) == expected


def test_a_window_needs_no_more_cells_than_the_context() -> None:
    model = models()["gemma-3-4b-q4_k_m"]
    _, load = load_for(model, settings(ctx_size=131072, parallel=1))
    assert window_cells(load, 1024) == 1536
    assert window_cells(replace(load, full_window_cache=True), 1024) == 131072
    assert window_cells(with_context(load, 512), 1024) == 512


def test_room_is_the_largest_that_still_fits() -> None:
    model = models()[LLAMA]
    _, load = load_for(model, settings(ctx_size=4096, parallel=1))
    room = estimate(model, with_context(load, 8192)).high()
    context, slots, cache = largest_room(model, load, room, None)
    assert context is not None
    assert 8192 <= context < 9216
    assert slots is not None
    assert estimate(model, with_slots(load, slots)).high() <= room
    assert estimate(model, with_slots(load, slots + 1)).high() > room
    assert cache == "f32"
    assert largest_room(model, load, 2**20, None) == (None, None, None)


def test_an_architecture_without_an_entry_has_a_band_and_says_so() -> None:
    known = models()[LLAMA]
    renamed = {key.replace("llama.", "novel."): value for key, value in known.keys.items()}
    model = Model({**renamed, "general.architecture": "novel"}, known.weights, known.vocabulary)
    _, load = load_for(model, settings(ctx_size=4096))
    _, plain = load_for(known, settings(ctx_size=4096))
    found, exact = estimate(model, load), estimate(known, plain)
    assert not found.is_described
    assert "'novel' has no entry" in found.unknown[0]  # so the verdict is unknown, with a lower bound
    assert found.of("weights") == exact.of("weights")
    assert found.of("KV cache") == exact.of("KV cache")
    compute = next(part for part in found.parts if part.name == "compute")
    assert compute.low <= exact.of("compute") <= compute.high
    assert compute.low < compute.high


def test_an_architecture_without_an_entry_that_speaks_of_a_window_is_unknown() -> None:
    known = models()["gemma-3-4b-q4_k_m"]
    renamed = {key.replace("gemma3.", "novel."): value for key, value in known.keys.items()}
    model = Model({**renamed, "general.architecture": "novel"}, known.weights, known.vocabulary)
    found = estimate(model, load_for(model, settings(ctx_size=4096))[1])
    assert found.unknown
    assert "a window" in found.unknown[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_count", 2**40),
        ("block_count", 0),
        ("embedding_length", -1),
        ("attention.key_length", 2**62),
        ("expert_count", 2**31),
        ("nextn_predict_layers", 99),
        ("attention.head_count_kv", (1, -5)),
        ("attention.head_count_kv", (8, 8)),
        ("attention.head_count_kv", ()),
        ("attention.head_count", 0),
        ("attention.key_length", 0),
        ("context_length", -5),
    ],
)
def test_impossible_values_are_unknown_and_cost_nothing(key: str, value: object) -> None:
    known = models()[LLAMA]
    keys: dict[str, object] = {**known.keys, f"llama.{key}": value}
    model = Model(keys, known.weights, known.vocabulary)  # type: ignore[arg-type]  # whatever a file may hold
    found = estimate(model, load_for(model, settings(ctx_size=4096))[1])
    assert found.unknown
    assert not found.parts


def test_a_tensor_of_an_unknown_type_makes_the_weights_unknown() -> None:
    known = models()[LLAMA]
    odd = Weight("blk.0.odd.weight", 99, (32, 32), None)
    model = Model(known.keys, (*known.weights, odd), known.vocabulary)
    assert "without a known size" in estimate(model, load_for(model, settings())[1]).unknown[0]


def test_layers_that_attend_to_a_window_are_those_of_the_architecture() -> None:
    from llamaops.estimate.architectures import ARCHITECTURES

    layout = layout_of(models()["gemma-3-4b-q4_k_m"], ARCHITECTURES["gemma3"])
    assert [i for i, windowed in enumerate(layout.windowed) if not windowed] == [5, 11, 17, 23, 29]


@pytest.mark.parametrize(
    ("number", "semver", "is_certain"),
    [(11669, None, True), (11434, None, True), (11500, None, False), (1, None, False), (None, "0.5.0", True)],
)
def test_a_build_that_does_not_tell_which_it_is_could_take_less(
    number: int | None, semver: str | None, is_certain: bool
) -> None:
    assert (least_build_of(number, semver) == build_of(number, semver)) == is_certain


def test_slots_of_a_completion_each_get_the_whole_context() -> None:
    """Its own words on 0.5.0: context size unset and KV cache not unified -> using N for 3 sequences."""
    model = models()[LLAMA]
    _, load = load_for(model, settings(parallel=3), front_end="completion")
    assert (load.sequence_tokens, load.streams) == (model.trained_context, 3)
    _, shared = load_for(model, settings(parallel=3, kv_unified=True), front_end="completion")
    assert (shared.sequence_tokens, shared.streams) == (model.trained_context, 1)
    _, asked = load_for(model, settings(parallel=2, ctx_size=4096), front_end="completion")
    assert asked.sequence_tokens == 2048
