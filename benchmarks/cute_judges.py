"""Random cases of the CuTe operations and judges that only enumerate; they share no code with the library.

A layout is a list of modes (extent, stride), fastest first. A case names its operation and its operands. ``right`` says
whether an answer meets the contract, ``expressible`` whether an answer exists at all; None where the judge cannot say.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

from operations import tables
from operations.tables import fits, is_strided, tiling

Modes = list[tuple[int, int]]
Case = dict[str, Any]

OPERATIONS = (
    "composition",
    "complement",
    "left_inverse",
    "right_inverse",
    "logical_divide",
    "logical_product",
    "upcast",
    "downcast",
    "slice",
)
LIMIT = 2**20


def random_modes(generator: random.Random, top: int, widest: int) -> Modes:
    """One to three modes; half of the strides are products of smaller extents, as in real layouts."""
    modes: Modes = []
    for _ in range(generator.randint(1, 3)):
        extent = generator.randint(1, top)
        if generator.random() < 0.5 and modes:
            stride = generator.choice(modes)[0] * generator.choice(modes)[1]
        else:
            stride = generator.randint(0, widest)
        modes.append((extent, stride))
    return modes


def random_chain(generator: random.Random, top: int) -> Modes:
    """One to three modes in any order whose strides form a divisible chain; some are repeated with stride 0."""
    modes: Modes = []
    current = 1
    for _ in range(generator.randint(1, 3)):
        current *= generator.choice((1, 1, 1, 2, 3))
        extent = generator.randint(1, top)
        modes.append((extent, 0 if generator.random() < 0.1 else current))
        current *= extent
    generator.shuffle(modes)
    return modes


def random_case(generator: random.Random, operation: str) -> Case:
    """One case of an operation; about half of them have an answer."""
    while True:
        if operation == "composition":
            outer, inner = random_modes(generator, 8, 12), random_modes(generator, 6, 12)
            if bound(inner) <= size(outer):
                return {"operation": operation, "layout": outer, "other": inner}
            continue
        if operation == "logical_divide":
            layout = random_modes(generator, 8, 30)
            if generator.random() < 0.4:
                layout = compact([extent for extent, _ in layout])
            tile = random_chain(generator, 3) if generator.random() < 0.7 else random_modes(generator, 4, 8)
            if generator.random() < 0.8:  # a last mode that makes the sizes fit
                layout = [*layout, (bound(tile), generator.randint(1, 60))]
            if size(layout) <= 2048:
                return {"operation": operation, "layout": layout, "other": tile}
            continue
        if operation == "logical_product":
            block = random_chain(generator, 4) if generator.random() < 0.8 else random_modes(generator, 4, 8)
            return {"operation": operation, "layout": block, "other": random_modes(generator, 4, 6)}
        if operation in ("upcast", "downcast"):
            layout = random_chain(generator, 6) if generator.random() < 0.6 else random_modes(generator, 8, 16)
            factor = generator.choice((2, 2, 3, 4, 4, 6, 8))
            if generator.random() < 0.3:
                layout = [(extent, stride * factor) for extent, stride in layout]
                layout.insert(generator.randint(0, len(layout)), (factor * generator.randint(1, 3), 1))
            return {"operation": operation, "layout": layout, "factor": factor}
        layout = random_modes(generator, 8, 16)
        if operation == "slice":
            fixed = [generator.randrange(extent) if generator.random() < 0.5 else None for extent, _ in layout]
            return {"operation": operation, "layout": layout, "coordinate": fixed}
        return {"operation": operation, "layout": layout}


def compact(extents: list[int]) -> Modes:
    modes: Modes = []
    for extent in extents:
        modes.append((extent, size(modes)))
    return modes


def size(modes: Modes) -> int:
    return tables.size_of(extents_of(modes))


def extents_of(modes: Modes) -> tuple[int, ...]:
    return tuple(extent for extent, _ in modes)


def values(modes: Modes) -> list[int]:
    """Offsets over the flat coordinates, the first mode fastest."""
    return tables.values(extents_of(modes), tuple(stride for _, stride in modes))


def at(modes: Modes, index: int) -> int:
    """The offset at any flat coordinate; the last mode goes on past its end."""
    total = 0
    for position, (extent, stride) in enumerate(modes):
        index, digit = divmod(index, extent) if position < len(modes) - 1 else (0, index)
        total += digit * stride
    return total


def bound(modes: Modes) -> int:
    return 1 + sum((extent - 1) * stride for extent, stride in modes)


def composed(case: Case) -> list[int]:
    outer = values(case["layout"])
    return [outer[value] for value in values(case["other"])]


def copies(modes: Modes, count: int) -> list[int] | None:
    """Starts of the first ``count`` copies of the offsets that leave no gap and do not overlap, or None."""
    kept = [mode for mode in modes if mode[1]]
    offsets = values(kept)
    if len(set(offsets)) < len(offsets):
        return None
    covered: set[int] = set()
    starts: list[int] = []
    filled = 0
    while len(starts) < count:
        fresh = {filled + offset for offset in offsets}
        if fresh & covered:
            return None
        starts.append(filled)
        covered |= fresh
        while filled in covered:
            covered.discard(filled)
            filled += 1
    return starts


def divided(case: Case) -> list[int] | None:
    """The table of the layout after (tile, starts of the copies of the tile), or None where the tile does not tile."""
    table, tile = values(case["layout"]), case["other"]
    own = size([mode for mode in tile if mode[1]])
    starts = copies(tile, len(table) // own) if len(table) % own == 0 else None
    if starts is None or max(starts) + bound(tile) > len(table):
        return None
    offsets = values(tile)
    return [table[start + offset] for start in starts for offset in offsets]


def multiplied(case: Case) -> list[int] | None:
    """The table of (block, start of copy T(j)), or None where the copies do not tile."""
    block, tiler = case["layout"], case["other"]
    own = size([mode for mode in block if mode[1]])
    if not tiles(block, max(own * bound(tiler), bound(block))):
        return None
    starts = copies(block, bound(tiler))
    if starts is None:
        return None
    return [starts[copy] + offset for copy in values(tiler) for offset in values(block)]


def recasts(case: Case) -> list[Modes]:
    """All upcasts of a layout: each way to take factors of the extents that fill exactly one new element."""
    layout, factor = case["layout"], case["factor"]
    found = []
    choices = [[g for g in range(1, extent + 1) if extent % g == 0] for extent, _ in layout]
    for taken in itertools.product(*choices):
        inner = [(g, stride) for g, (_, stride) in zip(taken, layout, strict=True)]
        if size(inner) != factor or sorted(values(inner)) != list(range(factor)):
            continue
        outer = [(extent // g, g * stride) for g, (extent, stride) in zip(taken, layout, strict=True)]
        if all(extent == 1 or stride % factor == 0 for extent, stride in outer):
            found.append([(extent, stride // factor if extent > 1 else 0) for extent, stride in outer])
    return found


def tiles(layout: Modes, least: int) -> bool:
    """Whether translates of the offsets tile some [0, n), n >= least, with starts that form a layout."""
    found = tiling(values([mode for mode in layout if mode[1] and mode[0] > 1]), least)
    return found is not None and is_strided(found[1])


def expressible(case: Case) -> bool | None:
    """Whether an answer exists as a CuTe layout; None where this judge does not know."""
    operation, layout = case["operation"], case["layout"]
    if operation == "composition":
        return fits(extents_of(case["other"]), composed(case))
    if operation == "complement":
        return tiles(layout, bound(layout))
    if operation == "logical_divide":
        truth = divided(case)
        shape = extents_of(case["other"])
        return truth is not None and fits((*shape, len(truth) // size(case["other"])), truth)
    if operation == "logical_product":
        truth = multiplied(case)
        return truth is not None and fits(extents_of([*layout, *case["other"]]), truth)
    if operation == "upcast":
        return bool(recasts(case))
    if operation == "downcast":  # the widened mode must step by 1 or not at all
        return any(stride == 1 or extent == 1 for extent, stride in layout)
    return True if operation in ("slice", "right_inverse") else None


def right(case: Case, answer: Modes) -> bool:
    """Whether an answer meets the contract of its operation."""
    operation, layout = case["operation"], case["layout"]
    if operation == "slice":
        *answer, (_, offset) = answer
        fixed = case["coordinate"]
        start = sum(digit * stride for digit, (_, stride) in zip(fixed, layout, strict=True) if digit is not None)
        kept = [mode for digit, mode in zip(fixed, layout, strict=True) if digit is None]
        return offset == start and values([(e, d) for e, d in answer]) == values(kept)
    if any(extent < 1 for extent, _ in answer) or size(answer) > LIMIT:
        return False
    if operation == "composition":
        return values(answer) == composed(case)
    if operation == "logical_divide":
        return values(answer) == divided(case)
    if operation == "logical_product":
        return values(answer) == multiplied(case)
    table = values(layout)
    if operation == "upcast":
        return [(extent, stride if extent > 1 else 0) for extent, stride in answer] in recasts(case)
    if operation == "downcast":
        factor = case["factor"]
        wide = Counter([factor * value + inside for value in table for inside in range(factor)])
        return Counter(values(answer)) == wide and len(answer) == len(layout)
    if operation == "complement":
        own = values([mode for mode in layout if mode[1]])
        both = sorted(a + b for a in own for b in values(answer))
        return both == list(range(len(both))) and len(both) >= bound(layout)
    if operation == "right_inverse":
        inverse = values(answer)
        return all(value in range(len(table)) and table[value] == index for index, value in enumerate(inverse))
    back = [at(answer, value) for value in table]
    if len(set(table)) == len(table):
        return back == list(range(len(table)))
    return all(place in range(len(table)) and table[place] == value for place, value in zip(back, table, strict=True))
