"""Linear layouts: affine maps over F2 between products of named power-of-two axes.

Notation: ``F2[lane=(1,0)(0,1) -> row:2, col:2] ^ (1,0)`` lists, per input axis, the image of each of its bits, low bit
first, with one component per output axis; then the output axes with their sizes; then the constant.

Implementation notes: points of the domain and codomain are packed into one integer, first axis in the low bits. The
matrix is a tuple of such integers, one per input bit, so composition and inversion are integer xors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.f2.axes import (
    AxisBits,
    argument_check,
    axes_of,
    bad_argument,
    check_axes,
    fields,
    gather,
    malformed,
    misfit,
    move,
    moves,
    pack,
    pack_offset,
    place,
    resized,
    summed,
    unpack,
    width,
)
from layoutalg.f2.axes import fields_check as check
from layoutalg.ground import memory
from layoutalg.ground.check import Checker, refuse
from layoutalg.ground.digits import Coordinate, coordinates
from layoutalg.ground.errors import AdmissibilityError, shown
from layoutalg.ground.layout import Layout, composes
from layoutalg.ground.text import Grammar, Tokens

PACKED_BITS = 63
"""Maximum bits of a value in an int64; wider values become object arrays of Python integers."""

Inputs: TypeAlias = Sequence[tuple[Coordinate, int]]
"""Coordinates and number of bits per input axis; the coordinates broadcast together."""


def values_at(
    inputs: Inputs, columns: Sequence[int], constant: int, out_bits: int, shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Return the packed values; the coordinates broadcast to ``shape``."""
    kind = np.int64 if out_bits <= PACKED_BITS else object
    answer = np.full(shape, constant, dtype=kind)
    column = iter(columns)
    for values, bits in inputs:
        array = np.asarray(values)
        for bit in range(bits):
            image = next(column)
            if image:
                # an in-place xor keeps the shape of ``answer``; the operand broadcasts
                answer ^= (array >> bit & 1).astype(kind, copy=False) * image
    return answer


def values_by_axis(
    inputs: Inputs, columns: Sequence[int], constant: int, outputs: AxisBits, shape: tuple[int, ...]
) -> dict[str, npt.NDArray[Any]]:
    """Return the values per output axis."""
    memory.reserve("the values of a linear layout", prod(shape), 8 * (len(outputs) + 3))
    out_bits = sum(bits for _, bits in outputs)
    if out_bits <= PACKED_BITS:
        packed = values_at(inputs, columns, constant, out_bits, shape)
        return {name: np.asarray(packed >> low & ((1 << bits) - 1)) for name, low, bits in fields(outputs)}
    answer = {}
    for name, low, bits in fields(outputs):
        first, *rest = (value >> low & ((1 << bits) - 1) for value in (constant, *columns))
        answer[name] = values_at(inputs, rest, first, bits, shape)
    return answer


Bases: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
_domain = Checker("LA204", "the coordinate is outside the domain of the layout")


