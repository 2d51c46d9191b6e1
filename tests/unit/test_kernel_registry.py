"""Every function that emits a kernel: it compiles for each of its targets and runs right on the CPU, without races.

A new emitter without an entry fails here. Entries hold a small case of each way that an emitter has; the emitters' own
tests hold many. Portable texts of a target are compiled as one, and run once for all targets that share them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
from instruments.conversion_loop import conversion_loop
from instruments.joined_texts import joined
from instruments.operands import proved_operand
from judges.array_kernels import crossed, gathered, relabelled, staged

import layoutalg.codegen
from layoutalg import synth
from layoutalg.codegen import hip, hostsim, validate, validate_product
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.cuda import load_kernel, store_kernel, tile_kernel
from layoutalg.codegen.factored import factored_kernel
from layoutalg.codegen.fragment_product import fragment_kernel
from layoutalg.codegen.gather import gather_registers_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels import (
    ArrayKernel,
    copy_kernel,
    transpose_kernel,
    transpose_ring_kernel,
    transpose_windows_kernel,
)
from layoutalg.codegen.kernels.schedule import schedule_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.matmul import matmul_kernel
from layoutalg.codegen.matrix_calls import callable_instructions
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.product import product_kernel, wgmma_tiles
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


def tile(arch: str) -> Made:
    plan = tile_plan(arch, "load")
    assert tile_kernel(plan) == load_kernel(plan)
    return load(arch)


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


def schedule(arch: str) -> Made:
    kernel = schedule_kernel(5, [(16, 1), (64, 1)], 200, arch, given="sizes")

    def run() -> None:
        sizes, found = np.array([17, 0, 64, 1, 100], dtype=np.int32), np.zeros(4 + 4 * 16, dtype=np.int32)
        ran(kernel, [sizes, found, 16, 1])
        assert found[:4].tolist() == [5, 64, 0, 1]
        tiles = [[0, 17, 0, 0], [17, 64, 2, 17], [81, 1, 3, 81], [82, 64, 4, 82], [146, 36, 4, 146]]
        assert found[4:24].reshape(5, 4).tolist() == tiles

    return kernel, run


def copy_engine(arch: str) -> Made:
    return moved(copy_kernel((33, 72), "f16", arch, way="tma"), (33, 72), turned=False)


def copy(arch: str) -> Made:
    return moved(copy_kernel((33, 71), "f16", arch, way="vector"), (33, 71), turned=False)


def transpose(arch: str) -> Made:
    return moved(transpose_kernel((68, 132), "f16", arch, way="vectors"), (68, 132), turned=True)


def transpose_windows(arch: str) -> Made:
    return moved(transpose_windows_kernel((67, 131), "f16", arch), (67, 131), turned=True)


class Written(Exception):  # noqa: N818
    """A judge has written its kernel."""


def judged(judge: Callable[..., None], *case: object, **options: object) -> Callable[[str], Made]:
    """A case of a judge: its kernel, and its comparison with what that does on the CPU."""

    def make(arch: str) -> Made:
        kernels = []

        def written(kernel: KernelSource, *_: object) -> None:
            kernels.append(kernel)
            raise Written

        def traced(kernel: KernelSource, arguments: list, blocks: int) -> None:
            if judge is crossed:  # on the CPU the blocks of a cluster are one
                sizes = {"threads": blocks * kernel.threads, "dynamic_smem_bytes": blocks * kernel.dynamic_smem_bytes}
                kernel, blocks = dataclasses.replace(kernel, **sizes), 1
            ran(kernel, arguments, blocks=blocks)

        with contextlib.suppress(Written):
            judge(written, arch, *case, **options)
        return kernels[0], lambda: judge(traced, arch, *case, **options)

    return make


def transpose_ring(arch: str) -> Made:
    return moved(transpose_ring_kernel((72, 136), "f16", arch), (72, 136), turned=True)


def ends(arch: str, mechanism: str = "shuffles") -> list[LinearLayout]:
    """Four or eight registers of two warps or waves; how far elements go is what the mechanism is for."""
    lanes = 6 if arch in AMD[:3] else 5
    many = 3 if mechanism in ("shared", "matrices") else 2
    bits = [(1 << bit,) for bit in range(many + lanes + 1)]
    inner, warp = bits[:-1], bits[-1:]
    order = {
        "registers": [bits[1], bits[0], *bits[2:]], "shuffles": [*inner[-many:], *inner[:-many], *warp],
        "shared": [*bits[-many:], *bits[:-many]], "matrices": [bits[0], *bits[-2:], *bits[1:-2]],
    }[mechanism]  # fmt: skip
    return [
        LinearLayout.from_bases(
            {"register": cut[:many], "lane": cut[many:-1], "warp": cut[-1:]}, {"x": 1 << many + lanes + 1}
        )
        for cut in (bits, order)
    ]


def convert(mechanism: str) -> Callable[[str], Made]:
    def make(arch: str) -> Made:
        source, destination = ends(arch, mechanism)
        size = 16 if mechanism == "matrices" else 32
        plan = conversion(source, destination, size, arch, mechanism=mechanism)
        assert plan.mechanism == mechanism
        kernel = conversion_kernel(plan, f"la_convert_by_{mechanism}")

        def run() -> None:
            values = placed(source.size, {16: np.uint16, 32: np.uint32}[size])
            threads = kernel.threads
            given, wanted = (
                np.ascontiguousarray(values[layout.table().reshape(threads, -1)].view(np.uint32).T)
                for layout in (source, destination)
            )
            found = np.zeros_like(wanted)
            ran(kernel, [given, found])
            assert np.array_equal(found, wanted)

        return kernel, run

    return make


def there_and_back(arch: str) -> Made:
    one, other = ends(arch)
    kernel = conversion_loop(conversion(one, other, 32, arch), conversion(other, one, 32, arch))

    def run() -> None:
        words = placed(one.size, np.uint32).copy()
        found, cycles = np.zeros_like(words), np.zeros(1, np.uint64)
        ran(kernel, [words, found, cycles, 3])
        assert np.array_equal(found, words)

    return kernel, run


def gathering(mechanism: str) -> Callable[[str], Made]:
    """A gather of registers in which a few indices are outside."""

    def make(arch: str) -> Made:
        lanes = 6 if arch in AMD[:3] else 5
        columns = [(0, 1 << bit) for bit in range(4)]
        rows = [(1 << bit, 0) for bit in range(lanes - 1)]
        bases = {"register": columns[:2], "lane": [*columns[2:], *rows[:-1]], "warp": rows[-1:]}
        held = LinearLayout.from_bases(bases, {"row": 1 << lanes - 1, "col": 16})
        kernel = gather_registers_kernel(
            synth.gather(held, held, "col", 32, arch, mechanism=mechanism), f"la_gather_by_{mechanism}"
        )

        def run() -> None:
            table = held.table().reshape(-1, 4).T
            at = tuple(np.unravel_index(table, (1 << lanes - 1, 16), order="F"))
            values = placed(held.size, np.uint32).reshape(-1, 16)
            indices = np.random.default_rng(7).integers(-1, 17, values.shape)
            found = np.zeros(table.shape, np.uint32)
            ran(kernel, [np.ascontiguousarray(each[at]) for each in (values, indices.astype(np.int32))] + [found])
            inside = (indices >= 0) & (indices < 16)
            wanted = np.where(inside, np.take_along_axis(values, indices.clip(0, 15), 1), 0)
            assert np.array_equal(found, wanted[at])

        return kernel, run

    return make


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


REGISTRY: dict[str, tuple[Callable[[str], Made], tuple[str, ...]]] = {
    "conversion_kernel by registers": (convert("registers"), (*NVIDIA, *AMD)),
    "conversion_kernel by shuffles": (convert("shuffles"), (*NVIDIA, *AMD)),
    "conversion_kernel by shared memory": (convert("shared"), (*NVIDIA, *AMD)),
    "conversion_kernel at listed addresses": (judged(relabelled, 32, seed=1), (*NVIDIA, *AMD)),
    "conversion_kernel across a cluster": (judged(crossed, 32, seed=1), NVIDIA[1:]),
    "conversion_kernel by matrices": (convert("matrices"), HOPPER),
    "conversion_loop": (there_and_back, (*NVIDIA, *AMD)),
    "copy_kernel": (copy, (*NVIDIA, *AMD)),
    "copy_kernel by the copy engine": (copy_engine, HOPPER),
    "factored_kernel": (factored, HOPPER),
    "schedule_kernel": (schedule, HOPPER),
    "fragment_kernel": (fragment, (*NVIDIA, *AMD)),
    "gather_kernel by loads": (judged(gathered, "direct", 1, seed=1, index_bits=(64,)), (*NVIDIA, *AMD)),
    "gather_kernel by shuffles": (judged(gathered, "warp", 4, seed=4, index_bits=(64,)), (*NVIDIA, *AMD)),
    "gather_kernel by shared memory": (judged(gathered, "shared", 8, seed=8, index_bits=(32,)), (*NVIDIA, *AMD)),
    "gather_registers_kernel by shuffles": (gathering("shuffles"), (*NVIDIA, *AMD)),
    "gather_registers_kernel by shared memory": (gathering("shared"), (*NVIDIA, *AMD)),
    "load_kernel": (load, HOPPER),
    "matmul_kernel": (product, HOPPER),
    "product_kernel": (product, HOPPER),
    "staging_kernel": (judged(staged, 4, seed=4), (*NVIDIA, *AMD)),
    "store_kernel": (store, HOPPER),
    "tile_kernel": (tile, HOPPER),
    "transpose_kernel": (transpose, (*NVIDIA, *AMD)),
    "transpose_ring_kernel": (transpose_ring, HOPPER),
    "transpose_windows_kernel": (transpose_windows, (*NVIDIA, *AMD)),
}


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
    assert emitters() == {name.split(" ")[0] for name in REGISTRY} - {"conversion_loop"}  # an instrument


@needs_compiler
@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "matmul_kernel"])
def test_it_runs_right_on_the_cpu(name, portion):
    make, archs = REGISTRY[name]
    run_as = set()
    for arch in portion(archs):
        kernel, run = make(arch)
        text = kernel.text.removeprefix(portable_prelude(arch))
        if (text, hostsim.lanes_of(arch)) not in run_as:
            run_as.add((text, hostsim.lanes_of(arch)))
            run()


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("arch", [*NVIDIA, *AMD])
def test_it_compiles_for_its_targets(arch):
    if arch in AMD and not hip.available():
        pytest.skip('no clang for AMD: pip install "layoutalg[hip]"')
    if arch in NVIDIA:
        pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    kernels = [make(arch)[0] for make, archs in REGISTRY.values() if arch in archs]
    portable = [kernel for kernel in kernels if kernel.text.startswith(portable_prelude(arch))]
    assert len(portable) >= sum(len(archs) > 1 for _, archs in REGISTRY.values() if arch in archs)
    for kernel in (joined(portable), *(kernel for kernel in kernels if kernel not in portable)):
        code = (hip.to_code_object if arch in AMD else to_cubin)(kernel)
        assert code[:4] == b"\x7fELF", kernel.name
