"""Thirty programs of movement, as they are written before anyone has tuned them: five of each of six kinds."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from layoutalg.proofs.movement import Term, term

Program = Callable[[], Term]
PROGRAMS: dict[str, Program] = {}
KINDS = ("attention", "moe", "paging", "norm", "transpose", "convolution")


def program(make: Program) -> Program:
    """Add a program under the name of its function."""
    PROGRAMS[make.__name__] = make
    return make


def blocked(shape: tuple[int, ...], size: tuple[int, ...], lanes: tuple[int, ...], warps: tuple[int, ...]) -> Any:
    """Elements [warp][lane][register] of a blocked layout, the last axis fastest, repeated over the shape."""
    tile = np.array(size) * lanes * warps
    repeats = tuple(np.maximum(1, np.array(shape) // tile).tolist())
    counts = [(r, w, t, s) for r, w, t, s in zip(repeats, warps, lanes, size, strict=True)]
    rank = len(shape)
    index = np.indices([c[k] for k in (1, 2, 0, 3) for c in counts])
    warp, lane, again, own = (index[k * rank : (k + 1) * rank] for k in range(4))
    at = []
    for axis in range(rank):
        inner = size[axis] * (lane[axis] + lanes[axis] * (warp[axis] + warps[axis] * again[axis])) + own[axis]
        at.append(inner % shape[axis])
    return np.ravel_multi_index(at, shape).reshape(prod(warps), prod(lanes), -1)


def accumulator(shape: tuple[int, int]) -> Any:
    """Elements of the accumulator of matrix instructions of 16 x 8, four warps over the rows."""
    rows, columns = shape
    warp, lane, again, tile, half, own = np.indices((4, 32, rows // 64, columns // 8, 2, 2))
    row = 64 * again + 16 * warp + 8 * half + lane // 4
    return (row * columns + 8 * tile + 2 * (lane % 4) + own).reshape(4, 32, -1)


def operand(shape: tuple[int, int]) -> Any:
    """Elements of the first operand of matrix instructions of 16 x 8 x 16, four warps over the rows."""
    rows, columns = shape
    warp, lane, again, tile, k, half, own = np.indices((4, 32, rows // 64, columns // 16, 2, 2, 2))
    row = 64 * again + 16 * warp + 8 * half + lane // 4
    return (row * columns + 16 * tile + 8 * k + 2 * (lane % 4) + own).reshape(4, 32, -1)


def rows(shape: tuple[int, int], vector: int = 8) -> Any:
    """Each lane a vector of a row; as many lanes as a row has vectors, then the next rows."""
    across = min(32, shape[1] // vector)
    return blocked(shape, (1, vector), (32 // across, across), (4, 1))


def columns(shape: tuple[int, int]) -> Any:
    """Lanes along a column."""
    return blocked(shape, (1, 8), (32, 1), (min(4, shape[0] // 32), 4 // min(4, shape[0] // 32)))


def array(name: str, *shape: int, dtype: str = "bf16", **more: Any) -> Term:
    return term("input", name=name, shape=shape, dtype=dtype, **more)


def load(x: Term, layout: Any) -> Term:
    return term("load", x, layout=layout)


def convert(x: Term, layout: Any) -> Term:
    return term("convert", x, layout=layout)


def f(function: str, *of: Term, dtype: str | None = None) -> Term:
    return term("elementwise", *of, function=function, dtype=dtype)


def store(x: Term) -> Term:
    return term("store", x)


def turn(x: Term, *order: int) -> Term:
    return term("transpose", x, order=order or (1, 0))


def along_rows(function: str, x: Term) -> Term:
    """A reduction of each row, repeated over the row."""
    layout = x.kind.layout
    small = term("reduce", x, function=function, axis=1)
    return term("broadcast", small, axis=1, extent=x.kind.shape[1], layout=layout)


S = (64, 64)
_rng = np.random.default_rng(7)
SHUFFLED = tuple(_rng.permutation(64).tolist())
TOKENS = tuple(_rng.integers(0, 64, 64).tolist())


@program
def attention_probabilities() -> Term:
    scores = load(array("S", *S, dtype="f32"), accumulator(S))
    p = f("exp", f("sub", scores, along_rows("max", scores)))
    return store(convert(f("cast", convert(p, rows(S)), dtype="bf16"), operand(S)))


@program
def attention_keys_transposed() -> Term:
    k = load(array("K", *S), rows(S))
    return store(convert(turn(convert(k, columns(S))), operand(S)))


@program
def attention_output() -> Term:
    o = load(array("O", *S, dtype="f32"), accumulator(S))
    total = load(array("L", *S, dtype="f32"), accumulator(S))
    scaled = f("mul", convert(o, rows(S, 4)), convert(f("recip", along_rows("sum", total)), rows(S, 4)))
    return store(f("cast", scaled, dtype="bf16"))


@program
def attention_two_kernels() -> Term:
    scores = load(array("S", *S, dtype="f32"), rows(S, 4))
    p = store(f("cast", f("exp", scores), dtype="bf16"))
    return store(convert(load(p, rows(S)), operand(S)))


@program
def attention_mask() -> Term:
    scores = load(array("S", *S, dtype="f32"), accumulator(S))
    mask = load(array("M", *S, dtype="f32"), rows(S, 4))
    masked = f("add", convert(scores, rows(S, 4)), mask)
    return store(
        f("exp", f("sub", convert(masked, accumulator(S)), along_rows("max", convert(masked, accumulator(S)))))
    )


@program
def moe_permuted_copy() -> Term:
    x = array("X", *S)
    copy = store(load(term("gather", x, axis=0, indices=TOKENS), rows(S)))
    return store(f("relu", load(copy, rows(S))))


@program
def moe_composed_gathers() -> Term:
    x = term("gather", array("X", *S), axis=0, indices=TOKENS)
    return store(load(term("gather", x, axis=0, indices=SHUFFLED), operand(S)))


@program
def moe_there_and_back() -> Term:
    x = store(f("relu", load(array("X", *S), rows(S))))
    there = store(load(term("scatter", x, axis=0, indices=SHUFFLED, extent=64), rows(S)))
    return store(load(term("gather", there, axis=0, indices=SHUFFLED), rows(S)))


@program
def moe_padded_block() -> Term:
    x = term("gather", array("X", *S), axis=0, indices=TOKENS[:48])
    block = store(load(term("pad", x, low=(0, 0), high=(16, 0)), rows(S)))
    return store(load(term("crop", block, start=(0, 0), extents=(32, 64)), rows((32, 64))))


@program
def moe_gated() -> Term:
    up, gate = (store(f("cast", load(array(name, *S, dtype="f32"), rows(S, 4)), dtype="bf16")) for name in "UG")
    one, two = (load(term("gather", each, axis=0, indices=TOKENS), rows(S)) for each in (up, gate))
    return store(f("mul", one, f("silu", two)))


def pages(name: str, table: tuple[int, ...], page: int = 16, dtype: str = "bf16") -> Term:
    """Tokens of a page table over a pool of 8 pages."""
    taken = term("gather", array(name, 8, page, 64, dtype=dtype), axis=0, indices=table)
    return term("reshape", taken, shape=(page * len(table), 64))


@program
def paging_copied() -> Term:
    copy = store(load(pages("KV", (5, 2, 7, 0)), rows(S)))
    return store(load(copy, operand(S)))


@program
def paging_run() -> Term:
    return store(load(pages("KV", (2, 3, 4, 5)), operand(S)))


@program
def paging_last_page() -> Term:
    whole = store(load(pages("KV", (5, 2, 7, 0)), rows(S)))
    return store(convert(load(term("crop", whole, start=(0, 0), extents=(32, 64)), rows((32, 64))), columns((32, 64))))


@program
def paging_transposed() -> Term:
    k = store(turn(load(pages("K", (6, 1, 3, 2)), rows(S))))
    return store(load(turn(k), rows(S)))


@program
def paging_dequantised() -> Term:
    wide = store(f("cast", load(pages("KV", (1, 0, 3, 6), dtype="e4m3"), rows(S, 16)), dtype="bf16"))
    return store(convert(load(term("gather", wide, axis=0, indices=SHUFFLED), rows(S)), operand(S)))


@program
def norm_root_mean_square() -> Term:
    x = load(array("X", *S, dtype="f32"), rows(S, 4))
    square = convert(f("mul", x, x), accumulator(S))
    scale = convert(f("rsqrt", along_rows("mean", square)), rows(S, 4))
    return store(f("mul", x, scale))


@program
def norm_two_kernels() -> Term:
    x = load(array("X", *S, dtype="f32"), rows(S, 4))
    centred = store(f("sub", x, along_rows("mean", x)))
    y = load(centred, rows(S, 4))
    return store(f("mul", y, f("rsqrt", along_rows("mean", f("mul", y, y)))))


@program
def norm_transposed() -> Term:
    x = load(turn(array("X", *S, dtype="f32")), rows(S, 4))
    return store(f("sub", x, along_rows("max", x)))


@program
def norm_half() -> Term:
    x = f("cast", load(array("X", *S), rows(S)), dtype="f32")
    y = f("mul", convert(x, accumulator(S)), f("rsqrt", along_rows("mean", convert(x, accumulator(S)))))
    return store(f("cast", convert(y, rows(S)), dtype="bf16"))


@program
def norm_residual() -> Term:
    total = store(f("add", load(array("X", *S), rows(S)), load(array("R", *S), rows(S))))
    y = load(total, rows(S))
    return store(convert(f("mul", y, along_rows("mean", y)), operand(S)))


@program
def transpose_plain() -> Term:
    return store(load(turn(array("X", *S)), rows(S)))


@program
def transpose_twice() -> Term:
    once = store(load(turn(array("X", *S)), rows(S)))
    return store(f("relu", load(turn(once), rows(S))))


@program
def transpose_of_halves() -> Term:
    x = term("reshape", array("X", 64, 64), shape=(2, 32, 64))
    turned = term("reshape", turn(x, 1, 0, 2), shape=(64, 64))
    back = term("reshape", turn(term("reshape", turned, shape=(32, 2, 64)), 1, 0, 2), shape=(64, 64))
    return store(load(back, rows(S)))


@program
def transpose_in_registers() -> Term:
    x = convert(load(array("X", *S, dtype="f32"), rows(S, 4)), columns(S))
    return store(convert(turn(x), rows(S, 4)))


@program
def transpose_sum() -> Term:
    x, y = (load(array(name, *S, dtype="f32"), rows(S, 4)) for name in "XY")
    return store(convert(f("add", turn(x), turn(y)), rows(S, 4)))


@program
def convolution_padded_copy() -> Term:
    x = array("X", 16, 16, 16)
    padded = store(load(term("pad", x, low=(1, 1, 0), high=(1, 1, 0)), _whole((18, 18, 16))))
    return store(load(term("crop", padded, start=(0, 1, 0), extents=(16, 16, 16)), _rows3((16, 16, 16))))


@program
def convolution_activated() -> Term:
    x = store(f("relu", load(array("X", 16, 16, 16), _rows3((16, 16, 16)))))
    return store(
        load(
            term("crop", term("pad", x, low=(1, 1, 0), high=(1, 1, 0)), start=(2, 0, 0), extents=(16, 16, 16)),
            _rows3((16, 16, 16)),
        )
    )


@program
def convolution_channels_last() -> Term:
    x = turn(array("X", 16, 16, 16), 1, 2, 0)
    last = store(load(x, _rows3((16, 16, 16))))
    shifted = term("crop", term("pad", last, low=(0, 1, 0), high=(0, 0, 0)), start=(0, 0, 0), extents=(16, 16, 16))
    return store(load(shifted, _rows3((16, 16, 16))))


@program
def convolution_pads() -> Term:
    x = term("pad", term("pad", array("X", 12, 16, 16), low=(1, 0, 0), high=(1, 0, 0)), low=(1, 0, 0), high=(1, 0, 0))
    return store(load(x, _rows3((16, 16, 16))))


@program
def convolution_strided() -> Term:
    even = tuple(range(0, 32, 2))
    x = store(f("cast", load(array("X", 32, 16, 16, dtype="f32"), _rows3((32, 16, 16), 4)), dtype="bf16"))
    return store(load(term("gather", x, axis=0, indices=even), _rows3((16, 16, 16))))


def _rows3(shape: tuple[int, int, int], vector: int = 8) -> Any:
    flat = (shape[0] * shape[1], shape[2])
    return rows(flat, vector)


def _whole(shape: tuple[int, ...]) -> Any:
    """All elements in order over 128 threads, the last threads repeating the last elements."""
    size = prod(shape)
    each = -(-size // 1024) * 8
    vector = np.minimum(np.arange(each // 8)[:, None] * 1024 + np.arange(8), size - 8 + np.arange(8))
    at = np.arange(128)[:, None, None] * 8 + vector[None]
    return np.minimum(at, size - 8 + np.arange(8)).reshape(4, 32, each)