@dataclass(frozen=True, slots=True)
class LinearLayout(Layout):
    """A map ``x -> M x xor c`` over F2 between products of named axes of power-of-two sizes.

    ``==`` compares structure, including axis names and order; ``layoutalg.equivalent`` compares functions. Build one
    with ``from_bases``; the fields are the packed form.

    Args:
        in_axes: Input axes (name, number of bits), minor to major; ``in_dims`` gives the sizes.
        out_axes: Output axes (name, number of bits), minor to major.
        columns: Image of each input bit under M, packed with the first output axis in the low bits.
        constant: The packed affine part c.

    Example:
        >>> swap = LinearLayout.from_bases({"i": [(2,), (1,)]}, {"offset": 4})
        >>> swap(i=1), (swap @ swap.inverse()).columns, str(swap)
        ({'offset': 2}, (1, 2), 'F2[i=(2)(1) -> offset:4]')

    Source: arXiv 2505.23819 (linear layouts), extended by an affine part.
    """

    in_axes: AxisBits
    out_axes: AxisBits
    columns: tuple[int, ...]
    constant: int = 0
    title = "linear over F2"

    def __post_init__(self) -> None:
        check_axes(self.in_axes, "in_axes")
        check_axes(self.out_axes, "out_axes")
        bits = sum(bits for _, bits in self.in_axes)
        if not isinstance(self.columns, tuple) or len(self.columns) != bits:
            raise malformed("columns", f"must be a tuple of {bits} integers, one per input bit", self.columns)
        for argument, value in (("constant", self.constant), *(("columns", column) for column in self.columns)):
            if type(value) is not int or value < 0 or value.bit_length() > self.out_bits:
                raise malformed(argument, f"must be an integer in [0, 2**{self.out_bits})", value)

    @classmethod
    def from_bases(
        cls,
        bases: Bases | Sequence[tuple[str, Sequence[Sequence[int]]]],
        out_dims: Mapping[str, int] | Sequence[tuple[str, int]],
        offset: Mapping[str, int] | Sequence[int] | None = None,
    ) -> LinearLayout:
        """Return the layout with the given images of the input bits.

        Args:
            bases: Per input axis, minor to major, the images of its bits, low bit first; each image has one
                component per output axis. An axis with k images has size 2**k.
            out_dims: Size of each output axis, powers of two, minor to major.
            offset: The affine part, per output axis by name (absent axes are 0) or in order; None for zero.

        Example:
            >>> LinearLayout.from_bases({"i": [(1, 0), (0, 1)]}, {"row": 2, "col": 2}, {"row": 1}).table().tolist()
            [1, 0, 3, 2]
        """
        outputs = axes_of(out_dims, "out_dims")
        places = tuple(fields(outputs))
        inputs: list[tuple[str, int]] = []
        columns: list[int] = []
        for name, images in check.pairs(bases, "bases"):
            if isinstance(images, np.ndarray):
                images = images.tolist()
            if not isinstance(images, (tuple, list)):
                raise malformed(f"bases[{name!r}]", "must be a sequence of images, one per bit", images)
            inputs.append((name, width(len(images), f"bases[{name!r}]")))
            columns += [pack(image, places, f"bases[{name!r}]", bit) for bit, image in enumerate(images)]
        return trusted(tuple(inputs), outputs, tuple(columns), pack_offset(offset, outputs))

    @classmethod
    def identity(cls, dims: Mapping[str, int] | Sequence[tuple[str, int]]) -> LinearLayout:
        """Return the identity on the axes ``dims`` (name -> size).

        Example:
            >>> str(LinearLayout.identity({"row": 2, "col": 2}))
            'F2[row=(1,0), col=(0,1) -> row:2, col:2]'
        """
        axes = axes_of(dims, "dims")
        return cls(axes, axes, tuple(1 << bit for bit in range(sum(bits for _, bits in axes))))

    @property
    def in_bits(self) -> int:
        """Number of input bits."""
        return len(self.columns)

    @property
    def out_bits(self) -> int:
        """Number of output bits."""
        return sum(bits for _, bits in self.out_axes)

    @property
    def size(self) -> int:
        """Number of points of the domain."""
        return 1 << len(self.columns)

    @property
    def in_dims(self) -> dict[str, int]:
        """Input axes, minor to major: name -> size."""
        return {name: 1 << bits for name, bits in self.in_axes}

    @property
    def out_dims(self) -> dict[str, int]:
        """Output axes, minor to major: name -> size."""
        return {name: 1 << bits for name, bits in self.out_axes}

    @property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Per input axis the images of its bits under M, one component per output axis."""
        return {
            name: tuple(tuple(unpack(column, self.out_axes).values()) for column in self.columns[low : low + bits])
            for name, low, bits in fields(self.in_axes)
        }

    @property
    def offset(self) -> dict[str, int]:
        """The affine part per output axis: the value at the origin."""
        return unpack(self.constant, self.out_axes)

    def apply(self, coords: Any) -> Any:
        """Evaluate at one point or, vectorised, at arrays of points.

        Args:
            coords: Every input axis by name, integers or integer arrays that broadcast together; or an array of flat
                input indices.

        Returns:
            Output axis -> value, ints if all inputs are ints, else arrays (int64, or object above 63 bits); for flat
            indices an array of packed outputs.

        Example:
            >>> L = LinearLayout.from_bases({"i": [(1,), (3,)]}, {"offset": 4})
            >>> L.apply({"i": np.arange(4)})["offset"].tolist(), L.apply([3, 0]).tolist()
            ([0, 1, 3, 2], [2, 0])
        """
        if not isinstance(coords, Mapping):
            index = _domain.coordinate(coords, "coords", self.size)
            if isinstance(index, int):
                return self.constant ^ matrix.apply(self.columns, index)
            memory.reserve("the values of a linear layout", index.size, 32)
            return values_at([(index, self.in_bits)], self.columns, self.constant, self.out_bits, index.shape)
        packed = 0
        for name, low, bits in fields(self.in_axes):
            value = coords.get(name)
            if type(value) is not int or value >> bits:
                break
            packed |= value << low
        else:
            if len(coords) == len(self.in_axes):
                return unpack(self.constant ^ matrix.apply(self.columns, packed), self.out_axes)
        values, shape = coordinates(tuple(self.in_dims.items()), coords, _domain)
        inputs = list(zip(values, (bits for _, bits in self.in_axes), strict=True))
        found = values_by_axis(inputs, self.columns, self.constant, self.out_axes, shape or ())
        return found if shape is not None else {name: int(part[()]) for name, part in found.items()}

    def __call__(self, /, **coords: int) -> dict[str, Coordinate]:
        """Evaluate at one point, axes by name; see ``apply``."""
        answer: dict[str, Coordinate] = self.apply(coords)
        return answer

    def at(self, index: int) -> int:
        """Return the packed output at a flat input index (first axes fastest and in the low bits)."""
        return self.constant ^ matrix.apply(self.columns, _domain.integer(index, "index", 0, self.size))

    def table(self) -> npt.NDArray[np.int64]:
        """Return the packed outputs over all flat inputs, int64 of length ``size``."""
        return matrix.table(self.columns, self.constant)

    def __matmul__(self, inner: Any) -> Any:
        """Return ``self`` after ``inner``.

        The output axes of ``inner`` must be the input axes of ``self`` by name, in any order, none larger.
        """
        if not isinstance(inner, LinearLayout):
            return Layout.__matmul__(self, inner)
        columns, constant = inner.columns, inner.constant
        if inner.out_axes != self.in_axes:
            name = misfit(self.in_axes, inner.out_axes)
            if name is not None:
                needed, given = self.in_dims, inner.out_dims
                because = f"the inner layout has output axes {given}, the outer one input axes {needed}"
                witness = {"axis": name, "given": given.get(name), "taken": needed.get(name)}
                raise refuse("LA202", "the linear layouts do not compose", because, witness, self, f"after {inner}")
            along = moves(inner.out_axes, self.in_axes)
            columns, constant = tuple([move(column, along) for column in columns]), move(constant, along)
        product = matrix.multiply(self.columns, columns)
        if constant:
            constant = matrix.apply(self.columns, constant)
        return trusted(inner.in_axes, self.out_axes, product, self.constant ^ constant)

    def __mul__(self, outer: LinearLayout) -> LinearLayout:
        """Return the direct sum, ``self`` in the low bits; see ``layoutalg.f2.direct_sum``."""
        if not isinstance(outer, LinearLayout):
            return NotImplemented
        inputs = summed(self, outer, self.in_axes, outer.in_axes, "input")
        outputs = summed(self, outer, self.out_axes, outer.out_axes, "output")
        low = moves(self.out_axes, outputs)
        high = moves(outer.out_axes, outputs, dict(self.out_axes))
        low_columns = {name: self.columns[at : at + bits] for name, at, bits in fields(self.in_axes)}
        high_columns = {name: outer.columns[at : at + bits] for name, at, bits in fields(outer.in_axes)}
        columns: list[int] = []
        for name, _ in inputs:
            columns += [move(column, low) for column in low_columns.get(name, ())]
            columns += [move(column, high) for column in high_columns.get(name, ())]
        return trusted(inputs, outputs, tuple(columns), move(self.constant, low) | move(outer.constant, high))

    def inverse(self) -> LinearLayout:
        """Return the inverse map; input and output axes are swapped.

        Example:
            >>> LinearLayout.from_bases({"i": [(3,), (1,)]}, {"o": 4}, (1,)).inverse().table().tolist()
            [2, 0, 1, 3]
        """
        reduced = matrix.eliminate(self.columns)
        if reduced.null:
            witness: dict[str, object] = {"kernel": unpack(reduced.null[0], self.in_axes), "value": self.at(0)}
            raise self._singular(f"rank {reduced.rank} is less than the {self.in_bits} input bits", witness)
        if reduced.rank < self.out_bits:
            because = f"rank {reduced.rank} is less than the {self.out_bits} output bits"
            raise self._singular(because, {"missed": self.missed()})
        columns = tuple([columns for _, columns in reduced.pivots])
        return trusted(self.out_axes, self.in_axes, columns, matrix.apply(columns, self.constant))

    def __invert__(self) -> LinearLayout:
        """Return ``inverse()``."""
        return self.inverse()

    def _singular(self, because: str, witness: Mapping[str, object]) -> AdmissibilityError:
        return refuse("LA203", "the linear layout is not invertible", because, witness, self)

    @property
    def rank(self) -> int:
        """The dimension of the image of the linear part: the layout takes ``2**rank`` values."""
        return matrix.eliminate(self.columns).rank

    def missed(self) -> dict[str, int] | None:
        """Return an output that no input reaches, or None for a surjective layout.

        Example:
            >>> LinearLayout.from_bases({"i": [(2,)]}, {"o": 4}).missed()
            {'o': 1}
        """
        reduced, bits = matrix.eliminate(self.columns), self.out_bits
        if reduced.rank == bits:
            return None
        free = next(bit for bit in range(bits) if reduced.reduce(1 << bit)[0])
        return unpack(self.constant ^ 1 << free, self.out_axes)

    @property
    def is_injective(self) -> bool:
        """Whether no two inputs share an output."""
        return self.rank == self.in_bits

    @property
    def is_surjective(self) -> bool:
        """Whether every output is reached."""
        return self.rank == self.out_bits

    @property
    def is_invertible(self) -> bool:
        """Whether the layout is injective and surjective."""
        return self.in_bits == self.out_bits == self.rank

    def __str__(self) -> str:
        def point(values: Iterable[int]) -> str:
            return "(" + ",".join(map(str, values)) + ")"

        ins = ", ".join(f"{name}=" + "".join(map(point, images)) for name, images in self.bases.items())
        outs = ", ".join(f"{name}:{size}" for name, size in self.out_dims.items())
        constant = f" ^ {point(self.offset.values())}" if self.constant else ""
        return f"F2[{ins} -> {outs}]{constant}"

    def __repr__(self) -> str:
        offset = f", {tuple(self.offset.values())!r}" if self.constant else ""
        return f"LinearLayout.from_bases({self.bases!r}, {self.out_dims!r}{offset})"


composes(LinearLayout, LinearLayout)(LinearLayout.__matmul__)


_new, _set = object.__new__, object.__setattr__


def trusted(inputs: AxisBits, outputs: AxisBits, columns: tuple[int, ...], constant: int) -> LinearLayout:
    """Return a layout with fields that are valid by construction, unchecked."""
    layout = _new(LinearLayout)
    _set(layout, "in_axes", inputs)
    _set(layout, "out_axes", outputs)
    _set(layout, "columns", columns)
    _set(layout, "constant", constant)
    return layout


def linear(value: object, argument: str) -> LinearLayout:
    """Return ``value`` if it is a linear layout."""
    return argument_check.kind(value, LinearLayout, argument)


def mapped(layout: LinearLayout, outputs: AxisBits, change: Callable[[int], int]) -> LinearLayout:
    """Return the layout followed by a linear map of packed values, with output axes ``outputs``."""
    return trusted(layout.in_axes, outputs, tuple(map(change, layout.columns)), change(layout.constant))


def recolumned(layout: LinearLayout, name: str, columns: Sequence[int]) -> LinearLayout:
    """Return the layout with the columns of one input axis replaced, possibly by a different number."""
    low, bits = place(layout.in_axes, name, "name")
    rest = layout.columns[low + bits :]
    inputs = resized(layout.in_axes, name, len(columns))
    return trusted(inputs, layout.out_axes, (*layout.columns[:low], *columns, *rest), layout.constant)


def map_in(layout: LinearLayout, inner: LinearLayout) -> LinearLayout:
    """Return the layout with one input axis mapped through ``inner`` first, for example with its bits permuted.

    Args:
        inner: From one axis (of any size) to the axis of that name and size of the layout.

    Example:
        >>> swap = LinearLayout.from_bases({"lane": [(2,), (1,)]}, {"lane": 4})
        >>> str(map_in(LinearLayout.from_bases({"lane": [(1,), (2,)], "warp": [(4,)]}, {"o": 8}), swap))
        'F2[lane=(2)(1), warp=(4) -> o:8]'
    """
    linear(layout, "layout")
    if len(linear(inner, "inner").in_axes) != 1 or len(inner.out_axes) != 1:
        raise bad_argument("inner", "must have one input and one output axis", inner)
    ((name, bits),) = inner.out_axes
    if inner.in_axes[0][0] != name or dict(layout.in_axes).get(name) != bits:
        raise bad_argument("inner", "must map to an input axis of the layout, of its name and size", inner)
    own = columns_of(layout, name, "inner")
    moved = recolumned(layout, name, matrix.multiply(own, inner.columns))
    return trusted(moved.in_axes, layout.out_axes, moved.columns, layout.constant ^ matrix.apply(own, inner.constant))


def restricted(layout: LinearLayout, ins: Container[str], outs: Container[str]) -> LinearLayout:
    """Return the layout with all other input axes at 0 and all other output axes dropped."""
    places = [(low, bits) for name, low, bits in fields(layout.out_axes) if name in outs]
    columns: list[int] = []
    for name, low, bits in fields(layout.in_axes):
        if name in ins:
            columns += [gather(column, places) for column in layout.columns[low : low + bits]]
    inputs = tuple(axis for axis in layout.in_axes if axis[0] in ins)
    outputs = tuple(axis for axis in layout.out_axes if axis[0] in outs)
    return trusted(inputs, outputs, tuple(columns), gather(layout.constant, places))


def columns_of(layout: LinearLayout, name: str, argument: str) -> tuple[int, ...]:
    """Return the packed columns of one input axis."""
    low, bits = place(layout.in_axes, name, argument)
    return layout.columns[low : low + bits]


def bit_name(layout: LinearLayout, index: int) -> str:
    """Return the name of an input bit, such as ``lane[2]``."""
    for name, low, bits in fields(layout.in_axes):
        if low <= index < low + bits:
            return f"{name}[{index - low}]"
    return "constant"


_GRAMMAR = Grammar(("[", "]", "(", ")", ",", ":", "=", "^", "->"), False, "LA201", "cannot parse linear layout")


def parse_linear(text: str) -> LinearLayout:
    """Parse a linear layout; ``parse_linear(str(L)) == L``.

    Example:
        >>> parse_linear("F2[i=(2)(1) -> offset:4] ^ (1)").table().tolist()
        [1, 3, 0, 2]
    """
    if not isinstance(text, str):
        raise _GRAMMAR.error(text, f"must be text, not {shown(text)}")
    tokens = Tokens(text, _GRAMMAR)
    if tokens.take("name", "F2") != "F2":
        tokens.fail("F2", tokens.items[0][2])
    tokens.take("[", "[")
    bases: list[tuple[str, list[tuple[int, ...]]]] = []
    while not tokens.accept("->"):
        if bases:
            tokens.take(",", ", or ->")
        name = tokens.take("name", "an input axis or ->")
        tokens.take("=", "=")
        images: list[tuple[int, ...]] = []
        while tokens.peek("("):
            images.append(tokens.point())
        bases.append((name, images))
    out_dims: list[tuple[str, int]] = []
    while not tokens.accept("]"):
        if out_dims:
            tokens.take(",", ", or ]")
        name = tokens.take("name", "an output axis or ]")
        tokens.take(":", ":")
        out_dims.append((name, int(tokens.take("number", "a size"))))
    offset = tokens.point() if tokens.accept("^") else None
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.items[tokens.next][2])
    return LinearLayout.from_bases(bases, out_dims, offset)
