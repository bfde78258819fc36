"""Whether we run in a container or a virtual machine, and how we know."""

from __future__ import annotations

from llamaops.facts.derive import absent, computed, read_fact
from llamaops.facts.mounts import Mount
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

# Inode numbers that the kernel gives to its own first namespaces (include/linux/proc_ns.h).
_FIRST_NAMESPACE = {"cgroup": 4026531835, "pid": 4026531836, "user": 4026531837}

# Parts of control group paths and of the root file system's options, most telling first.
_GROUP_SIGNS = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("crio-", "cri-o"),
    ("cri-containerd", "containerd"),
    ("lxc.payload", "lxc"),
    ("/lxc/", "lxc"),
    ("/docker/", "docker"),
    ("machine.slice", "systemd-nspawn"),
)
_ROOT_SIGNS = (
    ("/var/lib/docker", "docker"),
    ("/containers/storage", "podman"),
    ("containerd", "containerd"),
)
_HYPERVISORS = (
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("xen", "xen"),
    ("amazon ec2", "amazon"),
    ("google compute engine", "google"),
    ("microsoft corporation virtual machine", "hyper-v"),
    ("parallels", "parallels"),
    ("apple virtualization", "apple"),
    ("openstack", "openstack"),
    ("digitalocean", "kvm"),
    ("hetzner vserver", "kvm"),
)


class IsolationFacts(Shape, frozen=True, kw_only=True):
    """What stands between us and the bare machine."""

    container: Fact[str]
    """Kind of container, such as `docker` or `lxc`; `none` when no sign was found where they are left."""
    container_signs: Fact[tuple[str, ...]]
    """What was seen that containers leave, each with its place."""
    virtual_machine: Fact[str]
    """Kind of virtual machine, `some` when only the processor tells, or `none`."""
    pid_namespace: Fact[bool]
    """Whether we have process numbers of our own, so that a driver's numbers mean other processes."""


def own_namespace(system: System, kind: str) -> Fact[bool]:
    """Say whether we are in another namespace than the kernel's first one."""
    source = Source(kind="file", name=f"/proc/self/ns/{kind}")
    try:
        text = system.realpath(source.name).rpartition("[")[2].rstrip("]")
    except OSError as error:
        return unknown_from_os_error(source, error)
    if not text.isdecimal():
        return absent(f"{source.name} tells no number", source)
    return Known(value=int(text) != _FIRST_NAMESPACE[kind], source=source)


def collect_isolation(
    system: System, membership: Fact[dict[str, str]], mounts: Fact[tuple[Mount, ...]]
) -> IsolationFacts:
    """Look at what containers and virtual machines leave behind."""
    pid = own_namespace(system, "pid")
    signs = [*_environment_signs(system), *_group_signs(membership), *_mount_signs(mounts)]
    files = _file_signs(system)
    # An image that was booted as a machine still has its engine's marker file: only a marker, and every
    # namespace the kernel's first one, is no container.
    booted = not signs and all(
        isinstance(fact, Known) and not fact.value
        for fact in (pid, own_namespace(system, "cgroup"), own_namespace(system, "user"))
    )
    found = [*signs, *files]
    kind = "none" if booted or not found else _most_telling([name for name, _place in found])
    formula = "marker files, environment, control group, mounts and namespaces"
    return IsolationFacts(
        container=computed(kind, formula),
        container_signs=computed(tuple(f"{name}: {place}" for name, place in found), formula),
        virtual_machine=_virtual_machine(system),
        pid_namespace=pid,
    )


def _most_telling(names: list[str]) -> str:
    """Prefer what places the container (an orchestrator) to what runs it, and that to a bare word."""
    order = ["kubernetes", "podman", "docker", "lxc", "apptainer", "systemd-nspawn", "cri-o", "containerd"]
    ranked = [name for name in order if name in names]
    return ranked[0] if ranked else names[0]


