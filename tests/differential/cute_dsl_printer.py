"""Run by an interpreter that has CuTe DSL: print layouts as it prints them, with the offsets it computes.

``python cute_dsl_printer.py 800 7 | gzip -9n > tests/data/cute_dsl_texts.json.gz`` with nvidia-cutlass-dsl 4.8.1, on a
machine with or without a GPU. Nothing of this project is imported.
"""

import json
import random
import sys

import cutlass
from cutlass import cute


def nested(source, depth, budget):
    """A random shape and stride of at most ``budget`` points."""
    if depth == 0 or source.random() < 0.4:
        extent = source.choice([n for n in (1, 2, 3, 4, 5, 6, 8, 16) if n <= budget] or [1])
        return extent, source.choice((0, 1, 2, 3, 4, 7, 8, 16, 64, 100)), extent
    shape, stride, size = [], [], 1
    for _ in range(source.randint(1, 3)):
        part = nested(source, depth - 1, budget // size)
        shape.append(part[0])
        stride.append(part[1])
        size *= part[2]
    return tuple(shape), tuple(stride), size


def bits(source, budget):
    """A layout of power-of-two extents, for a swizzle to act on."""
    columns = 1 << source.randint(2, 5)
    rows = 1 << source.randint(1, 3)
    return ((rows, columns), (columns, 1)) if source.random() < 0.5 else ((columns, rows), (1, columns))


def printed(count, seed):
    """Texts and offsets of ``count`` layouts; called while a kernel is traced, as CuTe DSL wants it."""
    source = random.Random(seed)
    found = []
    for number in range(count):
        kind = ("layout", "layout", "swizzled", "identity")[number % 4]
        if kind == "swizzled":
            shape, stride = bits(source, 1024)
            base, shift = source.randint(0, 3), source.randint(1, 3)
            number_of_bits = source.randint(1, shift)
            swizzle = cute.make_swizzle(number_of_bits, base, shift)
            layout = cute.make_composed_layout(swizzle, 0, cute.make_layout(shape, stride=stride))
            built = [number_of_bits, base, shift]
        else:
            shape, stride, _ = nested(source, 2, 256)
            built = None
            layout = cute.make_layout(shape, stride=stride) if kind == "layout" else cute.make_identity_layout(shape)
        size = cute.size(layout)
        values = [layout(index) for index in range(size)]
        found.append(
            {
                "kind": kind,
                "text": str(layout),
                "shape": shape,
                "stride": None if kind == "identity" else stride,
                "swizzle": built,
                "values": [str(value).replace(" ", "") if kind == "identity" else int(value) for value in values],
            }
        )
    print(json.dumps({"peer": f"nvidia-cutlass-dsl {cutlass.__version__}", "layouts": found}))


@cute.jit
def main(count: cutlass.Constexpr, seed: cutlass.Constexpr):
    printed(count, seed)


main(int(sys.argv[1]), int(sys.argv[2]))
