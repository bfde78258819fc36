from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.launch.settings import LaunchSettings, pad, plain_number, resolve, validate

TRAINED = 8192


def plan(**asked: object) -> tuple[int | None, int, int | None]:
    made = resolve(LaunchSettings(model_path="m", **asked), n_ctx_train=TRAINED)  # type: ignore[arg-type]  # settings by name
    return made.n_ctx, made.n_slots, made.n_ctx_slot


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # As measured with two real builds and a model trained for 8192 tokens.
        ({}, (8192, 4, 8192)),
        ({"ctx_size": 100}, (256, 4, 256)),
        ({"ctx_size": 100, "parallel": 4}, (1024, 4, 256)),
        ({"ctx_size": 1000}, (1024, 4, 1024)),
        ({"ctx_size": 1000, "parallel": 3}, (1536, 3, 512)),
        ({"ctx_size": 1000, "parallel": 3, "kv_unified": True}, (1024, 3, 1024)),
        ({"ctx_size": 2048, "parallel": 2}, (2048, 2, 1024)),
        ({"parallel": 4}, (32768, 4, 8192)),
        ({"ctx_size": 4096, "kv_unified": False}, (4096, 4, 4096)),
        ({"ctx_size": 20000}, (20224, 4, 8192)),
        ({"ctx_size": 20000, "parallel": 2}, (20480, 2, 8192)),
    ],
)
def test_the_engine_s_arithmetic(asked: dict[str, object], expected: tuple[int, int, int]) -> None:
    assert plan(**asked) == expected


def test_what_cannot_be_told_is_left_open() -> None:
    made = resolve(LaunchSettings(model_path="m"), n_ctx_train=None)
    assert (made.n_ctx, made.n_ctx_slot) == (None, None)
    assert "the engine's choice" in made.text


def test_one_slot_before_late_2025() -> None:
    made = resolve(LaunchSettings(model_path="m", ctx_size=512), n_ctx_train=TRAINED, slots="single")
    assert (made.n_slots, made.kv_unified, made.n_ctx_slot) == (1, False, 512)


def test_batches_are_cut_to_the_context_and_equal_for_embeddings() -> None:
    small = resolve(LaunchSettings(model_path="m", ctx_size=256), n_ctx_train=TRAINED)
    assert (small.n_batch, small.n_ubatch) == (256, 256)
    embeddings = resolve(LaunchSettings(model_path="m", ctx_size=4096, embeddings=True), n_ctx_train=TRAINED)
    assert (embeddings.n_batch, embeddings.n_ubatch) == (512, 512)


def test_a_split_cache_needs_a_number_of_slots() -> None:
    made = resolve(LaunchSettings(model_path="m", ctx_size=4096, kv_unified=False), n_ctx_train=TRAINED)
    assert made.kv_unified
    assert "no effect" in made.notes[0]


def test_the_plan_says_what_differs() -> None:
    made = resolve(LaunchSettings(model_path="m", ctx_size=20000, parallel=2), n_ctx_train=TRAINED)
    assert "20480" in made.notes[0]
    assert "10240" in made.notes[1]
    assert made.text == "context 20480 tokens, 2 slots of 8192 with a KV cache each, batch 2048/512"


@pytest.mark.parametrize(
    "text", ["8k", "1e3", "0x100", "", " 8", "8.0", "1_000", "٣", "99999999999999999999"]
)
def test_numbers_that_the_engine_would_misread_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ctx-size"):
        plain_number("--ctx-size", text, low=0, high=10**9)


def test_a_plain_number() -> None:
    assert plain_number("--ctx-size", "8192", low=0, high=10**9) == 8192
    assert [pad(n) for n in (0, 1, 256, 257)] == [256, 256, 256, 512]


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ({"port": 65536}, "--port"),
        ({"port": -1}, "--port"),
        ({"parallel": 0}, "--parallel"),
        ({"parallel": 257}, "--parallel"),
        ({"batch_size": 0}, "--batch-size"),
        ({"flash_attn": "maybe"}, "--flash-attn"),
        ({"cache_type_k": "q3"}, "--cache-type-k"),
        ({"n_gpu_layers": "8k"}, "--n-gpu-layers"),
        ({"model_path": " "}, "--model"),
        ({"host": "0.0.0.0"}, "--host"),
        ({"host": "127.0.0.1,0.0.0.0"}, "--host"),
        ({"host": ""}, "--host"),
        ({"cache_type_v": "q8_0", "flash_attn": "off"}, "--cache-type-v"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(asked: dict[str, object], flag: str) -> None:
    fields = {"model_path": "m", **asked}
    with pytest.raises(UsageError, match=flag):
        validate(LaunchSettings(**fields))  # type: ignore[arg-type]  # settings by name


def test_the_edges_are_allowed() -> None:
    validate(LaunchSettings(model_path="m", port=65535, parallel=256, host="::1", n_gpu_layers="all"))
    validate(LaunchSettings(model_path="m", host="0.0.0.0", exposed=True))
