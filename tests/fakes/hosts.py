"""Hosts as text: what /proc and /sys hold on the kinds of machine that servers run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.system import FakeSystem

GIB = 1 << 30

MEMINFO = """\
MemTotal:       65536000 kB
MemFree:         2048000 kB
MemAvailable:   51200000 kB
Buffers:          300000 kB
Cached:         40000000 kB
SwapCached:            0 kB
SwapTotal:       8388608 kB
SwapFree:        8388608 kB
CommitLimit:    41156608 kB
Committed_AS:   12000000 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
"""

_X86_BLOCK = """\
processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6430
physical id\t: {package}
siblings\t: 4
core id\t\t: {core}
cpu cores\t: 2
flags\t\t: fpu vme sse sse2 ht pni ssse3 fma cx16 sse4_1 sse4_2 avx f16c{more} avx2 bmi2 avx512f avx512dq
bogomips\t: 4200.00

"""


def x86_cpuinfo(*, hypervisor: bool = False, packages: int = 1) -> str:
    """Two cores of two threads in each package."""
    return "".join(
        _X86_BLOCK.format(
            number=package * 4 + thread,
            package=package,
            core=thread % 2,
            more=" hypervisor" if hypervisor else "",
        )
        for package in range(packages)
        for thread in range(4)
    )


GRACE_CPUINFO = "".join(
    f"processor\t: {number}\nBogoMIPS\t: 2000.00\n"
    "Features\t: fp asimd evtstrm aes fphp asimdhp asimddp sve i8mm bf16 dgh sve2\n"
    "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\nCPU revision\t: 0\n\n"
    for number in range(4)
)

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max processes             127235               127235               processes 
Max open files            1024                 1048576              files     
Max locked memory         65536                65536                bytes     
Max address space         unlimited            unlimited            bytes     
Max nice priority         0                    0                    
"""  # noqa: W291 - as the kernel writes it

STATUS = "Name:\tpython\nCapEff:\t{capabilities}\nCpus_allowed_list:\t{allowed}\n"

OS_RELEASE = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n'

V2_MOUNT = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
ROOT_MOUNT = "24 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"

FIRST_NAMESPACES = {
    "/proc/self/ns/pid": "/proc/77/ns/pid:[4026531836]",
    "/proc/self/ns/user": "/proc/77/ns/user:[4026531837]",
    "/proc/self/ns/cgroup": "/proc/77/ns/cgroup:[4026531835]",
}
OWN_NAMESPACES = {
    "/proc/self/ns/pid": "/proc/1/ns/pid:[4026532441]",
    "/proc/self/ns/user": "/proc/1/ns/user:[4026531837]",
    "/proc/self/ns/cgroup": "/proc/1/ns/cgroup:[4026532443]",
}


def common_files(
    *, capabilities: str = "0000000000000000", allowed: str = "0-3", cpuinfo: str | None = None
) -> dict[str, str | bytes | OSError]:
    return {
        "/etc/os-release": OS_RELEASE,
        "/proc/uptime": "12345.67 40000.00\n",
        "/proc/meminfo": MEMINFO,
        "/proc/cpuinfo": x86_cpuinfo() if cpuinfo is None else cpuinfo,
        "/proc/loadavg": "0.52 0.58 0.59 1/467 12345\n",
        "/proc/stat": "cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
        "/proc/self/limits": LIMITS,
        "/proc/self/status": STATUS.format(capabilities=capabilities, allowed=allowed),
        "/proc/sys/vm/overcommit_memory": "0\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/sys/devices/system/node/online": "0-1\n",
    }


def fake(files: Mapping[str, str | bytes | OSError], **more: Any) -> FakeSystem:
    settings: dict[str, Any] = {
        "confstrs": {"CS_GNU_LIBC_VERSION": "glibc 2.39"},
        "links": FIRST_NAMESPACES,
        **more,
    }
    return FakeSystem(files=files, **settings)


def bare_metal() -> FakeSystem:
    """A server: groups of version 2 without a limit, firmware that names its maker."""
    folder = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope"
    return fake(
        {
            **common_files(cpuinfo=x86_cpuinfo(packages=2), allowed="0-7"),
            "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n",
            "/proc/self/mountinfo": ROOT_MOUNT
            + V2_MOUNT
            + "90 24 8:17 / /srv/models rw,noatime - xfs /dev/sdb1 rw\n",
            f"{folder}/memory.max": "max\n",
            f"{folder}/memory.high": "max\n",
            f"{folder}/cpu.max": "max 100000\n",
            f"{folder}/cpu.stat": "usage_usec 100\n",
            "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
            "/sys/class/dmi/id/product_name": "PowerEdge R760\n",
        }
    )


def docker(
    *, limit: str = str(4 * GIB), cpu_max: str = "150000 100000", current: int = 2 * GIB
) -> FakeSystem:
    """A container with `--memory 4g --cpus 1.5` in a private cgroup namespace (version 2)."""
    return fake(
        {
            **common_files(),
            "/.dockerenv": "",
            "/proc/self/cgroup": "0::/\n",
            "/proc/self/mountinfo": "700 600 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/"
            "overlay2/l/ABC,upperdir=/var/lib/docker/overlay2/x/diff\n"
            "710 700 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
            "/sys/fs/cgroup/memory.max": f"{limit}\n",
            "/sys/fs/cgroup/memory.high": "max\n",
            "/sys/fs/cgroup/memory.current": f"{current}\n",
            "/sys/fs/cgroup/memory.stat": f"anon 1000\nfile {GIB}\ninactive_file {GIB}\nactive_file 5\n",
            "/sys/fs/cgroup/memory.swap.max": "0\n",
            "/sys/fs/cgroup/cpu.max": f"{cpu_max}\n",
            "/sys/fs/cgroup/cpu.stat": "usage_usec 9\nnr_periods 9120\nnr_throttled 9034\n",
        },
        links=OWN_NAMESPACES,
    )


