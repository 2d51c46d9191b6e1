"""Kernels of factored layouts: run on the CPU both ways, compiled to machine code, and refusals."""

from __future__ import annotations

import random
import shutil
from typing import Literal

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.factored import factored_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.synth import factorise

WAYS: tuple[Literal["shuffles", "shared"], ...] = ("shuffles", "shared")


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


def factored(layout: LinearLayout) -> Factorisation:
    found = factorise(layout)
    assert isinstance(found, Factorisation)
    return found


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no C++ compiler")
@pytest.mark.parametrize(("seed", "registers", "warps"), [(0, 3, 1), (1, 3, 0), (2, 4, 2), (3, 2, 1)])
def test_the_text_brings_every_register_its_element(seed: int, registers: int, warps: int) -> None:
    layout = drawn(seed, registers, warps)
    found = factored(layout)
    plan = found.plan.descriptor
    elements = plan.problem.byte_span()[1] // 2
    store = np.zeros(elements + 256, dtype=np.uint16)
    values = store[-store.ctypes.data % 256 // 2 :][:elements]
    values[:] = np.random.default_rng(seed).integers(0, 1 << 16, elements)
    shared = np.empty(layout.size, dtype=np.uint16)
    shared[found.carried.table()] = values[: layout.size]
    for way in WAYS:
        words, times = np.zeros(layout.size, dtype=np.uint32), np.zeros(2, dtype=np.uint64)
        status = np.zeros(1, dtype=np.int32)
        arguments = [place_map(plan.raw, values.ctypes.data), *[0] * plan.problem.rank, words, times, 1, status]
        kernel = factored_kernel(found, way)
        assert hostsim.run(kernel, arguments, regions=[(values.ctypes.data, values.nbytes)]) == 0
        assert status[0] == 1
        assert np.array_equal(words, shared[layout.table()])


@pytest.mark.compile
def test_both_ways_compile() -> None:
    found = factored(drawn(4, 4, 1))
    for way in WAYS:
        assert to_cubin(factored_kernel(found, way))[:4] == b"\x7fELF"


def test_what_no_kernel_runs_is_refused() -> None:
    few = factored(LinearLayout.from_bases({"register": [(8,)], "lane": [(1,), (2,), (4,)]}, {"offset": 16}))
    with pytest.raises(MalformedError, match="LA883"):
        factored_kernel(few)
    with pytest.raises(MalformedError, match="LA883"):
        factored_kernel(factored(drawn(4, 3, 0)), "magic")  # type: ignore[arg-type]
