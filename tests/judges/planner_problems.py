"""Small random problems for the TensorMap planner, as documents: about half of them can be carried.

Implementation notes: two styles. *Near* problems start from rows of whole 16-byte chunks and dense shared memory, and
each feature spoils or stretches them with its own probability; *wild* problems draw every number on its own. A tile has
at most 64 elements (128 of one byte), so that every byte of every tile origin can be looked at.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

SIZES = {"u8": 1, "u16": 2, "bf16": 2, "f16": 2, "f32": 4, "u32": 4, "s32": 4, "tf32": 4, "u64": 8, "s64": 8, "f64": 8}
DTYPES = ("u8", "u16", "bf16", "f16", "f16", "f32", "f32", "u32", "s32", "tf32", "u64", "s64", "f64", "f64")
FLOATS = ("bf16", "f16", "f32", "tf32", "f64")
SPANS = {"NONE": 0, "32B": 32, "64B": 64, "128B": 128}
RANKS = (1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7)
FEATURES = (
    "inner not last", "units", "zero", "negative", "overlap", "huge", "strided", "strided inner", "bounds",
    "low bounds", "origins", "fixed", "offset", "store", "nan", "holes", "blocks", "required", "align",
)  # fmt: skip
"""What a problem can have beyond rows on a grid; ``features`` names those of one document."""


def random_problem(rng: random.Random, rank: int | None = None) -> dict[str, Any]:
    """Return a problem document, of the given rank where one is given."""
    rank = rank or rng.choice(RANKS)
    return _wild(rng, rank) if rng.random() < 0.15 else _near(rng, rank)


def _near(rng: random.Random, rank: int) -> dict[str, Any]:
    dtype = rng.choice(DTYPES)
    size = SIZES[dtype]
    chunk = 16 // size
    inner = rank - 1 if rng.random() < 0.8 else rng.randrange(rank)
    tile = _tile(rng, rank, inner, chunk)
    shape = [_extent(rng, t, chunk if dim == inner else 1) for dim, t in enumerate(tile)]
    order = [inner, *(dim for dim in reversed(range(rank)) if dim != inner)]
    if rng.random() < 0.15:
        order[1:] = rng.sample(order[1:], rank - 1)
    stride = _strides(rng, shape, order, chunk)
    offset = _spoil_strides(rng, shape, stride, order, chunk)
    steps = [1] * rank
    if rng.random() < 0.2:
        dim = rng.choice(order[1:]) if rank > 1 and rng.random() < 0.8 else inner
        steps[dim] = rng.choice((2, 2, 3, 4, 8, 9, 16))
        shape[dim] = max(shape[dim], rng.choice((1, steps[dim], steps[dim] * tile[dim])))
    swizzle = rng.choice(tuple(SPANS))
    document = _document(rng, dtype, shape, stride, tile, _modes(rng, tile, order, size, swizzle), swizzle)
    if any(step != 1 for step in steps):
        document["element_strides"] = steps
    if rng.random() < 0.2:
        offset += rng.choice((chunk, chunk, chunk, 3 * chunk, 8 * chunk, 1))
    if offset:
        document["base_elem_offset"] = offset
    if rng.random() < 0.3:
        document["bounds"] = [_bound(rng, extent, chunk if dim == inner else 1) for dim, extent in enumerate(shape)]
    if rng.random() < 0.4:
        document["origin_multiple"] = [
            _multiple(rng, tile[dim] * steps[dim], chunk if dim == inner else 1) for dim in range(rank)
        ]
    return document


def _tile(rng: random.Random, rank: int, inner: int, chunk: int) -> list[int]:
    """Extents of at most 64 elements (128 of a byte); the inner one is a multiple of a chunk, nearly always."""
    budget = 128 if chunk == 16 else 64
    tile = [1] * rank
    tile[inner] = min(budget, chunk * rng.choice((1, 1, 1, 2, 2, 3, 4, 8)))
    if rng.random() < 0.04:
        tile[inner] = max(1, tile[inner] + rng.choice((-1, 1, -chunk // 2)))
    for dim in rng.sample(range(rank), rank):
        if dim != inner:
            choices = [n for n in (1, 2, 2, 3, 4, 4, 5, 8) if math.prod(tile) * n <= budget]
            tile[dim] = rng.choice(choices or [1])
    return tile


def _extent(rng: random.Random, tile: int, grain: int) -> int:
    """An extent around a few tiles, sometimes below one, sometimes off the grain."""
    extent = tile * rng.choice((1, 1, 2, 2, 3)) + grain * rng.choice((0, 0, 0, 1, 2, -1))
    if rng.random() < 0.15:
        extent += rng.choice((1, 2, -1, 3))
    return max(1, extent)


def _strides(rng: random.Random, shape: Sequence[int], order: Sequence[int], chunk: int) -> list[int]:
    """Dense or padded strides in this order; most outer ones are whole chunks."""
    stride = [0] * len(shape)
    reach = 1
    for dim in order:
        stride[dim] = reach
        reach *= shape[dim]
        if rng.random() < 0.8:
            reach = -(-reach // chunk) * chunk
        if rng.random() < 0.2:
            reach += chunk * rng.choice((1, 2, 3))
        if rng.random() < 0.03:
            reach += 1
    return stride


def _spoil_strides(rng: random.Random, shape: list[int], stride: list[int], order: Sequence[int], chunk: int) -> int:
    """Make some strides unit, zero, negative, overlapping or huge, in place; return the offset that they need."""
    rank = len(shape)
    outer = list(order[1:]) or [order[0]]
    if rng.random() < 0.08:
        stride[rng.choice(outer)] = rng.choice((1, 1, 2))
    if rng.random() < 0.08:
        stride[rng.choice(outer) if rng.random() < 0.9 else order[0]] = 0
    if rng.random() < 0.06:
        stride[rng.choice(outer)] = chunk * rng.choice((1, 1, 2, 3))
    if rng.random() < 0.03:
        stride[rng.choice(outer)] = rng.choice((2**40, 2**39, 2**41, 2**36)) * chunk // 16
    if rng.random() < 0.03:
        dim = rng.randrange(rank)
        shape[dim] = rng.choice((300, 1000, 2**31, 2**32, 2**33))
        stride[:] = _strides(rng, shape, order, chunk)
        if max(stride) >= 2**45:
            shape[dim] = 300
            stride[:] = _strides(rng, shape, order, chunk)
    if rng.random() < 0.1:
        dim = rng.choice(outer) if rng.random() < 0.85 else order[0]
        stride[dim] = -stride[dim]
        return -(shape[dim] - 1) * stride[dim] + rng.choice((0, 0, 0, chunk))
    return 0


def _bound(rng: random.Random, extent: int, grain: int) -> int | list[int]:
    """One valid extent, or a pair."""
    low, high = 0, extent
    if rng.random() < 0.5:
        high = max(1, extent - grain * rng.choice((0, 0, 1, 1, 2)) - rng.choice((0, 0, 0, 1)))
    if rng.random() < 0.3:
        low = min(high - 1, grain * rng.choice((0, 1, 1, 2)) + rng.choice((0, 0, 0, 1, 2)))
    return [low, high] if low or rng.random() < 0.3 else high


def _multiple(rng: random.Random, reach: int, grain: int) -> int:
    return rng.choice((0, 0, reach, reach, grain, grain, 2 * grain, 2 * reach, 1, 2, 3))


def _modes(
    rng: random.Random, tile: Sequence[int], order: Sequence[int], size: int, swizzle: str
) -> list[list[list[int]]]:
    """Dense rows, rows at the span, blocks one span or one chunk wide; sometimes with holes, another order, splits."""
    inner = order[0]
    span = SPANS[swizzle] // size
    row = tile[inner]
    outer = list(order[1:])
    if rng.random() < 0.15:
        rng.shuffle(outer)
    modes: list[list[list[int]]] = [[] for _ in tile]
    style = rng.random()
    block = span if style < 0.3 else 16 // size if style < 0.45 else 0
    if block and row > block and row % block == 0:
        reach = block
        for dim in outer:
            modes[dim] = [[tile[dim], reach]]
            reach *= tile[dim]
        modes[inner] = [[block, 1], [row // block, reach]]
        return _split(rng, modes)
    reach = max(row, span) if style < 0.85 else row
    modes[inner] = [[row, 1]]
    for dim in outer:
        if rng.random() < 0.06:
            align = 128 // size
            reach = -(-reach // align) * align if rng.random() < 0.6 else reach + rng.choice((16 // size, 1, align))
        modes[dim] = [[tile[dim], reach]]
        reach *= tile[dim]
    return _split(rng, modes)


def _split(rng: random.Random, modes: list[list[list[int]]]) -> list[list[list[int]]]:
    """Write a digit as two, sometimes in the other order (which is another layout)."""
    if rng.random() < 0.15:
        dim = rng.randrange(len(modes))
        extent, stride = modes[dim][0]
        if extent % 2 == 0 and extent > 2:
            pieces = [[2, stride], [extent // 2, 2 * stride]]
            if rng.random() < 0.4:
                pieces = [[2, stride * extent // 2], [extent // 2, stride]]
            modes[dim][:1] = pieces
    if rng.random() < 0.02:
        dim = rng.randrange(len(modes))
        modes[dim][-1][1] = rng.choice((0, 8, 64))
    return modes


def _document(
    rng: random.Random, dtype: str, shape: list[int], stride: list[int], tile: list[int], modes: object, swizzle: str
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema": "layoutalg/tensormap-problem/1",
        "arch": "sm_90a",
        "direction": "store" if rng.random() < 0.35 else "load",
        "global": {
            "shape": shape,
            "stride": stride,
            "dtype": dtype,
            "base_align_bytes": 256 if rng.random() < 0.97 else rng.choice((1, 4, 8, 16, 32)),
        },
        "tile": tile,
        "smem": {"modes": modes, "swizzle": swizzle},
    }
    if dtype in FLOATS and rng.random() < 0.15:
        document["oob_fill"] = "NAN"
    if rng.random() < 0.12:
        document["oob_required"] = rng.choice(("exact", "weak", "lost"))
    return document


def _wild(rng: random.Random, rank: int) -> dict[str, Any]:
    """Every number on its own."""
    dtype = rng.choice(DTYPES)
    chunk = 16 // SIZES[dtype]
    tile = [1] * rank
    for dim in rng.sample(range(rank), rank):
        tile[dim] = rng.choice([n for n in (1, 1, 2, 3, 4, 8, 16, 24, 32, 64) if math.prod(tile) * n <= 64])
    shape = [rng.choice((1, 2, 3, 4, 8, 16, 17, 24, 32, 61)) for _ in range(rank)]
    values = (0, 1, 1, 2, chunk, chunk, 2 * chunk, 3 * chunk, 8 * chunk, 16 * chunk, 7, -1, -chunk, -8 * chunk)
    stride = [rng.choice(values) for _ in range(rank)]
    stride[rng.randrange(rank)] = 1
    modes: list[list[list[int]]] = [[] for _ in tile]
    reach = 1
    for dim in rng.sample(range(rank), rank):
        modes[dim] = [[tile[dim], reach]]
        reach *= tile[dim]
        if rng.random() < 0.1:
            reach = rng.choice((reach, reach + 1, 16, 64, 128, 2 * reach))
    document = _document(rng, dtype, shape, stride, tile, _split(rng, modes), rng.choice(tuple(SPANS)))
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, stride, strict=True))
    document["base_elem_offset"] = -low + rng.choice((0, 0, 0, 1, chunk))
    if rng.random() < 0.3:
        document["element_strides"] = [rng.choice((1, 1, 1, 2, 3, 4, 8, 16)) for _ in range(rank)]
    if rng.random() < 0.3:
        document["bounds"] = [_bound(rng, extent, 1) for extent in shape]
    if rng.random() < 0.5:
        document["origin_multiple"] = [rng.choice((0, 0, 1, chunk, 2, 16, tile[dim])) for dim in range(rank)]
    return document


def features(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of what a document has beyond rows on a grid, in the order of ``FEATURES``."""
    stride, modes = document["global"]["stride"], document["smem"]["modes"]
    steps = document.get("element_strides") or [1] * len(stride)
    bounds = document.get("bounds") or []
    live = [s for s, n in zip(stride, document["global"]["shape"], strict=True) if n > 1]
    size = sum((extent - 1) * step for digits in modes for extent, step in digits) + 1
    found = {
        "inner not last": abs(stride[-1]) != 1,
        "units": sum(abs(s) == 1 for s in live) > 1,
        "zero": 0 in live,
        "negative": min(stride) < 0,
        "overlap": len({abs(s) for s in live}) < len(live),
        "huge": max(map(abs, stride)) >= 2**31 or max(document["global"]["shape"]) >= 2**31,
        "strided": any(e != 1 for e, s in zip(steps, stride, strict=True) if abs(s) != 1),
        "strided inner": any(e != 1 for e, s in zip(steps, stride, strict=True) if abs(s) == 1),
        "bounds": bool(bounds),
        "low bounds": any(isinstance(b, list) and b[0] for b in bounds),
        "origins": any(document.get("origin_multiple") or []),
        "fixed": 0 in (document.get("origin_multiple") or []),
        "offset": bool(document.get("base_elem_offset")),
        "store": document["direction"] == "store",
        "nan": document.get("oob_fill") == "NAN",
        "holes": size != math.prod(document["tile"]),
        "blocks": any(len(digits) > 1 for digits in modes),
        "required": "oob_required" in document,
        "align": document["global"]["base_align_bytes"] < 16,
    }
    return tuple(name for name in FEATURES if found[name])