def docker_v1() -> FakeSystem:
    """The same with version 1: the group's own path is the root of the mount."""
    group = "/docker/3b1f"
    lines = "".join(
        f"{number}:{name}:{group}\n"
        for number, name in ((12, "memory"), (5, "cpu,cpuacct"), (1, "name=systemd"))
    )
    memory, cpu = "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu,cpuacct"
    return fake(
        {
            **common_files(),
            "/.dockerenv": "",
            "/proc/self/cgroup": lines,
            "/proc/self/mountinfo": "600 500 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/x\n"
            f"610 600 0:31 {group} {memory} ro - cgroup cgroup rw,memory\n"
            f"611 600 0:32 {group} {cpu} ro - cgroup cgroup rw,cpu,cpuacct\n",
            f"{memory}/memory.limit_in_bytes": f"{2 * GIB}\n",
            f"{memory}/memory.usage_in_bytes": f"{GIB}\n",
            f"{memory}/memory.stat": "inactive_file 1\ntotal_inactive_file 1048576\n"
            f"hierarchical_memory_limit {2 * GIB}\n",
            f"{cpu}/cpu.cfs_quota_us": "250000\n",
            f"{cpu}/cpu.cfs_period_us": "100000\n",
            f"{cpu}/cpu.stat": "nr_periods 10\nnr_throttled 3\nthrottled_time 5\n",
        },
        links=OWN_NAMESPACES,
    )


def nested_slice() -> FakeSystem:
    """A unit without a limit inside a slice with one: version 2 on the host itself."""
    top = "/sys/fs/cgroup/ai.slice"
    leaf = f"{top}/llama.service"
    return fake(
        {
            **common_files(),
            "/proc/self/cgroup": "0::/ai.slice/llama.service\n",
            "/proc/self/mountinfo": ROOT_MOUNT + V2_MOUNT,
            f"{leaf}/memory.max": "max\n",
            f"{leaf}/memory.high": f"{20 * GIB}\n",
            f"{leaf}/memory.current": f"{GIB}\n",
            f"{leaf}/memory.stat": "inactive_file 0\n",
            f"{top}/memory.max": f"{8 * GIB}\n",
            f"{top}/memory.current": f"{7 * GIB}\n",
            f"{top}/memory.stat": f"inactive_file {GIB // 2}\n",
            f"{leaf}/cpu.max": "300000 100000\n",
            f"{top}/cpu.max": "200000 100000\n",
            f"{top}/cpu.stat": "nr_periods 100\nnr_throttled 0\n",
        }
    )


def kubernetes() -> FakeSystem:
    """A pod's container with the host's view of groups (version 1, nested)."""
    pod = "/kubepods/burstable/pod6f1"
    group = f"{pod}/9a8"
    memory = "/sys/fs/cgroup/memory"
    return fake(
        {
            **common_files(),
            "/proc/self/cgroup": f"4:memory:{group}\n3:cpu,cpuacct:{group}\n",
            "/proc/self/mountinfo": "600 500 0:50 / / rw - overlay overlay rw,lowerdir=/run/containerd/x\n"
            f"610 600 0:31 {group} {memory} ro - cgroup cgroup rw,memory\n",
            f"{memory}/memory.limit_in_bytes": "9223372036854771712\n",
            f"{memory}/memory.usage_in_bytes": f"{GIB}\n",
            # The pod's own limit, above what the container can see.
            f"{memory}/memory.stat": f"hierarchical_memory_limit {3 * GIB}\ntotal_inactive_file 0\n",
            f"{memory}/memory.use_hierarchy": "1\n",
        },
        environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        links=OWN_NAMESPACES,
    )


def lxc() -> FakeSystem:
    """A system container: lxcfs writes its limit into /proc/meminfo."""
    return fake(
        {
            **common_files(),
            "/run/systemd/container": "lxc\n",
            "/proc/self/cgroup": "0::/.lxc\n",
            "/proc/self/mountinfo": "400 300 0:40 / / rw - zfs tank/ct1 rw\n"
            "401 400 0:41 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n"
            "402 400 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "/sys/fs/cgroup/.lxc/memory.max": "max\n",
            "/sys/fs/cgroup/memory.max": f"{16 * GIB}\n",
            "/sys/fs/cgroup/memory.current": f"{GIB}\n",
        },
        links={**OWN_NAMESPACES, "/proc/self/ns/user": "/proc/1/ns/user:[4026532555]"},
    )


def wsl() -> FakeSystem:
    return fake(
        {
            **common_files(cpuinfo=x86_cpuinfo(hypervisor=True)),
            "/proc/self/cgroup": "0::/\n",
            "/proc/self/mountinfo": ROOT_MOUNT
            + V2_MOUNT
            + "77 24 0:50 / /mnt/c rw,noatime - 9p C:\\134 rw,aname=drvfs;path=C:\\\n",
        },
        release="5.15.153.1-microsoft-standard-WSL2",
    )


def virtual_machine() -> FakeSystem:
    return fake(
        {
            **common_files(cpuinfo=x86_cpuinfo(hypervisor=True)),
            "/proc/self/cgroup": "0::/init.scope\n",
            "/proc/self/mountinfo": ROOT_MOUNT + V2_MOUNT,
            "/sys/fs/cgroup/init.scope/memory.max": "max\n",
            "/sys/class/dmi/id/sys_vendor": "QEMU\n",
            "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
        }
    )


def nothing() -> FakeSystem:
    """A machine that shows no /proc and no /sys."""
    return FakeSystem()
