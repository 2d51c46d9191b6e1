"""The laws: for each its claim, the operands it is tried on, and the check.

Implementation notes: a check gets specs, builds the layouts and raises ``Broken``; ``Refused`` passes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.testing.laws.library import Broken, Library, shaped
from layoutalg.testing.laws.tilings import divided, multiplied, starts, values
from layoutalg.testing.strategies import cute_layouts

BOUND = 24
Drawn = Callable[[Library], st.SearchStrategy[Any]]
Check = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Law:
    """One law.

    Args:
        name: Of the law.
        claim: What it says.
        needs: The functions of the library that it calls.
        drawn: Strategy of the operands, a tuple: specs, then numbers.
        check: Raises where the law does not hold.
    """

    name: str
    claim: str
    needs: tuple[str, ...]
    drawn: Drawn
    check: Check


LAWS: dict[str, Law] = {}
"""All laws by name."""


def _law(name: str, claim: str, needs: str, drawn: Drawn) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        LAWS[name] = Law(name, claim, tuple(needs.split()), drawn, check)
        return check

    return register


def _one(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(library.drawn())


def _turned(library: Library) -> st.SearchStrategy[Any]:
    """Many bijections, and others."""
    return st.tuples(shaped(cute_layouts(bijective=True)) | library.drawn())


def _two(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(library.drawn(), library.drawn())


def _numbered(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(library.drawn(), st.integers(1, BOUND))


def _chain(_: Library) -> st.SearchStrategy[Any]:
    return st.tuples(shaped(_chains()))


def _chain_numbered(_: Library) -> st.SearchStrategy[Any]:
    return st.tuples(shaped(_chains()), st.integers(1, BOUND))


@st.composite
def _chains(draw: st.DrawFn) -> CuteLayout:
    """Layouts whose strides, in some order of the modes, are multiples of each other's reach: what has a complement."""
    drawn = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 7), st.integers(1, 3)), min_size=1, max_size=3))
    strides, reach = [0] * len(drawn), 1
    for place in sorted(range(len(drawn)), key=lambda place: drawn[place][1]):
        extent, _, gap = drawn[place]
        strides[place] = reach * gap
        reach = strides[place] * extent
    return CuteLayout(*_spec([extent for extent, _, _ in drawn], strides))


def _chain_and_places(_: Library) -> st.SearchStrategy[Any]:
    return st.tuples(shaped(_chains()), _small())


