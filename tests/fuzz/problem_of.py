"""Texts of layouts as tiles of shared memory: the problem has the layout's own addresses, or the text is refused."""

from __future__ import annotations

import numpy as np
from fuzz.drive import refused, text_of
from fuzz.parse import SEEDS as TEXTS
from fuzz.parse import WORDS as PARSE_WORDS

import layoutalg as la
from layoutalg.ground import limits
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.tensormap import TensorMapProblem

SEEDS = [
    *TEXTS, b"Sw<3,3,3> o 0 o (8,64):(64,1)", b"Sw<3,4,3,byte> o (8,64):(64,1)", b"row 8:64, col 64:1 -> offset:512",
    b"F2[dim0=(9)(18)(36), dim1=(1)(2)(4)(64) -> offset:128]", b"Z[dim1:48=(1), dim0:5=(64) -> offset]",
    b"F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]", b"Sw<1,3,3> o 64 o (4,(2,8)):(64,(8,1))",
    b"#ttg.padded_shared<[4:+1] {order = [1, 0], shape = [4, 4]}>",
    b"{ [i, j] -> [64i + j] : 0 <= i < 4 and 0 <= j < 8 }",
]  # fmt: skip
WORDS = [*PARSE_WORDS, "dim0", "dim1", "offset", "row", "col", "byte", "shape = ", "order = "]
LIMIT = 1.5 * limits.ISL_SECONDS


def target(data: bytes) -> None:
    text = text_of(data)
    width, dtype = [(1, "u8"), (2, "bf16"), (8, "f64")][len(text) % 3]
    try:
        found = shared_tile(text, None, width)
        shape = [2 * extent for extent in found.tile]
        problem = TensorMapProblem.of((shape, None, dtype), found.tile, text)
    except LayoutError as error:
        refused(error)
        return
    assert (problem.tile, problem.smem_modes, problem.swizzle) == (found.tile, found.modes, found.swizzle)
    if "#" in text or "dim" in text or "row" in text or "byte" in text:
        return  # axes by name, or a swizzle of bytes: the table of the value is in another order
    table = np.asarray(la.parse(text).table()).reshape(found.tile, order="F")
    assert np.array_equal(problem.addresses(), width * table)