def smaller(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield documents one simplification away: fewer keys, dimensions, digits; smaller numbers."""
    for key in ("oob_fill", "base_elem_offset", "oob_required", "element_strides", "bounds", "origin_multiple"):
        if key in document:
            yield {k: v for k, v in document.items() if k != key}
    tensor, modes = document["global"], document["smem"]["modes"]
    rank = len(document["tile"])
    if rank > 1:
        for dim in range(rank):
            yield _edited(document, lambda row, dim=dim: [*row[:dim], *row[dim + 1 :]])
    for dim in range(rank):
        for extent in (1, document["tile"][dim] // 2):
            if 1 <= extent < document["tile"][dim] and len(modes[dim]) == 1:
                yield _with(document, ("tile", dim), extent, ("smem", "modes", dim, 0, 0), extent)
        for extent in (1, tensor["shape"][dim] // 2, tensor["shape"][dim] - 1):
            if 1 <= extent < tensor["shape"][dim] and "bounds" not in document:
                yield _with(document, ("global", "shape", dim), extent)
        for key in ("origin_multiple", "bounds", "element_strides"):
            plain = {"origin_multiple": 0, "bounds": tensor["shape"][dim], "element_strides": 1}[key]
            if key in document and document[key][dim] != plain:
                yield _with(document, (key, dim), plain)
    if document["smem"]["swizzle"] != "NONE":
        yield _with(document, ("smem", "swizzle"), "NONE")
    if document["direction"] == "store":
        yield _with(document, ("direction",), "load")
    if tensor["dtype"] not in ("f16", "f32", "u8", "f64"):
        yield _with(document, ("global", "dtype"), {1: "u8", 2: "f16", 4: "f32", 8: "f64"}[SIZES[tensor["dtype"]]])


def _edited(document: dict[str, Any], edit: Callable[[list[Any]], list[Any]]) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    for key in ("tile", "element_strides", "bounds", "origin_multiple"):
        if key in copy:
            copy[key] = edit(copy[key])
    copy["smem"]["modes"] = edit(copy["smem"]["modes"])
    for key in ("shape", "stride"):
        copy["global"][key] = edit(copy["global"][key])
    return copy


def _with(document: dict[str, Any], *changes: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    for path, value in zip(changes[::2], changes[1::2], strict=True):
        place = copy
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
    return copy


def shrink(document: dict[str, Any], still: Callable[[dict[str, Any]], bool], tries: int = 300) -> dict[str, Any]:
    """Return a small document for which ``still`` holds, found by simplifying one thing at a time."""
    while tries > 0:
        for candidate in smaller(document):
            tries -= 1
            if still(candidate):
                document = candidate
                break
            if tries <= 0:
                break
        else:
            break
    return document
