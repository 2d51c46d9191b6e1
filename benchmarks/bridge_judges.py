"""Random layouts of every family as plain data, and judges that only enumerate; they share no code with the library.

A source is a dict: its ``family`` and the numbers that define it. ``values`` enumerates it over the flat coordinate,
first axis fastest. ``strided``, ``affine``, ``modular`` and ``behind_a_swizzle`` say whether a list of values has a
form in a family at all; they try every form there could be.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Source = dict[str, Any]
Ints = npt.NDArray[np.int64]
Tree = Any

FAMILIES = ("cute", "composed", "stacked", "linear", "integer", "outputs", "piecewise", "pieces", "digits", "bits")
FAMILIES += ("mixed", "table", "partial")
SIZES = (0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 15, 16, 16, 18, 20, 24, 27, 30, 32, 32, 36, 48, 60, 64, 64)
LARGE = (96, 100, 128, 144, 192, 210, 256, 256, 360, 500, 512, 1024, 1536, 2048, 4096)
HOLE = -(2**62)

# ------------------------------------------------------------------------------------------------------------ sources


def factors(size: int, rng: random.Random) -> list[int]:
    """Extents with this product, ones among them."""
    extents = [] if size else [0]
    while size > 1:
        extent = rng.choice([n for n in range(2, size + 1) if size % n == 0])
        extents.append(extent)
        size //= extent
    while rng.random() < 0.15:
        extents.insert(rng.randrange(len(extents) + 1), 1)
    return extents or [1]


def strides(extents: list[int], rng: random.Random) -> list[int]:
    """Strides as kernels have them (compact, padded, broadcast), one-hot, or of any kind."""
    kind = rng.random()
    if kind < 0.45:
        order = rng.sample(range(len(extents)), len(extents))
        found, weight = [0] * len(extents), rng.choice((1, 1, 1, 2, 4, 3))
        for place in order:
            found[place] = weight
            weight = weight * extents[place] + rng.choice((0, 0, 0, 0, 1, 8))
        sign = rng.random() < 0.15
        broadcast = rng.random() < 0.2
        return [0 if broadcast and rng.random() < 0.4 else -d if sign and rng.random() < 0.5 else d for d in found]
    if kind < 0.7:
        return [rng.choice((0, 1, 2, 4, 8, 16, 32, 64, 128, 3, 12, 24)) for _ in extents]
    if kind < 0.95:
        return [rng.choice((0, 1, 2, 3, 5, 7, 9, 17, -1, -2, -3, -8, 33)) for _ in extents]
    return [rng.randrange(-(2**40), 2**40) for _ in extents]


def nested(leaves: list[int], other: list[int], rng: random.Random, level: int = 0) -> tuple[Tree, Tree]:
    """Put two lists of leaves into one random nesting."""
    if len(leaves) == 1 and rng.random() < 0.8:
        return leaves[0], other[0]
    if len(leaves) <= 2 or level == 3 or rng.random() < 0.4:
        return tuple(leaves), tuple(other)
    cut = rng.randrange(1, len(leaves))
    parts = [nested(leaves[a:b], other[a:b], rng, level + 1) for a, b in ((0, cut), (cut, len(leaves)))]
    return tuple(part[0] for part in parts), tuple(part[1] for part in parts)


def swizzle(rng: random.Random) -> tuple[int, int, int]:
    bits = rng.choice((0, 1, 1, 2, 3))
    return bits, rng.randrange(4), rng.choice((1, 1, -1)) * rng.randint(max(bits, 1), max(bits, 1) + 2)


def bijection(kind: str, size: int, rng: random.Random) -> Source:
    """A bijection of [0, size) as digits (reversed ones with a negative stride), bits or a table."""
    if kind == "bits" and size.bit_count() == 1:
        count = size.bit_length() - 1
        columns = [1 << k for k in range(count)]
        rng.shuffle(columns)
        for _ in range(rng.choice((0, 1, 2, 3 * count)) if count > 1 else 0):
            a, b = rng.sample(range(count), 2)
            columns[a] ^= columns[b]
        return {"map": "bits", "columns": columns, "constant": rng.choice((0, rng.randrange(size)))}
    if kind == "mixed":
        return _mixed(size, rng)
    if kind != "table":
        extents = [extent for extent in factors(size, rng) if extent > 1]
        found, weight = [0] * len(extents), 1
        for place in rng.sample(range(len(extents)), len(extents)):
            found[place] = weight * rng.choice((1, 1, -1))
            weight *= extents[place]
        return {"map": "digits", "modes": list(zip(extents, found, strict=True))}
    entries = list(range(size))
    how = rng.random()
    if how < 0.3:
        unit = rng.choice([u for u in range(1, size + 1) if math.gcd(u, size) == 1])
        entries = [(i * unit + 1) % size for i in range(size)]
    elif how < 0.5:
        entries = values({"family": "h", **bijection("bits", size, rng)}).tolist()
    elif how < 0.6:
        rng.shuffle(entries)
    for _ in range(rng.choice((0, 1, 1, 2, 6))):
        a, b = rng.randrange(size), rng.randrange(size)
        entries[a], entries[b] = entries[b], entries[a]
    return {"map": "table", "entries": entries}


def _mixed(size: int, rng: random.Random) -> Source:
    """Digits of which those of extent 2 are mixed: each flips several target bits."""
    extents = [part for extent in factors(size, rng) for part in ([2, extent // 2] if extent % 2 == 0 else [extent])]
    extents = [extent for extent in extents if extent > 1]
    found: list[Any] = [0] * len(extents)
    weight = 1
    for place in rng.sample(range(len(extents)), len(extents)):
        found[place], weight = weight, weight * extents[place]
    bits = [place for place, extent in enumerate(extents) if extent == 2]
    images = {place: {found[place]} for place in bits}
    for _ in range(rng.choice((1, 2, 2 * len(bits))) if len(bits) > 1 else 0):
        a, b = rng.sample(bits, 2)
        images[a] ^= images[b]
    for place in bits:
        found[place] = tuple(sorted(images[place]))
    shared = sorted({w for image in images.values() for w in image})
    return {
        "map": "digits",
        "modes": list(zip(extents, found, strict=True)),
        "flips": tuple(w for w in shared if rng.random() < 0.3),
    }


def random_source(family: str, rng: random.Random, size: int | None = None) -> Source:
    """A layout of a family with some size (the nearest power of two below where the family asks for one)."""
    if size is None:
        size = rng.choice(SIZES) if rng.random() < 0.9 else rng.choice(LARGE)
    if family in ("linear", "bits"):
        size = 1 << max(size.bit_length() - 1, 0)
    if family in ("digits", "mixed", "table", "partial", "piecewise", "pieces"):
        size = max(size, 1)
    extents = factors(size, rng)
    if family in ("cute", "composed", "stacked"):
        shape, stride = nested(extents, strides(extents, rng), rng)
        count = {"cute": 0, "composed": 1, "stacked": rng.choice((2, 2, 3))}[family]
        stages = [(*swizzle(rng), rng.choice((0, 0, 0, 1, 3, 8, 16, -4, -1, 77))) for _ in range(count)]
        return {"family": family, "shape": shape, "stride": stride, "stages": stages}
    if family == "linear":
        return _linear(size, rng)
    if family in ("integer", "outputs"):
        count = 1 if family == "integer" else rng.choice((0, 2, 2, 3))
        return {
            "family": family,
            "extents": extents,
            "rows": [strides(extents, rng) for _ in range(count)],
            "moduli": [rng.choice((0, 0, 0, 1, 2, 4, 8, 16, 64, 3, 5, 7, 12, 100)) for _ in range(count)],
            "offsets": [rng.choice((0, 0, 3, -2, 21)) for _ in range(count)],
        }
    if family == "piecewise":
        return _piecewise(extents, rng)
    if family == "pieces":
        top = rng.choice((1, 2, 4, 7, 20))
        size = min(size, 24)
        return {"family": family, "points": [rng.randint(rng.choice((0, 0, 0, -top)), top) for _ in range(size)]}
    kind = family if family != "partial" else rng.choice(("digits", "bits", "mixed", "table"))
    source = {"family": family, "source": extents, "target": factors(size, rng), **bijection(kind, size, rng)}
    if family == "partial":
        source["guards"] = []
        for _ in range(rng.choice((1, 1, 2))):
            box = factors(size, rng)
            bounds = [rng.choice((extent, rng.randint(0, extent))) for extent in box]
            source["guards"].append((bijection(rng.choice(("digits", "bits", "table")), size, rng), box, bounds))
    return source


def _linear(size: int, rng: random.Random) -> Source:
    count, width = size.bit_length() - 1, rng.choice((0, 1, 4, 6, 9, 14))
    kind = rng.random()
    if kind < 0.35:  # one bit each, repeated or not
        columns = [1 << rng.randrange(width) if width else 0 for _ in range(count)]
    elif kind < 0.6:  # an order of the bits behind one swizzle
        width = max(width, count)
        shift, place = rng.randint(1, 4), rng.randrange(4)
        columns = [1 << k for k in rng.sample(range(width), count)]
        columns = [c ^ (c >> shift & 1 << place) for c in columns]
    else:
        columns = [rng.randrange(1 << width) for _ in range(count)]
    cuts = sorted(rng.randint(0, count) for _ in range(rng.choice((0, 1, 2))))
    width = max([width, *(column.bit_length() for column in columns)])
    split = rng.randint(0, width)
    return {
        "family": "linear",
        "axes": [b - a for a, b in zip([0, *cuts], [*cuts, count], strict=True)],
        "outs": [split, width - split],
        "columns": columns,
        "constant": rng.choice((0, 0, rng.randrange(1 << width))),
    }


def _piecewise(extents: list[int], rng: random.Random) -> Source:
    """Pieces cut by comparisons and residues of the axes; a value is affine plus floors and residues."""

    def form() -> tuple[list[int], int]:
        return [rng.choice((0, 1, 1, 2, 3, 4, 8, -1)) for _ in extents], rng.choice((0, 0, 1, -3, 5))

    def value() -> Source:
        extra = [(rng.choice(("floor", "mod")), *form(), rng.choice((2, 3, 4, 7)), rng.choice((1, 2, -1, 4)))]
        return {"form": form(), "extra": extra if rng.random() < 0.4 else []}

    cuts: list[tuple[str, list[int], int, int]] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        coefficients = [0] * len(extents)
        place = rng.randrange(len(extents))
        coefficients[place] = 1
        if rng.random() < 0.3:
            coefficients[rng.randrange(len(extents))] = rng.choice((1, -1, 2))
        if rng.random() < 0.3:
            cuts.append(("mod", coefficients, rng.choice((0, 1)), 2))
        else:
            cuts.append(("below", coefficients, rng.randint(0, extents[place]), 0))
    shared = value() if rng.random() < 0.2 else None
    # one value per side of the cuts, so the pieces cover the box exactly once
    sides = [shared or value() for _ in range(2 ** len(cuts))]
    return {"family": "piecewise", "extents": extents, "cuts": cuts, "values": sides}


def piecewise_text(source: Source) -> str:
    """The source in ISL's notation."""
    if source["family"] == "pieces":
        return "{ " + "; ".join(f"[i] -> [{v}] : i = {i}" for i, v in enumerate(source["points"])) + " }"
    names = [f"k{place}" for place in range(len(source["extents"]))]

    def affine(coefficients: list[int], constant: int) -> str:
        return " + ".join([str(constant), *(f"{a}*{n}" for a, n in zip(coefficients, names, strict=True))])

    box = " and ".join(f"0 <= {n} < {extent}" for n, extent in zip(names, source["extents"], strict=True))
    pieces = []
    for side, value in enumerate(source["values"]):
        text = affine(*value["form"])
        for kind, coefficients, constant, by, factor in value["extra"]:
            inner = affine(coefficients, constant)
            text += f" + {factor}*" + (f"floor(({inner})/{by})" if kind == "floor" else f"(({inner}) mod {by})")
        conditions = [box]
        for place, (kind, coefficients, number, by) in enumerate(source["cuts"]):
            holds = side >> place & 1
            if kind == "mod":
                conditions.append(f"({affine(coefficients, 0)}) mod {by} = {number if holds else 1 - number}")
            else:
                conditions.append(f"{affine(coefficients, 0)} {'<' if holds else '>='} {number}")
        pieces.append(f"[{', '.join(names)}] -> [{text}] : {' and '.join(conditions)}")
    return "{ " + "; ".join(pieces) + " }"


