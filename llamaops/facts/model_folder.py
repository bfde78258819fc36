"""The folder that the model lies in: space, kind of file system, and whether we may read the file."""

from __future__ import annotations

import errno
import os
import stat
from typing import Literal, NamedTuple

from llamaops.facts.derive import derive
from llamaops.facts.mounts import Mount, mount_of
from llamaops.facts.observe import observe, unknown_from_os_error
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

Storage = Literal["local", "network", "memory", "overlay", "host_share", "user_space", "image"]

_NETWORK = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2",
        "glusterfs", "davfs", "ncpfs", "orangefs",
    }
)  # fmt: skip
_NETWORK_IN_USER_SPACE = (
    "glusterfs", "sshfs", "s3fs", "rclone", "gcsfuse", "mount-s3", "mountpoint-s3", "goofys", "juicefs",
    "ceph", "seaweedfs", "alluxio", "blobfuse", "curlftpfs", "davfs", "cunoFS", "geesefs", "objectivefs",
)  # fmt: skip
_HOST_SHARES = frozenset(
    {
        "9p", "virtiofs", "drvfs", "vboxsf", "prl_fs", "vmhgfs", "fakeowner", "fuse.vmhgfs-fuse",
        "fuse.grpcfuse",
    }
)  # fmt: skip


class ModelFolderFacts(Shape, frozen=True, kw_only=True):
    """Where the model lies, symbolic links resolved."""

    folder: Fact[str]
    """The folder that holds the file itself; a download cache links into another one."""
    readable: Fact[bool]
    """Whether we may read the model file."""
    size_bytes: Fact[int]
    """Size of the model file as named; one shard where there are several."""
    free_bytes: Fact[int]
    """Space that we may still write there."""
    file_system: Fact[str]
    """Type of the file system, such as `ext4` or `nfs4`."""
    storage: Fact[Storage]
    """What that type means for reading a model: `local`, `network`, `memory` (it takes the memory that
    the server needs), `overlay` (a container's own layer), `host_share`, `user_space` or `image`."""
    mount_point: Fact[str]
    """Where that file system is mounted."""
    read_only: Fact[bool]
    """Whether it is mounted read-only."""


class _Place(NamedTuple):
    file: str
    folder: str


def collect_model_folder(
    system: System, model_path: str | None, mounts: Fact[tuple[Mount, ...]]
) -> ModelFolderFacts:
    """Look at the folder of a model; nothing is opened."""
    if model_path is None:
        nobody = not_attempted("no model was named")
        return ModelFolderFacts(**dict.fromkeys(ModelFolderFacts.__struct_fields__, nobody))
    source = Source(kind="file", name=model_path)
    place = observe(source, read=lambda: _place(system, model_path), parse=lambda found: found)
    mount = _mount(place, mounts)
    return ModelFolderFacts(
        folder=derive(place, lambda found: found.folder),
        readable=_readable(system, place),
        size_bytes=derive(place, lambda found: _size(system, found)),
        free_bytes=_free(system, place),
        file_system=derive(mount, lambda found: found.kind),
        storage=derive(mount, lambda found: storage_of(found.kind)),
        mount_point=derive(mount, lambda found: found.point),
        read_only=derive(mount, lambda found: "ro" in found.options or "ro" in found.super_options),
    )


def _place(system: System, model_path: str) -> _Place:
    real = system.realpath(os.path.abspath(model_path))
    try:
        is_folder = stat.S_ISDIR(system.stat(real).st_mode)
    except OSError:  # told by `readable`
        is_folder = False
    return _Place(real, real if is_folder else os.path.dirname(real) or "/")


def _readable(system: System, place: Fact[_Place]) -> Fact[bool]:
    if isinstance(place, Unknown):
        return place
    try:
        system.stat(place.value.file)
    except PermissionError:  # a folder on the way is closed to us
        return Known(value=False, source=place.source)
    except OSError as error:
        return unknown_from_os_error(place.source, error)
    return Known(value=system.access(place.value.file, os.R_OK), source=place.source)


def _size(system: System, place: _Place) -> int:
    if place.folder == place.file:
        raise FileNotFoundError(errno.ENOENT, "a folder was named, not a file")
    return system.stat(place.file).st_size


def _free(system: System, place: Fact[_Place]) -> Fact[int]:
    if isinstance(place, Unknown):
        return place
    source = Source(kind="library", name=f"statvfs({place.value.folder})")
    return observe(
        source,
        read=lambda: system.statvfs(place.value.folder),
        parse=lambda told: told.f_bavail * told.f_frsize,
    )


def _mount(place: Fact[_Place], mounts: Fact[tuple[Mount, ...]]) -> Fact[Mount]:
    if isinstance(place, Unknown):
        return place
    if isinstance(mounts, Unknown):
        return mounts
    # A file can be a mount of its own: containers bind single files.
    mount = mount_of(mounts.value, place.value.file)
    if mount is None:
        detail = f"no mount of {mounts.source.name} holds {place.value.folder}"
        return Unknown(why="absent", detail=detail, source=mounts.source)
    return Known(value=mount, source=mounts.source)


def storage_of(kind: str) -> Storage:
    """Say what a type of file system means for reading a model."""
    if kind in _NETWORK:
        return "network"
    if kind in _HOST_SHARES:
        return "host_share"
    if kind in {"tmpfs", "ramfs"}:
        return "memory"
    if kind in {"overlay", "aufs", "fuse.fuse-overlayfs"}:
        return "overlay"
    if kind in {"squashfs", "iso9660", "erofs", "cramfs"}:
        return "image"
    if kind.startswith("fuse."):
        remote = any(name in kind for name in _NETWORK_IN_USER_SPACE)
        return "network" if remote else "user_space"
    return "local"
