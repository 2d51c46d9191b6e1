"""The emitted CUDA text, pinned: a change here is a change of what users read and compile."""

from __future__ import annotations

from collections.abc import Callable

from instruments.runner import runner_kernel

from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.matmul import WgmmaTiles, matmul_kernel
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import PIPELINE_PRELUDE, PRELUDE, wgmma_prelude
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth.tensormap import synthesize_tensormap

Check = Callable[[str, str], None]


def plan(
    tile: list[int], modes: list[object], swizzle: str, direction: str = "load", dtype: str = "bf16"
) -> TensorMapPlan:
    shape = [4 * extent for extent in tile]
    stride = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        stride[dim] = stride[dim + 1] * shape[dim + 1]
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": 256},
            "tile": tile, "smem": {"modes": modes, "swizzle": swizzle},
        }
    )  # fmt: skip


def body(text: str, *preludes: str) -> str:
    for prelude in preludes:
        assert prelude in text
        text = text.replace(prelude, "")
    return text.lstrip("\n")


def test_prelude(golden: Check) -> None:
    golden("cuda/prelude.cu", PRELUDE)


def test_wgmma_prelude(golden: Check) -> None:
    golden("cuda/wgmma_m64n64k16_bf16.cu", wgmma_prelude("bf16", 64))


def test_load_of_one_copy(golden: Check) -> None:
    kernel = load_kernel(plan([64, 64], [[[64, 64]], [[64, 1]]], "128B"))
    golden("cuda/load_bf16_64x64_128b.cu", body(kernel.text, PRELUDE))


def test_load_through_a_split_dimension(golden: Check) -> None:
    kernel = load_kernel(plan([64, 128], [[[64, 64]], [[64, 1], [2, 4096]]], "128B"))
    golden("cuda/load_bf16_64x128_128b.cu", body(kernel.text, PRELUDE))


def test_load_of_several_copies(golden: Check) -> None:
    several = plan([64, 192], [[[64, 64]], [[64, 1], [3, 8192]]], "128B")
    assert len(several.issues) == 3
    golden("cuda/load_bf16_64x192_128b.cu", body(load_kernel(several).text, PRELUDE))


def test_load_of_many_copies(golden: Check) -> None:
    many = plan([8, 640], [[[8, 64]], [[64, 1], [10, 1024]]], "128B")
    assert len(many.issues) == 10
    golden("cuda/load_bf16_8x640_128b.cu", body(load_kernel(many).text, PRELUDE))


def test_store(golden: Check) -> None:
    kernel = store_kernel(plan([64, 32], [[[64, 32]], [[32, 1]]], "64B", "store"))
    golden("cuda/store_bf16_64x32_64b.cu", body(kernel.text, PRELUDE))


def test_matmul(golden: Check) -> None:
    operand = plan([64, 64], [[[64, 64]], [[64, 1]]], "128B")
    line = tuple((32 * s >> 4) | 1 << 16 | 64 << 32 | 1 << 62 for s in range(4))
    tiles = WgmmaTiles((line,), 0, 64)
    kernel = matmul_kernel(operand, operand, tiles, tiles)
    golden(
        "cuda/matmul_bf16_64x64x64.cu", body(kernel.text, TENSOR_PRELUDE, PIPELINE_PRELUDE, wgmma_prelude("bf16", 64))
    )


def test_runners(golden: Check) -> None:
    for direction in ("load", "store"):
        golden(f"cuda/run_{direction}_3d.cu", body(runner_kernel(3, direction).text, PRELUDE))