def _environment_signs(system: System) -> list[tuple[str, str]]:
    environ = system.environ
    signs = []
    if "KUBERNETES_SERVICE_HOST" in environ:
        signs.append(("kubernetes", "variable KUBERNETES_SERVICE_HOST"))
    apptainer = (name for name in ("APPTAINER_NAME", "SINGULARITY_NAME") if name in environ)
    signs.extend(("apptainer", f"variable {name}") for name in apptainer)
    kind = environ.get("container", "")
    if kind and kind.replace("-", "").isalnum():
        signs.append((kind, "variable container"))
    return signs


def _group_signs(membership: Fact[dict[str, str]]) -> list[tuple[str, str]]:
    if isinstance(membership, Unknown):
        return []
    paths = sorted(set(membership.value.values()))
    for part, kind in _GROUP_SIGNS:
        if any(part in path for path in paths):
            return [(kind, membership.source.name)]
    # docker-<id>.scope is a container, docker-registry.service only a service of that name.
    leaves = (path.rpartition("/")[2] for path in paths)
    if any(leaf.startswith("docker-") and leaf.endswith(".scope") for leaf in leaves):
        return [("docker", membership.source.name)]
    return []


def _mount_signs(mounts: Fact[tuple[Mount, ...]]) -> list[tuple[str, str]]:
    if isinstance(mounts, Unknown):
        return []
    signs = []
    roots = [mount for mount in mounts.value if mount.point == "/"]
    options = ",".join([roots[-1].device, *roots[-1].super_options]) if roots else ""
    for part, kind in _ROOT_SIGNS:
        if roots and roots[-1].kind in {"overlay", "fuse.fuse-overlayfs"} and part in options:
            signs.append((kind, "root file system"))
            break
    if any(mount.kind == "fuse.lxcfs" and mount.point.startswith("/proc/") for mount in mounts.value):
        signs.append(("lxc", "lxcfs over /proc"))
    if any("/kubelet/pods/" in mount.root for mount in mounts.value):
        signs.append(("kubernetes", "a mount of the kubelet"))
    return signs


def _file_signs(system: System) -> list[tuple[str, str]]:
    signs = []
    for path, kind in (
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
        ("/dev/lxd/sock", "lxc"),
    ):
        try:
            system.stat(path)
        except OSError:
            continue
        signs.append((kind, path))
    manager = read_fact(system, "/run/systemd/container", str.strip, limit_bytes=KIB)
    if isinstance(manager, Known) and manager.value:
        signs.append((manager.value.split()[0][:40], manager.source.name))
    return signs


def _virtual_machine(system: System) -> Fact[str]:
    release = system.uname().release
    if "microsoft" in release.lower():
        # Only the second version is a machine; the first translates system calls.
        kind = "wsl2" if "WSL2" in release or "microsoft-standard" in release else "wsl1"
        return Known(value=kind, source=Source(kind="library", name="uname"))
    for path in ("/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"):
        told = read_fact(system, path, lambda text: text.strip("\0\n ").split(",")[-1], limit_bytes=KIB)
        if isinstance(told, Known) and told.value:
            return told
    board = _board(system)
    if isinstance(board, Known):
        kind = next((kind for part, kind in _HYPERVISORS if part in board.value), "")
        # A rented bare machine carries its landlord's name too.
        if kind and ".metal" not in board.value:
            return Known(value=kind, source=board.source)
    return _from_processor(system, board)


def _board(system: System) -> Fact[str]:
    names = ("sys_vendor", "product_name")
    facts = [read_fact(system, f"/sys/class/dmi/id/{name}", str.strip, limit_bytes=KIB) for name in names]
    known = [fact for fact in facts if isinstance(fact, Known)]
    if not known:
        return facts[0]
    return Known(value=" ".join(fact.value for fact in known).lower(), source=known[-1].source)


def _from_processor(system: System, board: Fact[str]) -> Fact[str]:
    def parse(text: str) -> str:
        flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
        return "some" if " hypervisor" in flags else "none"

    told = read_fact(system, "/proc/cpuinfo", parse, limit_bytes=16 * KIB)
    if isinstance(told, Known) and told.value == "none" and isinstance(board, Unknown):
        return absent("neither the firmware nor the processor tells whether this is a machine of its own",
                      board.source)  # fmt: skip
    return told
