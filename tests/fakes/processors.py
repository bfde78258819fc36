"""Processors by what /proc/cpuinfo says of them, shortened to one block each."""

from __future__ import annotations

_BLOCK = """\
processor\t: 0
vendor_id\t: {vendor}
model name\t: {model}
flags\t\t: {flags}
bugs\t\t: spectre_v1
bogomips\t: 4200.00

"""

_V2 = "fpu vme de pse tsc msr sse sse2 ht syscall nx lm pni ssse3 cx16 sse4_1 sse4_2 popcnt aes lahf_lm"
_V3 = f"{_V2} fma movbe avx f16c rdrand abm bmi1 avx2 bmi2"
_AVX512 = f"{_V3} avx512f avx512dq avx512cd avx512bw avx512vl"


def cpuinfo(flags: str, *, vendor: str = "GenuineIntel", model: str = "a processor") -> str:
    return _BLOCK.format(flags=flags, vendor=vendor, model=model)


NEHALEM = cpuinfo(_V2, model="Intel(R) Xeon(R) CPU X5570")
SANDY_BRIDGE = cpuinfo(f"{_V2} avx", model="Intel(R) Xeon(R) CPU E5-2670")
HASWELL = cpuinfo(_V3, model="Intel(R) Xeon(R) CPU E5-2680 v3")
CASCADE_LAKE = cpuinfo(f"{_AVX512} avx512_vnni", model="Intel(R) Xeon(R) Gold 6230")
ALDER_LAKE = cpuinfo(f"{_V3} avx_vnni", model="12th Gen Intel(R) Core(TM) i7-12700")
GENOA = cpuinfo(
    f"{_AVX512} avx512ifma avx512_bf16 avx512vbmi avx512_vnni", vendor="AuthenticAMD", model="AMD EPYC 9654"
)
TURIN = cpuinfo(
    f"{_AVX512} avx_vnni avx512_bf16 avx512vbmi avx512_vnni", vendor="AuthenticAMD", model="AMD EPYC 9755"
)
SAPPHIRE_RAPIDS = cpuinfo(
    f"{_AVX512} avx_vnni avx512_bf16 avx512vbmi avx512_vnni avx512_fp16 amx_tile amx_int8 amx_bf16",
    model="Intel(R) Xeon(R) Platinum 8480+",
)
GRAVITON = "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd asimddp sve i8mm bf16\n\n"
