from __future__ import annotations

import os

import pytest

from llamaops.facts.host import collect_host
from llamaops.facts.model_folder import ModelFolderFacts, storage_of
from llamaops.schema.fact import Known, Unknown
from tests.fakes import hosts
from tests.fakes.system import FakeSystem

MOUNTS = (
    hosts.ROOT_MOUNT
    + "50 24 0:40 / /models rw - nfs4 nas:/models rw\n"
    + "51 50 0:41 / /models/fast\\040disk ro,noatime - xfs /dev/sdc rw\n"
    + "52 24 0:42 / /modelsX rw - tmpfs tmpfs rw\n"
    + "53 24 0:43 / /modelsX rw - ext4 /dev/sdd rw\n"
)


def folder(path: str | None, **more: object) -> ModelFolderFacts:
    files: dict[str, str | bytes | OSError] = {"/proc/self/mountinfo": MOUNTS}
    if path is not None:
        files[path] = "GGUF"
    system = FakeSystem(files=files, disk=(4096, 1000), **more)  # type: ignore[arg-type]  # fields of FakeSystem
    return collect_host(system, model_path=path).model_folder


def test_the_longest_mount_decides_and_blanks_are_unescaped() -> None:
    found = folder("/models/fast disk/a.gguf")
    assert found.mount_point.need() == "/models/fast disk"
    assert (found.file_system.need(), found.storage.need()) == ("xfs", "local")
    assert found.read_only.need() is True
    assert found.free_bytes.need() == 4096 * 1000
    assert found.size_bytes.need() == 4


def test_a_folder_with_the_same_start_is_not_below_a_mount() -> None:
    assert folder("/models2/a.gguf").mount_point.need() == "/"


def test_the_last_of_two_mounts_on_one_point_counts() -> None:
    assert folder("/modelsX/a.gguf").file_system.need() == "ext4"


def test_a_link_of_a_download_cache_leads_to_the_real_folder() -> None:
    files: dict[str, str | bytes | OSError] = {"/proc/self/mountinfo": MOUNTS, "/models/blobs/1f": "GGUF"}
    system = FakeSystem(files=files, links={"/home/u/snap/a.gguf": "/models/blobs/1f"})
    found = collect_host(system, model_path="/home/u/snap/a.gguf").model_folder
    assert found.folder.need() == "/models/blobs"
    assert found.storage.need() == "network"
    assert found.readable.need() is True


def test_a_file_that_we_may_not_read() -> None:
    assert folder("/models/a.gguf", unreadable=["/models/a.gguf"]).readable.need() is False


def test_a_file_that_is_not_there() -> None:
    system = FakeSystem(files={"/proc/self/mountinfo": MOUNTS})
    found = collect_host(system, model_path="/models/none.gguf").model_folder
    assert isinstance(found.readable, Unknown)
    assert found.readable.why == "absent"


def test_without_a_model_nobody_looked() -> None:
    found = folder(None)
    facts = [getattr(found, name) for name in found.__struct_fields__]
    assert {fact.why for fact in facts if isinstance(fact, Unknown)} == {"not_attempted"}
    assert not any(isinstance(fact, Known) for fact in facts)


@pytest.mark.parametrize(
    ("kind", "storage"),
    [
        ("ext4", "local"), ("zfs", "local"), ("nfs4", "network"), ("cifs", "network"),
        ("fuse.sshfs", "network"), ("fuse.gcsfuse", "network"), ("fuse.mergerfs", "user_space"),
        ("tmpfs", "memory"), ("overlay", "overlay"), ("9p", "host_share"),
        ("virtiofs", "host_share"), ("squashfs", "image"),
        ("fuseblk", "local"),
    ],
)  # fmt: skip
def test_storage(kind: str, storage: str) -> None:
    assert storage_of(kind) == storage


def test_a_relative_path_is_taken_from_the_working_folder() -> None:
    system = FakeSystem(files={"/proc/self/mountinfo": MOUNTS})
    assert collect_host(system, model_path="x.gguf").model_folder.folder.need() == os.path.abspath(".")


def test_a_folder_that_was_named_is_the_folder() -> None:
    system = FakeSystem(files={"/proc/self/mountinfo": MOUNTS, "/models/a.gguf": "GGUF"})
    found = collect_host(system, model_path="/models").model_folder
    assert found.folder.need() == "/models"
    assert found.storage.need() == "network"
    assert isinstance(found.size_bytes, Unknown)