# --------------------------------------------------------------------------------------------------------- evaluation


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves(part)]


def product(extents: list[int]) -> int:
    return math.prod(extents)


def digits(extents: list[int]) -> list[Ints]:
    rest = np.arange(product(extents), dtype=np.int64)
    found = []
    for extent in extents:
        found.append(rest % extent if extent else rest)
        rest = rest // extent if extent else rest
    return found


def dot(extents: list[int], steps: list[int], constant: int = 0) -> Ints:
    total = np.full(product(extents), constant, dtype=np.int64)
    for digit, step in zip(digits(extents), steps, strict=True):
        total = total + digit * step
    return total


def swizzled(numbers: Ints, bits: int, base: int, shift: int) -> Ints:
    for bit in range(bits):
        read, write = (base + shift + bit, base + bit) if shift > 0 else (base + bit, base - shift + bit)
        numbers = numbers ^ ((numbers >> read & 1) << write)
    return numbers


def xor(columns: list[int], constant: int) -> Ints:
    total = np.full(1 << len(columns), constant, dtype=np.int64)
    index = np.arange(1 << len(columns), dtype=np.int64)
    for place, column in enumerate(columns):
        total ^= (index >> place & 1) * column
    return total


def mapped(source: Source) -> Ints:
    """The values of a bijection."""
    if source["map"] == "bits":
        return xor(source["columns"], source["constant"])
    if source["map"] == "table":
        return np.array(source["entries"], dtype=np.int64)
    modes = source["modes"]
    extents, steps = [n for n, _ in modes], [d if isinstance(d, int) else 0 for _, d in modes]
    total = dot(extents, steps, sum((1 - n) * d for n, d in zip(extents, steps, strict=True) if d < 0))
    flipped: dict[int, Ints] = {w: np.ones(len(total), dtype=np.int64) for w in source.get("flips", ())}
    for digit, (_, stride) in zip(digits(extents), modes, strict=True):
        for w in stride if isinstance(stride, tuple) else ():
            flipped[w] = flipped.get(w, np.zeros(len(total), dtype=np.int64)) ^ digit
    return total + sum((w * bit for w, bit in flipped.items()), start=np.zeros(len(total), dtype=np.int64))


