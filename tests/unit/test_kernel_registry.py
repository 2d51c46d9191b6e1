"""Every function that emits a kernel: it compiles for each of its targets and runs right on the CPU, without races.

A new emitter without an entry fails here. Entries hold one small case; the emitters' own tests hold many.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
from instruments.operands import proved_operand

import layoutalg.codegen
from layoutalg.codegen import hip, hostsim, validate, validate_product
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.conversion import conversion_kernel, conversion_loop
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.factored import factored_kernel
from layoutalg.codegen.fragment_product import fragment_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import ArrayKernel, copy_kernel, transpose_kernel, transpose_ring_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.matmul import matmul_kernel
from layoutalg.codegen.matrix_calls import callable_instructions
from layoutalg.codegen.product import product_kernel, wgmma_tiles
from layoutalg.codegen.wgmma import Shape, chain_kernel
from layoutalg.f2 import LinearLayout
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.synth import conversion, factorise, synthesize_tensormap
from layoutalg.targets.target_model import model_of

HOPPER = ("sm_90a",)
"""Targets whose copy engine was measured: no descriptor is made for others."""
NVIDIA = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
Made = tuple[KernelSource, Callable[[], None]]
needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def tile_plan(arch: str, direction: str) -> TensorMapPlan:
    return synthesize_tensormap(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": arch, "direction": direction,
            "global": {"shape": [64, 64], "stride": [64, 1], "dtype": "u8", "base_align_bytes": 256},
            "tile": [16, 32], "smem": {"modes": [[[16, 32]], [[32, 1]]], "swizzle": "32B"},
        }
    )  # fmt: skip


def load(arch: str) -> Made:
    plan = tile_plan(arch, "load")

    def run() -> None:
        assert validate(plan, device="host")

    return load_kernel(plan), run


def store(arch: str) -> Made:
    plan = tile_plan(arch, "store")

    def run() -> None:
        assert validate(plan, device="host")

    return store_kernel(plan), run


def product(arch: str) -> Made:
    a, b = (proved_operand(side, 64, 32, "K", "64B") for side in "AB")

    def run() -> None:
        assert validate_product(a, b, device="host")

    made = product_kernel(a, b)
    assert made == matmul_kernel(a.copy, b.copy, wgmma_tiles(a.consumer), wgmma_tiles(b.consumer), made.name)
    return made, run


def factored(arch: str) -> Made:
    columns = (8, 2, 4, 1, 16, 32, 64, 128, 256)
    layout = LinearLayout((("register", 3), ("lane", 5), ("warp", 1)), (("offset", 9),), columns)
    found = factorise(layout, dtype="f32")
    kernel, plan = factored_kernel(found), found.plan.descriptor

    def run() -> None:
        values = placed(plan.problem.byte_span()[1] // 4, np.uint32)
        shared = np.empty(layout.size, dtype=np.uint32)
        shared[found.carried.table()] = values[: layout.size]
        words, times, status = (np.zeros(layout.size, np.uint32), np.zeros(2, np.uint64), np.zeros(1, np.int32))
        arguments = [place_map(plan.raw, values.ctypes.data), *[0] * plan.problem.rank, words, times, 1, status]
        assert hostsim.run(kernel, arguments, regions=[(values.ctypes.data, values.nbytes)]) == 0
        assert status[0] == 1
        assert np.array_equal(words, shared[layout.table()])

    return kernel, run


def placed(count: int, dtype: type) -> np.ndarray:
    """Random elements at a multiple of 256 bytes."""
    size = count * np.dtype(dtype).itemsize
    raw = np.random.default_rng(count).integers(0, 256, size + 256, dtype=np.uint8)
    return raw[-raw.ctypes.data % 256 :][:size].view(dtype)


def ran(kernel: KernelSource, arguments: list, **options: object) -> None:
    """Run a kernel over the portable names; a race is a fault."""
    found = hostsim.trace(kernel, arguments, races=True, **options)
    assert hostsim.FAULTS[found.fault] == "none", found.why


def moved(made: ArrayKernel, shape: tuple[int, int], turned: bool) -> Made:
    def run() -> None:
        source, result = placed(shape[0] * shape[1], np.uint16), placed(shape[0] * shape[1] + 128, np.uint16)
        into = result[: source.size]
        into[:] = 0
        regions = [(array.ctypes.data, array.nbytes) for array in (source, into)]
        ran(made.kernel, made.arguments(source, into), blocks=made.blocks, regions=regions)
        wanted = source.reshape(shape).T if turned else source
        assert np.array_equal(into, wanted.reshape(-1))

    return made.kernel, run


def copy(arch: str) -> Made:
    return moved(copy_kernel((33, 72), "f16", arch, way="tma" if arch in HOPPER else "vector"), (33, 72), turned=False)


def transpose(arch: str) -> Made:
    return moved(transpose_kernel((67, 131), "f16", arch), (67, 131), turned=True)


def transpose_ring(arch: str) -> Made:
    return moved(transpose_ring_kernel((72, 136), "f16", arch), (72, 136), turned=True)


def ends(arch: str) -> list[LinearLayout]:
    """Four registers of a warp or wave: the register bits are the lowest of the tensor, or the highest."""
    lanes = 6 if arch in AMD[:3] else 5
    bits = [(1 << bit,) for bit in range(lanes + 2)]
    return [
        LinearLayout.from_bases({"register": cut[0], "lane": cut[1], "warp": []}, {"x": 1 << lanes + 2})
        for cut in ((bits[:2], bits[2:]), (bits[-2:], bits[:-2]))
    ]


def convert(arch: str) -> Made:
    source, destination = ends(arch)
    kernel = conversion_kernel(conversion(source, destination, 32, arch))

    def run() -> None:
        values = placed(source.size, np.uint32)
        given, wanted = (values[layout.table().reshape(-1, 4).T].copy() for layout in (source, destination))
        found = np.zeros_like(wanted)
        ran(kernel, [given, found])
        assert np.array_equal(found, wanted)

    return kernel, run


def there_and_back(arch: str) -> Made:
    one, other = ends(arch)
    kernel = conversion_loop(conversion(one, other, 32, arch), conversion(other, one, 32, arch))

    def run() -> None:
        words = placed(one.size, np.uint32).copy()
        found, cycles = np.zeros_like(words), np.zeros(1, np.uint64)
        ran(kernel, [words, found, cycles, 3])
        assert np.array_equal(found, words)

    return kernel, run


def fragment(arch: str) -> Made:
    instruction = next(name for name in callable_instructions(arch) if "f32" in name and "bf16" not in name)
    kernel = fragment_kernel(arch, instruction)
    m, n, k = model_of(arch).shape(instruction).value
    many = model_of(arch).fragment(instruction, "A").out_dims.get("matrix", 1)

    def run() -> None:
        rng = np.random.default_rng(5)
        a, b = (rng.integers(-4, 5, (many, rows, k)).astype(np.float16) for rows in (m, n))
        c = rng.integers(-4, 5, (many, m, n)).astype(np.float32)
        d = np.zeros_like(c)
        ran(kernel, [a.view(np.uint16), b.view(np.uint16), c.view(np.uint32), d.view(np.uint32)])
        assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).swapaxes(1, 2) + c)

    return kernel, run


def chain(arch: str) -> Made:
    def run() -> None:
        """The CPU has models of the products of f16 and bf16 that ``prelude`` names; this text is for devices."""

    return chain_kernel(Shape("bf16", "bf16", "f32", 16)), run


REGISTRY: dict[str, tuple[Callable[[str], Made], tuple[str, ...]]] = {
    "chain_kernel": (chain, HOPPER),
    "conversion_kernel": (convert, (*NVIDIA, *AMD)),
    "conversion_loop": (there_and_back, (*NVIDIA, *AMD)),
    "copy_kernel": (copy, (*NVIDIA, *AMD)),
    "factored_kernel": (factored, HOPPER),
    "fragment_kernel": (fragment, (*NVIDIA, *AMD)),
    "load_kernel": (load, HOPPER),
    "matmul_kernel": (product, HOPPER),
    "product_kernel": (product, HOPPER),
    "store_kernel": (store, HOPPER),
    "transpose_kernel": (transpose, (*NVIDIA, *AMD)),
    "transpose_ring_kernel": (transpose_ring, HOPPER),
}


ELSEWHERE = {"gather_kernel", "staging_kernel", "transpose_windows_kernel"}
"""Emitters without an entry here yet."""


def emitters() -> set[str]:
    """Public functions of the package that return a kernel, but for those that are given one."""
    found = set()
    for info in pkgutil.walk_packages(layoutalg.codegen.__path__, "layoutalg.codegen."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or not inspect.isfunction(value) or value.__module__ != info.name:
                continue
            notes = value.__annotations__
            given = {str(note) for argument, note in notes.items() if argument != "return"}
            returned = str(notes.get("return"))
            if ("KernelSource" in returned or "ArrayKernel" in returned) and not name.startswith("checked_"):
                assert "KernelSource" not in given
                found.add(name)
    return found


def test_every_emitter_has_an_entry():
    assert emitters() - ELSEWHERE == set(REGISTRY)


@needs_compiler
@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "matmul_kernel"])
def test_it_runs_right_on_the_cpu(name):
    make, archs = REGISTRY[name]
    chosen = [arch for arch in archs if arch in ("sm_90a", "gfx942", *(("gfx1100",) * (name == "fragment_kernel")))]
    for arch in chosen:
        make(arch)[1]()


@pytest.mark.parametrize("arch", [*NVIDIA, *AMD])
def test_it_compiles_for_its_targets(arch):
    if arch in AMD and not hip.available():
        pytest.skip('no clang for AMD: pip install "layoutalg[hip]"')
    if arch in NVIDIA:
        pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    for name, (make, archs) in REGISTRY.items():
        if arch in archs:
            code = (hip.to_code_object if arch in AMD else to_cubin)(make(arch)[0])
            assert code[:4] == b"\x7fELF", name
