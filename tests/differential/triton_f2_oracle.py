"""Ask the Triton binding about linear layouts; print or store its answers as JSON.

Run with an interpreter that has ``triton==3.9.0``. The library itself is not imported, so the answers owe nothing to
it:

    python tests/differential/triton_f2_oracle.py 20260101 1100 > tests/data/triton_f2.json

The two arguments are the seed and the number of cases. The binding aborts the process on violated preconditions, so
each case is checked for them in plain integers here before the binding is asked.

A layout is ``[[[in name, [[component, ...], ...]], ...], [[out name, size], ...]]``, as in the binding.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

INS = ("register", "lane", "warp", "block")
OUTS = ("dim0", "dim1", "dim2")
WHICH = (
    *("facts", "apply", "sum", "compose", "inverse", "right_inverse", "solve", "solve", "solve", "one_d"),
    *("minimal", "same"),
)
Json = list[Any]


def rank(vectors: list[int]) -> int:
    """Dimension of a span, by plain elimination."""
    found: list[int] = []
    for vector in vectors:
        for other in found:
            vector = min(vector, vector ^ other)
        if vector:
            found.append(vector)
    return len(found)


def packed(layout: Json) -> list[int]:
    """The columns as integers."""
    shifts, low = [], 0
    for _, size in layout[1]:
        shifts.append(low)
        low += size.bit_length() - 1
    return [sum(c << s for c, s in zip(image, shifts, strict=True)) for _, images in layout[0] for image in images]


def out_bits(layout: Json) -> int:
    return sum(size.bit_length() - 1 for _, size in layout[1])


def draw(rng: random.Random, ins: list[tuple[str, int]], outs: list[tuple[str, int]], kind: str) -> Json:
    """A random layout: dense, one-hot (with repeats and zeros) or one-hot without repeats."""
    units = [
        tuple(1 << bit if d == e else 0 for e in range(len(outs))) for d, (_, b) in enumerate(outs) for bit in range(b)
    ]
    rng.shuffle(units)
    zero = tuple(0 for _ in outs)

    def image() -> tuple[int, ...]:
        if kind == "dense":
            return tuple(rng.randrange(1 << b) for _, b in outs)
        if kind == "distinct" and units:
            return units.pop()
        return rng.choice([*units, zero]) if kind == "onehot" else zero

    return [[[n, [list(image()) for _ in range(b)]] for n, b in ins], [[n, 1 << b] for n, b in outs]]


def facts(layout: Any) -> Json:
    """Rank tests, axis names and the matrix row by row, as the binding reports them."""
    tests = [bool(layout.is_surjective()), bool(layout.is_injective()), bool(layout.is_invertible())]
    names = [list(layout.get_in_dim_names()), list(layout.get_out_dim_names())]
    counts = [layout.num_in_dims, layout.num_out_dims]
    return [tests, names, counts, [[int(bit) for bit in row] for row in layout.get_matrix_view()]]


def split(rng: random.Random, names: tuple[str, ...], total: int) -> list[tuple[str, int]]:
    """Distribute bits over the axes in their fixed order."""
    counts = [0] * len(names)
    for _ in range(total):
        counts[rng.randrange(len(names))] += 1
    return list(zip(names, counts, strict=True))


def make(rng: random.Random, layout_type: Any) -> Json:
    """Return one case: the operation, the operands and what the binding says."""

    def give(layout: Json) -> Any:
        return layout_type.from_bases(
            [(n, images) for n, images in layout[0]], [n for n, _ in layout[1]], [s for _, s in layout[1]], False
        )

    def take(value: Any) -> Json:
        dims = value.out_dims
        pairs = dims.items() if hasattr(dims, "items") else dims
        return [[[n, [list(i) for i in images]] for n, images in value.bases], [[n, int(s)] for n, s in pairs]]

    kind = rng.choice(["dense", "dense", "onehot", "distinct"])
    bits = rng.randrange(rng.choice([7, 7, 20]))
    ins, outs = split(rng, INS[: rng.randrange(1, 5)], bits), split(rng, OUTS[: rng.randrange(1, 4)], bits)
    one = draw(rng, ins, outs, kind)
    which = rng.choice(WHICH)
    if which == "facts":
        a = give(one)
        return [which, one, facts(a)]
    if which == "minimal":
        # without sizes the binding takes the next power of two above each component, and wants every output reached
        low = rng.choice([one, draw(rng, ins, [(n, min(b, 2)) for n, b in outs], kind)])
        widths = [max([image[d] for _, images in low[0] for image in images] or [0]) for d in range(len(outs))]
        least: Json = [low[0], [[n, 1 << w.bit_length()] for (n, _), w in zip(outs, widths, strict=True)]]
        onto = rank(packed(least)) == out_bits(least)
        names = [n for n, _ in outs]
        return [which, low, onto and take(layout_type.from_bases([tuple(b) for b in low[0]], names))]
    if which == "same":
        two = rng.choice([one, draw(rng, ins, outs, "onehot"), [one[0][::-1], one[1]]])
        return [which, one, two, give(one) == give(two)]
    if which == "apply":
        a = give(one)
        xs = [{n: rng.randrange(1 << b) for n, b in ins} for _ in range(4)]
        return [which, one, xs, [dict(a.apply(x)) for x in xs]]
    if which == "one_d":
        size, stride, out = 1 << rng.randrange(6), 1 << rng.randrange(6), 1 << rng.randrange(4)
        return [
            which,
            size,
            stride,
            out,
            take(layout_type.identity_1d(size, "i", "o")),
            take(layout_type.strided_1d(size, stride, "i", "o")),
            take(layout_type.zeros_1d(size, "i", "o", out)),
        ]
    if which == "sum":
        ins2 = [axis for axis in split(rng, INS, rng.randrange(5)) if rng.random() < 0.7]
        outs2 = [axis for axis in split(rng, OUTS, rng.randrange(5)) if rng.random() < 0.7] or [("dim0", 1)]
        two = draw(rng, ins2, outs2, kind)
        return [which, one, two, take(give(one) * give(two))]
    if which == "compose":
        order = rng.sample(outs, len(outs))
        two = draw(
            rng, [(n, b + rng.randrange(2)) for n, b in order], split(rng, ("x", "y"), rng.randrange(6)), "dense"
        )
        return [which, one, two, take(give(one).compose(give(two)))]
    if which == "inverse":
        for _ in range(200):
            if rank(packed(one)) == bits:
                return [which, one, take(give(one).invert())]
            one = draw(rng, ins, outs, rng.choice(["dense", "distinct"]))
        return ["facts", one, facts(give(one))]
    if which == "right_inverse":
        wide = split(rng, INS, bits + rng.randrange(3))
        for _ in range(200):
            one = draw(rng, wide, outs, rng.choice(["dense", "onehot"]))
            if rank(packed(one)) == out_bits(one):
                return [which, one, take(give(one).pseudoinvert())]
        return make(rng, layout_type)
    # solve: the target is built inside the image of the outer layout
    # the target may have smaller output axes
    wide = [(n, b + rng.choice([0, 0, 1])) for n, b in outs]
    outer = draw(rng, split(rng, INS, bits + rng.randrange(3)), wide, kind)
    columns, target_ins = packed(outer), split(rng, INS, rng.randrange(7))
    images = []
    for _ in range(sum(b for _, b in target_ins)):
        value = 0
        for column in rng.sample(columns, min(len(columns), rng.choice([1, 1, 1, 2, 3]))):
            value ^= column
        images.append(value)
    unpacked = []
    for value in images:
        image = []
        for _, b in wide:
            image.append(value & ((1 << b) - 1))
            value >>= b
        fits = not any(part >> b for part, (_, b) in zip(image, outs, strict=True))
        unpacked.append(image if fits else [0] * len(outs))
    target: Json = [[[n, [unpacked.pop() for _ in range(b)]] for n, b in target_ins], [[n, 1 << b] for n, b in outs]]
    return ["solve", target, outer, take(give(target).invert_and_compose(give(outer)))]


def main(seed: int, count: int) -> None:
    """Print the cases as one JSON document."""
    from importlib.metadata import version

    from triton._C.libtriton.linear_layout import LinearLayout as TritonLayout

    rng = random.Random(seed)
    cases = [make(rng, TritonLayout) for _ in range(count)]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    print(f'{{"triton": "{version("triton")}", "seed": {seed}, "cases": [\n{lines}\n]}}')


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