def values(source: Source) -> Ints:
    """The value at every flat coordinate; one column per output where there are not exactly one; HOLE for no value."""
    family = source["family"]
    if family in ("cute", "composed", "stacked"):
        numbers = dot(leaves(source["shape"]), leaves(source["stride"]))
        for bits, base, shift, offset in reversed(source["stages"]):
            numbers = swizzled(numbers + offset, bits, base, shift)
        return numbers
    if family == "linear":
        return xor(source["columns"], source["constant"])
    if family in ("integer", "outputs"):
        found = []
        for row, modulus, offset in zip(source["rows"], source["moduli"], source["offsets"], strict=True):
            numbers = dot(source["extents"], row, offset)
            found.append(numbers % modulus if modulus else numbers)
        empty = np.empty((product(source["extents"]), 0), dtype=np.int64)
        return found[0] if len(found) == 1 else np.stack(found, axis=1) if found else empty
    if family == "pieces":
        return np.array(source["points"], dtype=np.int64)
    if family == "piecewise":
        extents = source["extents"]
        side = np.zeros(product(extents), dtype=np.int64)
        for place, (kind, coefficients, number, by) in enumerate(source["cuts"]):
            form = dot(extents, coefficients)
            side |= (form % by == number if kind == "mod" else form < number).astype(np.int64) << place
        answer = np.zeros(product(extents), dtype=np.int64)
        for index, value in enumerate(source["values"]):
            total = dot(extents, *value["form"])
            for kind, coefficients, constant, by, factor in value["extra"]:
                form = dot(extents, coefficients, constant)
                total = total + factor * (form // by if kind == "floor" else form % by)
            answer = np.where(side == index, total, answer)
        return answer
    numbers = mapped(source)
    for guard, box, bounds in source.get("guards", ()):
        rest = mapped(guard)
        for extent, bound in zip(box, bounds, strict=True):
            numbers = np.where(rest % extent < bound, numbers, HOLE)
            rest = rest // extent
    return numbers


# -------------------------------------------------------------------------------------------- does a form exist at all


def primes(number: int) -> list[int]:
    return [p for p in range(2, number + 1) if number % p == 0 and all(p % q for q in range(2, p))]


def strided(rows: Ints) -> npt.NDArray[np.bool_]:
    """Which rows are a constant plus strides on some box: every chain of prime extents is followed."""
    rows = np.atleast_2d(rows)
    size = rows.shape[1]
    reached = {1: np.ones(len(rows), dtype=bool)}
    for weight in sorted(w for w in range(1, size + 1) if size % w == 0):
        holds = reached.get(weight)
        if holds is None or not holds.any():
            continue
        for prime in primes(size // weight):
            block = rows[:, : weight * prime].reshape(len(rows), prime, weight)
            step = rows[:, weight] - rows[:, 0]
            forced = block[:, :1, :] + np.arange(prime)[None, :, None] * step[:, None, None]
            good = holds & (block == forced).all(axis=(1, 2))
            reached[weight * prime] = reached.get(weight * prime, np.zeros(len(rows), dtype=bool)) | good
    return reached.get(size, np.zeros(len(rows), dtype=bool))


def affine(table: Ints) -> bool:
    """Whether f(x) is f(0) xor the f(bit) xor f(0) of the bits of x, everywhere."""
    count = len(table).bit_length() - 1
    forced = xor([int(table[1 << k]) ^ int(table[0]) for k in range(count)], int(table[0]))
    return bool((forced == table).all())


def prime_orders(size: int) -> Iterator[list[int]]:
    if size == 1:
        yield []
    for prime in primes(size):
        for rest in prime_orders(size // prime):
            yield [prime, *rest]


def modular(table: Ints) -> bool:
    """Whether the values are residues of a map that is affine on some box."""
    if int(table.min()) < 0:
        return False
    for box in prime_orders(len(table)):
        weights = [product(box[:place]) for place in range(len(box))]
        wrong = table - dot(box, [int(table[w]) - int(table[0]) for w in weights], int(table[0]))
        if not wrong.any() or int(np.gcd.reduce(wrong)) > int(table.max()):
            return True
    return False


def swizzles(top: int) -> Iterator[tuple[int, int, int]]:
    for distance in range(1, top):
        for bits in range(1, distance + 1):
            for base in range(top - distance - bits + 1):
                yield bits, base, distance
                yield bits, base, -distance


def behind_a_swizzle(table: Ints) -> bool:
    """Whether some swizzle makes the values strided: all whose bits can be told apart on so many values are tried."""
    if strided(table).any():
        return True
    width = max(abs(int(table.min())), abs(int(table.max()))).bit_length()
    rows = [swizzled(table, *fields) for fields in swizzles(min(60, width + len(table).bit_length() + 2))]
    return any(bool(strided(np.stack(rows[at : at + 512])).any()) for at in range(0, len(rows), 512))


def runs(table: Ints) -> int:
    """The number of arithmetic runs, taken greedily from the left."""
    count, start = 0, 0
    while start < len(table):
        stop = start + 1
        while stop < len(table) and stop > start and table[stop] - table[stop - 1] == table[start + 1] - table[start]:
            stop += 1
        count, start = count + 1, stop
    return count
