"""Plans on a real GPU: every byte as the problem asks, products exact, wrong plans caught."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.launch import download, from_dlpack, load_tile, place_map, run, upload
from layoutalg.codegen.matmul import WgmmaTiles, matmul_kernel
from layoutalg.codegen.simulate import shared_image
from layoutalg.codegen.validation import default_origins, validate
from layoutalg.proofs.tensormap import Issue, TensorMapPlan
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap

TILES = json.loads((Path(__file__).parents[2] / "layoutalg/cli/data/real_tiles.json").read_text())["tiles"]

pytestmark = pytest.mark.device("sm_90a")


def plan(direction: str = "load", dtype: str = "bf16") -> TensorMapPlan:
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": [200, 96], "stride": [96, 1], "dtype": dtype, "base_align_bytes": 256},
            "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"},
        }
    )  # fmt: skip


@pytest.mark.parametrize("direction", ["load", "store"])
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile["name"])
def test_plans_of_real_tiles(tile: dict[str, object], direction: str) -> None:
    problem = dict(tile["problem"])  # type: ignore[call-overload]
    if direction == "store":
        problem = {key: value for key, value in problem.items() if key != "oob_fill"} | {"direction": "store"}
    elif problem["direction"] == "store":
        pytest.skip("a store")
    try:
        found = synthesize_tensormap(problem)
    except InadmissibleError:
        pytest.skip("inadmissible")
    except ImportError as error:  # a device machine may lack the solver that some plans need
        pytest.skip(str(error))
    origins = default_origins(found)
    report = validate(found, origins[:: max(1, len(origins) // 5)], device="cuda")
    assert report, str(report)
    assert report.backend == "cuda"
    assert report.cubin_bytes


def test_auto_uses_the_device() -> None:
    report = validate(plan())
    assert report, str(report)
    assert report.backend == "cuda"
    assert report.device


@pytest.mark.parametrize("direction", ["load", "store"])
def test_a_wrong_plan_is_refuted(direction: str) -> None:
    right = plan(direction)
    first = right.issues[0]
    moved = right.with_changes(issues=(Issue((first.coords[0], first.coords[1] + 1), first.smem_offset_bytes),))
    report = validate(moved, [(64, 0)], device="cuda")
    assert report.difference is not None
    assert report.difference.got != report.difference.expected


def test_a_wrong_byte_count_ends_with_a_report() -> None:
    report = validate(plan().with_changes(expect_tx_bytes=16384), [(0, 0)], device="cuda")
    assert report.difference is not None
    assert "did not arrive" in report.difference.reason
    assert validate(plan(), [(0, 0)], device="cuda")  # the device is still usable


def test_a_kernel_refuses_an_origin_that_its_plan_refuses() -> None:
    panels = synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [64, 256], "stride": [256, 1], "dtype": "bf16", "base_align_bytes": 256},
            "tile": [64, 128], "smem": {"modes": [[[64, 64]], [[64, 1], [2, 4096]]], "swizzle": "128B"},
        }
    )  # fmt: skip
    kernel = load_kernel(panels)
    memory = upload(np.full(64 * 256 * 2, 7, dtype=np.uint8))
    for origin, wanted in (((0, 128), 1), ((0, 64), 3), ((0, 32), 3), ((1, 0), 3), ((0, 0), 1)):
        image, status = np.full(kernel.image_bytes, 9, dtype=np.uint8), np.zeros(1, dtype=np.int32)
        run(kernel, [place_map(panels.raw, memory.pointer), *origin, image, status])
        assert status[0] == wanted
        assert (9 in image) == (wanted == 3)


def test_a_device_tensor_is_used_in_place() -> None:
    memory = np.random.default_rng(1).integers(0, 256, 200 * 96 * 2, dtype=np.uint8)
    tensor = upload(memory)
    image, status = load_tile(plan(), tensor, (128, 64))
    assert status == 1
    assert np.array_equal(image, shared_image(plan(), memory, (128, 64)))
    assert np.array_equal(download(tensor, 0, memory.size), memory)


def test_a_torch_tensor() -> None:
    torch = pytest.importorskip("torch")
    memory = torch.randn(200, 96, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    image, status = load_tile(plan(), memory, (64, 0))
    assert status == 1
    host = memory.view(torch.uint8).cpu().numpy().reshape(-1)
    assert np.array_equal(image, shared_image(plan(), host, (64, 0)))
    placed = from_dlpack(memory)
    assert not isinstance(placed, np.ndarray)
    assert (placed.shape, placed.strides, placed.itemsize) == ((200, 96), (96, 1), 2)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_product_is_exact(dtype: str) -> None:
    operand = plan(dtype=dtype)
    line = tuple((32 * s >> 4) | 1 << 16 | 64 << 32 | 1 << 62 for s in range(4))
    tiles = WgmmaTiles((line,), 0, 64)
    kernel = matmul_kernel(operand, operand, tiles, tiles)
    values = np.random.default_rng(2).integers(-8, 9, (200, 96))
    bits = values.astype(np.float16).view(np.uint16)
    if dtype == "bf16":
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    tensor = upload(bits.reshape(-1))
    raw = place_map(operand.raw, tensor.pointer)
    product, status = np.zeros((64, 64), dtype=np.float32), np.zeros(1, dtype=np.int32)
    run(kernel, [raw, 64, 0, raw, 128, 0, product, status])
    assert status[0] == 1
    assert np.array_equal(product, values[64:128, :64] @ values[128:192, :64].T)


def test_threads_validate_at_one_time() -> None:
    plans = [plan(direction, dtype) for direction in ("load", "store") for dtype in ("bf16", "f16", "u16")]
    with ThreadPoolExecutor(16) as pool:
        reports = list(pool.map(lambda made: validate(made, device="cuda"), plans * 4))
    assert all(reports), next(str(report) for report in reports if not report)


def test_a_store_from_below_the_tensor_is_refused_by_its_kernel() -> None:
    made = plan("store")
    kernel = store_kernel(made)
    memory = upload(np.full(200 * 96 * 2, 7, dtype=np.uint8))
    for origin, wanted in (((0, 0), 1), ((-64, 0), 3), ((0, -64), 3), ((64, 0), 1)):
        status = np.zeros(1, dtype=np.int32)
        image = np.full(kernel.image_bytes, 9, dtype=np.uint8)
        run(kernel, [place_map(made.raw, memory.pointer), *origin, image, status])
        assert status[0] == wanted


def test_a_table_of_many_copies() -> None:
    many = synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [32, 2560], "stride": [2560, 1], "dtype": "bf16", "base_align_bytes": 256},
            "tile": [8, 640], "smem": {"modes": [[[8, 64]], [[64, 1], [10, 1024]]], "swizzle": "128B"},
        }
    )  # fmt: skip
    assert "static const int" in load_kernel(many).text
    report = validate(many, device="cuda")
    assert report, str(report)
