"""Register fragments against a device: run one matrix instruction, and compare with what the fragment says.

Implementation notes: a run returns every array that went in or came out, and a check reads nothing else, so a recorded
run is checked without a GPU. The order of k alone is a convention of A and B together that no product can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from instruments.fragments import (
    LARGEST,
    WARP,
    decode,
    element_bits,
    encode,
    matrix_move_kernel,
    mma_kernel,
    pack,
    type_of,
    unpack,
    wgmma_register_kernel,
    word_count,
)
from layoutalg.codegen import launch
from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.nvidia import ldmatrix_fragment, ldmatrix_rows, wgmma_fragment, wgmma_operand
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_fragment
from layoutalg.targets.nvidia import wgmma

RANGES = {"u8": (0, LARGEST), "s4": (-8, 7), "u4": (0, 15), "b1": (0, 1)}
"""Least and greatest integer of the types that do not have all of them."""
Arrays = Mapping[str, npt.NDArray[Any]]
Difference = tuple[tuple[int, ...], float, float]
"""Where, the value found, the value expected."""


def run_mma(name: str, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Run one ``mma.sync`` on random integers; return the registers ``a``, ``b``, ``d`` as uint32[lane, word]."""
    shape = MMA[name]
    rng = np.random.default_rng(seed)
    arrays = {}
    for operand, extent in (("A", (shape.m, shape.k)), ("B", (shape.k, shape.n))):
        dtype = type_of(name, operand)
        low, high = RANGES.get(dtype, (-LARGEST, LARGEST))
        raw = encode(rng.integers(low, high + 1, extent), dtype)
        arrays[operand.lower()] = pack(mma_fragment(name, operand), raw, element_bits(name, operand))
    count = word_count(mma_fragment(name, "D"), element_bits(name, "D"))
    arrays["d"] = np.zeros((WARP, count), dtype=np.uint32)
    launch.run(mma_kernel(name), [arrays["a"], arrays["b"], arrays["d"]])
    return arrays


def mma_difference(name: str, arrays: Arrays) -> Difference | None:
    """Return the first entry where D is not A B, read through the fragments of the instruction; None when all agree.

    Args:
        name: Instruction, as in ``MMA``.
        arrays: What ``run_mma`` returned.
    """
    shape = MMA[name]
    a, b, d = (
        decode(
            unpack(mma_fragment(name, operand), arrays[operand.lower()], element_bits(name, operand)),
            type_of(name, operand),
        )
        for operand in "ABD"
    )
    product = a @ b
    if shape.product == "xor":
        product = a.sum(axis=1)[:, None] + b.sum(axis=0) - 2 * product
    return _first(d, product)


