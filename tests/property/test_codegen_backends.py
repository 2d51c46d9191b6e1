"""Random problems: the kernel on the CPU models and the Python model both do what the problem asks, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import STATUS_DONE
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.plans import image_bytes
from layoutalg.codegen.simulate import POISON, shared_image
from layoutalg.codegen.validation import default_origins, validate
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia.tensormap import element_bytes

SPANS = {"NONE": 256, "32B": 32, "64B": 64, "128B": 128}


@st.composite
def plans(draw: st.DrawFn, direction: str = "load") -> TensorMapPlan:
    """Draw a row-major tensor of rank 1 to 4, a tile of it and a swizzled shared layout; keep what is admissible."""
    dtype = draw(st.sampled_from(["u8", "bf16", "f32", "f64", "tf32"]))
    size = element_bytes(dtype)
    swizzle = draw(st.sampled_from(sorted(SPANS)))
    rank = draw(st.integers(1, 4))
    inner = 16 // size * draw(st.integers(1, SPANS[swizzle] // 16))
    tile = [draw(st.integers(1, 6)) for _ in range(rank - 1)] + [inner]
    shape = [draw(st.integers(1, 3 * extent + 2)) for extent in tile]
    unit = 16 // size
    shape[-1] = -(-shape[-1] // unit) * unit
    strides = [1] * rank
    for dim in range(rank - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1] + unit * draw(st.integers(0, 2))
        strides[dim] = -(-strides[dim] // unit) * unit
    pitch = inner if swizzle == "NONE" else SPANS[swizzle] // size
    modes = [[[tile[-1], 1]]]
    for extent in reversed(tile[:-1]):
        modes.insert(0, [[extent, pitch]])
        pitch *= extent
    document = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
        "global": {"shape": shape, "stride": strides, "dtype": dtype, "base_align_bytes": 16},
        "tile": tile, "smem": {"modes": modes, "swizzle": swizzle},
    }  # fmt: skip
    try:
        return synthesize_tensormap(document)
    except InadmissibleError:
        assume(False)
        raise


@settings(max_examples=60)
@given(plans(), st.integers(0, 2**32 - 1))
def test_simulator_agrees(plan: TensorMapPlan, seed: int) -> None:
    report = validate(plan, device="simulator", seed=seed)
    assert report, str(report)


@settings(max_examples=60)
@given(plans("store"), st.integers(0, 2**32 - 1))
def test_simulator_agrees_on_stores(plan: TensorMapPlan, seed: int) -> None:
    report = validate(plan, device="simulator", seed=seed)
    assert report, str(report)


@pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
@settings(max_examples=60)
@given(plans(), st.integers(0, 2**32 - 1))
def test_the_runner_agrees_with_the_problem_and_the_simulator(plan: TensorMapPlan, seed: int) -> None:
    """One launch, one block per origin: image = problem's expectation at the requested addresses, poison elsewhere."""
    origins = default_origins(plan)
    problem = plan.problem
    last = problem.base_elem_offset + sum(
        (n - 1) * s for n, s in zip(problem.global_shape, problem.global_strides, strict=True)
    )
    size = element_bytes(problem.dtype)
    store = np.zeros((last + 1) * size + 272, dtype=np.uint8)
    memory = store[-store.ctypes.data % 256 :][: (last + 1) * size + 15]
    exponents = np.random.default_rng(seed).integers(
        1, 127, memory.size, dtype=np.uint8
    )  # normal tf32 values throughout
    memory[:] = exponents
    width = -(-image_bytes(plan) // 16) * 16
    tables = runner_tables(
        [
            (
                place_map(plan.raw, memory.ctypes.data),
                [(i.smem_offset_bytes, c) for i, c in zip(plan.issues, plan.coordinates(origin), strict=True)],
                plan.expect_tx_bytes,
                0,
            )
            for origin in origins
        ]
    )
    images, status = np.zeros((len(origins), width), dtype=np.uint8), np.zeros(len(origins), dtype=np.int32)
    maps = np.zeros(tables.maps.size + 64, dtype=np.uint8)
    aligned = maps[-maps.ctypes.data % 64 :][: tables.maps.size]
    aligned[:] = tables.maps.reshape(-1)
    fault = hostsim.run(
        runner_kernel(len(plan.tensor_map.dims), "load"),
        [aligned, tables.heads, tables.issues, images, width, status],
        blocks=len(origins), dynamic_smem_bytes=runner_smem_bytes(width),
        regions=[(memory.ctypes.data, memory.nbytes)],
    )  # fmt: skip
    assert fault == 0, hostsim.FAULTS[fault]
    assert set(status.tolist()) == {STATUS_DONE}
    for origin, image in zip(origins, images, strict=True):
        values, _ = problem.expected(memory, origin)
        wanted = np.full(width, POISON, dtype=np.uint8)
        wanted[problem.addresses()[..., None] + np.arange(size)] = values
        assert np.array_equal(image, wanted)
        assert np.array_equal(image[: image_bytes(plan)], shared_image(plan, memory, origin))