def _tiny(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(shaped(cute_layouts(max_leaves=2, max_extent=4, strides=library.steps())))


def _small() -> st.SearchStrategy[Any]:
    """Tiles and places of copies."""
    return shaped(cute_layouts(max_leaves=2, max_extent=4, strides=st.integers(0, 12)))


@st.composite
def _pairs(draw: st.DrawFn, library: Library) -> Any:
    """Pairs (A, B) with the values of B among the coordinates of A."""
    outer = draw(library.drawn())
    return outer, draw(_within(len(values(*outer))))


@st.composite
def _within(draw: st.DrawFn, size: int) -> Any:
    """Shape and stride of a layout whose values are below ``size``."""
    shape, stride, room = [], [], size - 1
    for extent, step in draw(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 12)), min_size=1, max_size=3)):
        shape.append(extent)
        stride.append(step if extent == 1 else step % (room // (extent - 1) + 1))
        room -= (extent - 1) * stride[-1]
    return _spec(shape, stride)


def _spec(shape: Sequence[int], stride: Sequence[int]) -> Any:
    """Shape and stride of flat modes; a single one is not wrapped."""
    return (shape[0], stride[0]) if len(shape) == 1 else (tuple(shape), tuple(stride))


@st.composite
def _three(draw: st.DrawFn, library: Library) -> Any:
    outer, middle = draw(_pairs(library))
    return outer, middle, draw(_within(len(values(*middle))))


def _product_operands(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(library.drawn(), _small())


def _equal(found: Sequence[Any], wanted: Sequence[Any] | None) -> None:
    """Refuse values that are not those wanted; any values where none can be right."""
    if wanted is None:
        raise Broken(f"the answer has the values {_few(found)}; there is no answer")
    if list(found) != list(wanted):
        raise Broken(f"the answer has the values {_few(found)}, not {_few(wanted)}")


def _few(found: Sequence[Any]) -> str:
    return " ".join(map(str, found[:12])) + (f" ... ({len(found)} of them)" if len(found) > 12 else "")


@_law("evaluate", "size and values are those of the coordinates enumerated", "", _one)
def _evaluate(library: Library, spec: Any) -> None:
    _equal(library.answer("build", spec), values(*spec))


@_law("equality", "a layout equals itself built again, and equal layouts have equal values", "equal", _two)
def _equality(library: Library, one: Any, other: Any) -> None:
    if not library.built("equal", one, one):
        raise Broken("it differs from itself built again")
    if library.built("equal", one, other):
        _equal(values(*one), values(*other))


@_law("cosize", "cosize is the length of the shortest interval that holds all values, and 0", "cosize", _one)
def _cosize(library: Library, spec: Any) -> None:
    found, table = library.built("cosize", spec), values(*spec)
    wanted = max([0, *table]) - min([0, *table]) + 1
    if found != wanted:
        raise Broken(f"cosize is {found}, not {wanted}")


@_law("coalesce", "the coalesced layout is the same function", "coalesce", _one)
def _coalesce(library: Library, spec: Any) -> None:
    _equal(library.answer("coalesce", spec), values(*spec))


@_law("compose", "(A after B)(i) = A(B(i)) for all i", "compose", _pairs)
def _compose(library: Library, outer: Any, inner: Any) -> None:
    table = values(*outer)
    _equal(library.answer("compose", outer, inner), [table[value] for value in values(*inner)])


@_law("associativity", "(A after B) after C has the values of A after (B after C)", "compose", _three)
def _associativity(library: Library, one: Any, two: Any, three: Any) -> None:
    first, second, third = (library.built("build", spec) for spec in (one, two, three))
    left = library.call("compose", library.call("compose", first, second), third)
    right = library.call("compose", first, library.call("compose", second, third))
    _equal(library.listed(left), library.listed(right))


@_law(
    "complement",
    "the same of any layout, modes of stride 0 aside; where there is no complement it is refused",
    "complement",
    _numbered,
)
@_law(
    "complement of a chain",
    "the values of L and of its complement add up to every number below the bound exactly once, and rise",
    "complement",
    _chain_numbered,
)
def _complement(library: Library, spec: Any, bound: int) -> None:
    table, found = values(*spec), library.answer("complement", spec, bound)
    if _overlaps(spec, table):
        told = f"has the values {_few(found)}" if found else "is empty"
        raise Broken(f"the answer {told}; the layout overlaps itself, so there is no complement")
    sums = sorted([value + start for value in set(table) for start in found])
    if sums != list(range(len(sums))):
        raise Broken(f"the values plus {_few(found)} do not fill 0, 1, 2, ... once")
    if len(sums) < bound:
        raise Broken(f"the values plus {_few(found)} fill only {len(sums)} numbers, fewer than {bound}")
    if found != sorted(found):
        raise Broken(f"the answer has the values {_few(found)}, which do not rise")


def _overlaps(spec: Any, table: Sequence[int]) -> bool:
    """Whether a value is taken twice beyond what modes of stride 0 repeat."""
    kept = [extent for extent, stride in CuteLayout(*spec).flat if stride]
    return len(set(table)) < math.prod(kept)


@_law("right inverse", "L(R(i)) = i for all i below the size of R", "right_inverse", _one)
def _right_inverse(library: Library, spec: Any) -> None:
    table = values(*spec)
    for index, place in enumerate(library.answer("right_inverse", spec)):
        if not 0 <= place < len(table) or table[place] != index:
            raise Broken(f"R({index}) = {place}, which L does not send to {index}")


@_law("left inverse", "L(R(L(i))) = L(i), and R(L(i)) = i where L is injective", "left_inverse", _one)
@_law(
    "left inverse of a chain", "R(L(i)) = i for all i; R is read past its end in its last mode", "left_inverse", _chain
)
def _left_inverse(library: Library, spec: Any) -> None:
    table, found = values(*spec), library.built("left_inverse", spec)
    injective = len(set(table)) == len(table)
    for index, value in enumerate(table):
        try:
            back = library.value(found, value)
        except Exception as error:
            raise Broken(f"R has no value at {value}: {type(error).__name__}: {str(error)[:60]}") from error
        if not 0 <= back < len(table) or table[back] != value or (injective and back != index):
            raise Broken(f"L({index}) = {value}, and R({value}) = {back}")


@_law("inverse", "the inverse undoes a bijection on both sides; anything else has none", "inverse", _turned)
def _inverse(library: Library, spec: Any) -> None:
    table, found = values(*spec), library.answer("inverse", spec)
    if sorted(table) != list(range(len(table))):
        raise Broken(f"the answer has the values {_few(found)}; the layout is no bijection")
    _equal([found[value] for value in table], range(len(table)))
    _equal([table[place] for place in found], range(len(table)))


@st.composite
def _tiled(draw: st.DrawFn, library: Library) -> Any:
    """A layout and a tile whose copies fill its coordinates."""
    tile = draw(_chains())
    found = starts(tile.table().tolist(), 1, 1)
    size = tile.size * len(found or [0])
    outer, strides = draw(st.lists(st.integers(1, 3), max_size=1)), library.steps()
    extents = [size, *outer]
    return _spec(extents, [draw(strides) for _ in extents]), (tile.shape, tile.stride)


@_law(
    "divide",
    "the same of any tile; where copies of it do not fill the coordinates of L it is refused",
    "logical_divide",
    _product_operands,
)
@_law("divide by a tile that fits", "the divided layout has the values of L tile by tile", "logical_divide", _tiled)
def _divide(library: Library, spec: Any, tile: Any) -> None:
    _equal(library.answer("logical_divide", spec, tile), divided(values(*spec), values(*tile)))


@_law("product", "the same of any block; where copies overlap it is refused", "logical_product", _product_operands)
@_law(
    "product of a chain",
    "copy k of the block starts at the k-th number that earlier copies leave free",
    "logical_product",
    _chain_and_places,
)
def _multiply(library: Library, block: Any, places: Any) -> None:
    answer, table = library.answer("logical_product", block, places), values(*block)
    if _overlaps(block, table):
        raise Broken(f"the answer has the values {_few(answer)}; the block overlaps itself, so there is no product")
    _equal(answer, multiplied(table, values(*places)))


@_law("repeat", "the product with a number n has n copies of the block", "repeat", _chain_numbered)
def _repeat(library: Library, block: Any, count: int) -> None:
    _equal(library.answer("repeat", block, count), multiplied(values(*block), range(count)))


def _recast(library: Library) -> st.SearchStrategy[Any]:
    return st.tuples(library.drawn(), st.sampled_from((2, 3, 4, 8)))


@_law("upcast", "every new element is filled by n old ones exactly once", "upcast", _recast)
def _upcast(library: Library, spec: Any, factor: int) -> None:
    found = library.answer("upcast", spec, factor)
    _equal(sorted([factor * value + part for value in found for part in range(factor)]), sorted(values(*spec)))


@_law("downcast", "every old element is n new ones", "downcast", _recast)
def _downcast(library: Library, spec: Any, factor: int) -> None:
    wide = [factor * value + part for value in values(*spec) for part in range(factor)]
    _equal(sorted(library.answer("downcast", spec, factor)), sorted(wide))


def _swizzles(_: Library) -> st.SearchStrategy[Any]:
    kind = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3), st.booleans())
    fields = kind.map(lambda k: (k[0], k[1], (k[0] + k[2]) * (-1 if k[3] else 1)))
    return st.tuples(fields, st.integers(0, 2**12))


@_law(
    "swizzle",
    "bits base + max(shift, 0) on are xored into those |shift| below, or above for shift < 0",
    "swizzle",
    _swizzles,
)
def _swizzle(library: Library, fields: tuple[int, int, int], number: int) -> None:
    bits, base, shift = fields
    mask = (1 << bits) - 1
    read = number >> (base + max(shift, 0)) & mask
    wanted = number ^ read << (base + max(-shift, 0))
    found = library.call("swizzle", fields, number)
    if found != wanted:
        raise Broken(f"{number} goes to {found}, not to {wanted}")


@_law(
    "F2 matrix",
    "the matrix times the bits of i gives the bits of L(i); of what is not linear there is none",
    "f2_matrix",
    _tiny,
)
def _f2_matrix(library: Library, spec: Any) -> None:
    rows = [[int(entry) for entry in row] for row in library.built("f2_matrix", spec)]
    for index, value in enumerate(values(*spec)):
        image = 0
        for place, row in enumerate(rows):
            image |= (sum(entry & index >> column for column, entry in enumerate(row)) & 1) << place
        if image != value:
            raise Broken(f"the matrix sends {index} to {image}, the layout to {value}")