def run_ldmatrix(matrices: int, transposed: bool, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Run one ``ldmatrix`` on a random image whose rows lie in random order; return image, offsets and words."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, 128 * matrices, dtype=np.uint8)
    offsets = _row_offsets(matrices, rng)
    words = np.zeros((WARP, matrices), dtype=np.uint32)
    launch.run(matrix_move_kernel("ldmatrix", matrices, transposed), [image, offsets, words])
    return {"image": image, "offsets": offsets, "words": words}


def run_stmatrix(matrices: int, transposed: bool, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Run one ``stmatrix`` of random words to rows in random order; return words, offsets and image."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, (WARP, matrices), dtype=np.uint32)
    offsets = _row_offsets(matrices, rng)
    image = np.zeros(128 * matrices, dtype=np.uint8)
    launch.run(matrix_move_kernel("stmatrix", matrices, transposed), [words, offsets, image])
    return {"image": image, "offsets": offsets, "words": words}


def matrix_move_difference(matrices: int, transposed: bool, bits: int, arrays: Arrays) -> Difference | None:
    """Return the first (lane, element) that ``ldmatrix_fragment`` with ``ldmatrix_rows`` places wrongly, or None.

    Args:
        matrices: 1, 2 or 4.
        transposed: The ``.trans`` form.
        bits: Element bits to read the rows by: 8, 16 or 32 (16 with ``.trans``).
        arrays: What ``run_ldmatrix`` or ``run_stmatrix`` returned: both move the same elements, one each way.
    """
    fragment, rows = ldmatrix_fragment(matrices, transposed, bits), ldmatrix_rows(matrices)
    kind = f"<u{bits // 8}"
    start = {int(rows.at(lane)): int(arrays["offsets"][lane]) for lane in range(8 * matrices)}
    columns = 128 // bits
    flat = fragment.table()
    row, col, matrix = flat % 8, flat // 8 % columns, flat // (8 * columns)
    places = np.array([start[int(r + 8 * m)] for r, m in zip(row, matrix, strict=True)]) + col * bits // 8
    image = np.ascontiguousarray(arrays["image"]).view(kind)
    found = np.ascontiguousarray(arrays["words"]).view(kind).reshape(WARP, -1)
    return _first(found.astype(np.float64), image[places * 8 // bits].reshape(found.shape).astype(np.float64))


def run_wgmma(dtype: str, n: int, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Run one ``wgmma`` with A in registers on random integers; return ``a``, the image of B and ``d``."""
    rng = np.random.default_rng(seed)
    a = pack(_operand_a(), encode(rng.integers(-LARGEST, LARGEST + 1, (64, 16)), dtype), 16)
    b = encode(rng.integers(-LARGEST, LARGEST + 1, (n, 16)), dtype).astype("<u2")
    image = np.zeros(16 * n, dtype="<u2")
    image[_b_offsets(n) // 2] = b
    d = np.zeros((128, n // 2), dtype=np.float32)
    kernel = wgmma_register_kernel(dtype, n, _b_descriptor().encode(), 32 * n)
    launch.run(kernel, [a, image.view(np.uint8), d])
    return {"a": a, "image": image.view(np.uint8), "d": d}


def wgmma_difference(dtype: str, n: int, arrays: Arrays) -> Difference | None:
    """Return the first entry where D is not A B, with A by ``wgmma_operand`` and D by ``wgmma_fragment``.

    Args:
        dtype: ``"f16"`` or ``"bf16"``.
        n: Columns.
        arrays: What ``run_wgmma`` returned.
    """
    a = decode(unpack(_operand_a(), arrays["a"], 16), dtype)
    image = np.ascontiguousarray(arrays["image"]).view("<u2").astype(np.uint64)
    b = decode(image[_b_offsets(n) // 2], dtype)
    places = wgmma_fragment(n).table().reshape(-1, 2)
    d = np.full((64, n), np.nan)
    # digits (v0, v1, v2, q, g, w), first fastest: the values of a lane, then the lanes
    d[places[:, 0], places[:, 1]] = arrays["d"].reshape(-1)
    return _first(d, a @ b.T)


def _operand_a() -> LinearLayout:
    """The fragment of A, without the axis of blocks."""
    found = wgmma_operand("A", (64, 16))
    bases = {axis: found.bases[axis] for axis in ("register", "lane", "warp")}
    return LinearLayout.from_bases(bases, found.out_dims)


def _b_descriptor() -> wgmma.MatrixDescriptor:
    """B without swizzle: 8x8 core matrices, two along k 128 bytes apart, the next eight columns 256."""
    return wgmma.MatrixDescriptor(0, leading_bytes=128, stride_bytes=256, base_offset=0, swizzle="NONE")


def _b_offsets(n: int) -> npt.NDArray[np.int64]:
    return wgmma.operand_offsets(_b_descriptor(), rows=n, k=16, element_bits=16, major="K")


def _row_offsets(matrices: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Byte offset that each lane supplies: rows in random order; lanes without a row point to the start."""
    offsets = np.zeros(WARP, dtype=np.int32)
    offsets[: 8 * matrices] = 16 * rng.permutation(8 * matrices)
    return offsets


def _first(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> Difference | None:
    wrong = np.argwhere(found != expected)
    if not len(wrong):
        return None
    place = tuple(int(i) for i in wrong[0])
    return place, float(found[place]), float(expected[place])
