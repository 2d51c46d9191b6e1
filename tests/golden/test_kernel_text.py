"""The texts of kernels that move arrays and registers, pinned: one of each way in CUDA, and some in HIP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layoutalg.codegen import copy_kernel, gather_kernel, staging_kernel, transpose_kernel
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import transpose_ring_kernel, transpose_windows_kernel
from layoutalg.codegen.kernels.transpose import tile_swizzle
from layoutalg.codegen.kernels.turned import TileShape
from layoutalg.codegen.portable import TENSOR_PRELUDE, portable_prelude
from layoutalg.codegen.prelude import PIPELINE_PRELUDE
from layoutalg.f2 import LinearLayout
from layoutalg.synth import conversion

Check = Callable[[str, str], None]
WAYS = ("registers", "shuffles", "shared", "matrices")
CUDA: dict[str, Callable[[], KernelSource]] = {
    "copy_engine_f32": lambda: copy_kernel((1024, 4096), "f32", tile=(16, 64), swizzle="128B").kernel,
    "copy_vectors_u8": lambda: copy_kernel((333, 77), "u8", way="vector").kernel,
    "gather_loads_f16": lambda: gather_kernel((4, 4096, 300), 1, 50, "f16").kernel,
    "gather_loads_large_f16": lambda: gather_kernel((1 << 20, 4096, 3), 1, 50, "f16").kernel,
    "gather_shared_f64": lambda: gather_kernel((4096, 3000), 1, 50, "f64").kernel,
    "gather_shuffles_f32_s64": lambda: gather_kernel((4096, 100), 1, 50, "f32", index_dtype="s64").kernel,
    "staging_f16": lambda: (
        staging_kernel(tile_swizzle(TileShape(32, 32, 8, 4, 32, 1), 16, "sm_90a"), (500, 304)).kernel
    ),
    "transpose_f16": lambda: transpose_kernel((512, 520), "f16", tile=(32, 32), threads=32, vector_bytes=8).kernel,
    "transpose_engine_f32": lambda: transpose_ring_kernel((512, 1024), "f32", threads=64).kernel,
    "transpose_windows_u8": lambda: transpose_windows_kernel((511, 1021), "u8").kernel,
    **{f"convert_{way}": lambda way=way: converted(way, "sm_90a") for way in WAYS},
}
HIP: dict[str, Callable[[], KernelSource]] = {
    "convert_shuffles": lambda: converted("shuffles", "gfx942"),
    "gather_shuffles_u8": lambda: gather_kernel((4096, 100), 1, 50, "u8", "gfx942").kernel,
    "transpose_f32": lambda: transpose_kernel((512, 520), "f32", "gfx942", tile=(32, 32), threads=64).kernel,
}


def converted(way: str, arch: str) -> KernelSource:
    """A conversion of 16-bit elements that this mechanism does."""
    lanes = 6 if arch == "gfx942" else 5
    bits = [(1 << bit,) for bit in range(lanes + 4)]
    inner, warp = bits[:-1], bits[-1:]
    order = {
        "registers": [bits[2], bits[1], bits[0], *bits[3:]], "shuffles": [inner[0], *inner[-2:], *inner[1:-2], *warp],
        "shared": [*bits[-3:], *bits[:-3]], "matrices": [bits[0], *bits[-2:], *bits[1:-2]],
    }[way]  # fmt: skip
    ends = [
        LinearLayout.from_bases({"register": cut[:3], "lane": cut[3:-1], "warp": cut[-1:]}, {"x": 1 << lanes + 4})
        for cut in (bits, order)
    ]
    plan = conversion(*ends, 16, arch, mechanism=way)
    assert plan.mechanism == way
    return conversion_kernel(plan)


def body(kernel: KernelSource) -> str:
    """The text behind its prelude."""
    prelude = TENSOR_PRELUDE + PIPELINE_PRELUDE if kernel.roles else portable_prelude(kernel.arch)
    assert kernel.text.startswith(prelude)
    return kernel.text.removeprefix(prelude).lstrip("\n")


@pytest.mark.parametrize("name", CUDA)
def test_cuda(golden: Check, name: str) -> None:
    golden(f"kernels/{name}.cu", body(CUDA[name]()))


@pytest.mark.parametrize("name", HIP)
def test_hip(golden: Check, name: str) -> None:
    golden(f"kernels/{name}.hip", body(HIP[name]()))


def test_preludes(golden: Check) -> None:
    golden("kernels/prelude.cu", portable_prelude("sm_90a"))
    golden("kernels/prelude.hip", portable_prelude("gfx942"))


def test_lines_are_of_a_length_that_people_read() -> None:
    for make in (*CUDA.values(), *HIP.values()):
        lines = body(make()).splitlines()
        assert all(line == line.rstrip() for line in lines)
        assert sum(len(line) > 130 for line in lines) <= len(lines) // 10
