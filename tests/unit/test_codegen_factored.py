"""Kernels of factored layouts: run on the CPU both ways, compiled to machine code, and refusals."""

from __future__ import annotations

import random
import shutil
import struct
from typing import Literal

import numpy as np
import pytest
from instruments.elf import local_bytes

from layoutalg.codegen import hostsim
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.factored import factored_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.synth import factorise

WAYS: tuple[Literal["exchanges", "shuffles", "shared"], ...] = ("exchanges", "shuffles", "shared")


def drawn(seed: int, registers: int, warps: int) -> LinearLayout:
    """A 128B-swizzled order of bits after a dense or a one-hot residual, with a shift inside the warp."""
    rng = random.Random(seed)
    inner, n = registers + 5, registers + 5 + warps
    local = [1 << bit for bit in rng.sample(range(inner), inner)]
    while seed % 2 and matrix.rank(local := [rng.randrange(1, 1 << inner) for _ in range(inner)]) < inner:
        pass
    order = [*range(6), *rng.sample(range(6, n), n - 6)]
    carried = [1 << bit for bit in order]
    carried = [unit ^ (unit >> 3 & 0x38) for unit in carried]
    upper = [rng.randrange(1 << inner) | 1 << bit for bit in range(inner, n)]
    columns = tuple(matrix.apply(carried, column) for column in (*local, *upper))
    axes = (("register", registers), ("lane", 5), ("warp", warps))
    return LinearLayout(axes, (("offset", n),), columns, columns[2])


def swapped(seed: int, registers: int, warps: int, dtype: str) -> LinearLayout:
    """A plain tile after two exchanges of a register bit and a lane bit, the highest registers staying."""
    rng = random.Random(seed)
    n = registers + 5 + warps
    columns = [1 << bit for bit in range(n)]
    for one, other in zip(
        rng.sample(range(registers), min(2, registers - 1)), rng.sample(range(registers, registers + 5), 2),
        strict=False,
    ):  # fmt: skip
        columns[one], columns[other] = columns[other], columns[one]
    axes = (("register", registers), ("lane", 5), ("warp", warps))
    return LinearLayout(axes, (("offset", n),), tuple(columns), columns[registers])


SHFL_XOR = 0xF89
"""Low twelve bits of a shuffle whose operands are constants."""


def instructions(code: bytes) -> list[int]:
    """The low twelve bits of every instruction of the kernel."""
    (table,), (entry, count, names_at) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HHH", code, 58)
    heads = [struct.unpack_from("<IIQQQQ", code, table + entry * place) for place in range(count)]
    names = heads[names_at][4]
    return [
        struct.unpack_from("<H", code, first + at)[0] & 0xFFF
        for name, _, _, _, first, size in heads
        if code[names + name :].startswith(b".text.")
        for at in range(0, size, 16)
    ]


def factored(layout: LinearLayout, dtype: str = "bf16") -> Factorisation:
    found = factorise(layout, dtype=dtype)
    assert isinstance(found, Factorisation)
    return found


@pytest.mark.nightly(one_of=3)
@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("seed", "registers", "warps", "dtype"),
    [(0, 3, 1, "bf16"), (1, 3, 0, "bf16"), (2, 4, 2, "bf16"), (3, 2, 1, "bf16"), (4, 4, 1, "u8"), (6, 3, 0, "f32"),
     (8, 5, 0, "u8")],
)  # fmt: skip
def test_the_text_brings_every_register_its_element(seed: int, registers: int, warps: int, dtype: str) -> None:
    layout = drawn(seed, registers, warps) if dtype == "bf16" else swapped(seed, registers, warps, dtype)
    found = factored(layout, dtype)
    plan = found.plan.descriptor
    kind = {"bf16": np.uint16, "u8": np.uint8, "f32": np.uint32}[dtype]
    elements = plan.problem.byte_span()[1] // np.dtype(kind).itemsize
    store = np.zeros(elements + 256, dtype=kind)
    values = store[-store.ctypes.data % 256 // store.itemsize :][:elements]
    values[:] = np.random.default_rng(seed).integers(0, 256**store.itemsize, elements)
    shared = np.empty(layout.size, dtype=kind)
    shared[found.carried.table()] = values[: layout.size]
    for way in WAYS:
        words, times = np.zeros(layout.size, dtype=np.uint32), np.zeros(2, dtype=np.uint64)
        status = np.zeros(1, dtype=np.int32)
        arguments = [place_map(plan.raw, values.ctypes.data), *[0] * plan.problem.rank, words, times, 1, status]
        kernel = factored_kernel(found, way)
        assert hostsim.run(kernel, arguments, regions=[(values.ctypes.data, values.nbytes)]) == 0
        assert status[0] == 1
        assert np.array_equal(words, shared[layout.table()])


@pytest.mark.nightly(one_of=2)
@pytest.mark.compile
@pytest.mark.parametrize(("seed", "registers"), [(4, 4), (7, 5)])
def test_every_way_compiles(seed: int, registers: int) -> None:
    found = factored(drawn(seed, registers, 1))
    for way in WAYS:
        assert to_cubin(factored_kernel(found, way))[:4] == b"\x7fELF"


@pytest.mark.compile
@pytest.mark.parametrize("seed", [4, 6, 8])
def test_exchanges_are_the_instructions_counted_and_no_words_lie_in_local_memory(seed: int) -> None:
    found = factored(swapped(seed, 4, 1, "f32"), "f32")
    assert found.exchange is not None
    once = found.exchange.cost.shuffles
    code = to_cubin(factored_kernel(found, "exchanges"))
    assert local_bytes(code) < 4 * found.exchange.words
    shuffles = instructions(code).count(SHFL_XOR)
    assert once
    assert shuffles % once == 0
    assert shuffles // once == 5  # four turns of the loop, and the rest one by one


@pytest.mark.compile
def test_the_measure_of_local_memory_sees_some() -> None:
    text = (
        'extern "C" __global__ void k(int* p, int n) { int a[64]; for (int i = 0; i < 64; ++i) a[i] = p[i];'
        " for (int i = 0; i < n; ++i) a[p[i] & 63] += i; for (int i = 0; i < 64; ++i) p[i] = a[(i * n) & 63]; }"
    )
    assert local_bytes(to_cubin(text)) >= 256


def test_what_no_kernel_runs_is_refused() -> None:
    few = factored(LinearLayout.from_bases({"register": [(8,)], "lane": [(1,), (2,), (4,)]}, {"offset": 16}))
    with pytest.raises(MalformedError, match="LA883"):
        factored_kernel(few)
    with pytest.raises(MalformedError, match="LA883"):
        factored_kernel(factored(drawn(4, 3, 0)), "magic")  # type: ignore[arg-type]
