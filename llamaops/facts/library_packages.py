"""Which package has a library that the loader does not find."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Family = Literal["debian", "fedora", "arch", "alpine", "suse", "other"]
_FAMILIES: tuple[Family, ...] = ("debian", "fedora", "arch", "alpine", "suse")

# One line a library: its name, then the package in each family in the order above; - where we do not know.
_PACKAGES = r"""
libgomp\.so\.1  libgomp1  libgomp  gcc-libs  libgomp  libgomp1
libstdc\+\+\.so\.6  libstdc++6  libstdc++  gcc-libs  libstdc++  libstdc++6
libgcc_s\.so\.1  libgcc-s1  libgcc  gcc-libs  libgcc  libgcc_s1
libcurl\.so\.4  libcurl4  libcurl  curl  libcurl  libcurl4
libcurl-gnutls\.so\.4  libcurl3-gnutls  -  -  -  -
lib(ssl|crypto)\.so\.3  libssl3  openssl-libs  openssl  openssl  libopenssl3
lib(ssl|crypto)\.so\.1\.1  libssl1.1  openssl1.1  openssl-1.1  -  libopenssl1_1
libvulkan\.so\.1  libvulkan1  vulkan-loader  vulkan-icd-loader  vulkan-loader  libvulkan1
libOpenCL\.so\.1  ocl-icd-libopencl1  ocl-icd  ocl-icd  ocl-icd  libOpenCL1
libopenblas\.so\.0  libopenblas0  openblas  openblas  openblas  libopenblas0
libnuma\.so\.1  libnuma1  numactl-libs  numactl  numactl  libnuma1
libz\.so\.1  zlib1g  zlib  zlib  zlib  libz1
libzstd\.so\.1  libzstd1  libzstd  zstd  zstd-libs  libzstd1
"""

_VENDORS = (
    (
        r"libcuda\.so\.1|libnvidia-",
        "the NVIDIA driver (in a container: the NVIDIA container toolkit gives it)",
    ),
    (
        r"lib(cudart|cublas|cublasLt|nvrtc|nccl|curand|cufft)\.so\.(?P<major>\d+)",
        "the runtime libraries of CUDA {major}",
    ),
    (
        r"lib(amdhip64|hipblas|rocblas|hsa-runtime64|hipblaslt|rocsolver)\.so\.(?P<major>\d+)",
        "the runtime libraries of ROCm (its library version {major})",
    ),
    (
        r"lib(sycl|ze_loader|svml|imf|intlc|irng|iomp5|mkl_\w+|dnnl|tbb)\.so",
        "the Intel oneAPI runtime",
    ),
    (
        r"libmusa|libmublas",
        "the MUSA runtime",
    ),
    (
        r"libascendcl",
        "the CANN toolkit",
    ),
    (
        r"lib(llama|ggml|mtmd)",
        "llama.cpp itself: its libraries belong beside the program or on its run path",
    ),
)


def package_of(library: str, family: Family) -> str | None:
    """Return what provides a library on a family of distributions, or None."""
    for line in _PACKAGES.split("\n")[1:-1]:
        pattern, *packages = line.split()
        if re.match(pattern + r"(\.|$)", library):
            name = dict(zip(_FAMILIES, packages, strict=True)).get(family, "-")
            return None if name == "-" else f"package {name}"
    for pattern, what in _VENDORS:
        found = re.match(pattern, library)
        if found:
            return what.format(**found.groupdict())
    return None


def parse_family(os_release: str) -> Family:
    """Read the distribution's family from /etc/os-release."""
    fields: Mapping[str, str] = dict(
        line.split("=", 1) for line in os_release.splitlines() if re.match(r"ID(_LIKE)?=", line)
    )
    names = " ".join(fields.values()).replace('"', " ").lower().split()
    families: tuple[tuple[Family, set[str]], ...] = (
        ("debian", {"debian", "ubuntu"}),
        ("fedora", {"fedora", "rhel", "centos", "rocky", "almalinux", "amzn"}),
        ("arch", {"arch", "manjaro"}),
        ("alpine", {"alpine"}),
        ("suse", {"suse", "opensuse", "sles", "opensuse-tumbleweed", "opensuse-leap"}),
    )
    return next((family for family, ids in families if ids & set(names)), "other")
