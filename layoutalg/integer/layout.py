"""Integer layouts: affine maps over Z or Z/m from boxes of any extents to named outputs.

Main definitions: ``IntegerLayout``.

Notation: ``Z[i:4=(6), j:6=(1) -> offset] + (3)`` lists, per input axis, its extent and its stride on every output; then
the outputs; then the constant, where it is not zero. ``bank%32`` is an output read modulo 32. Axes are listed fastest
first: the flat index is colexicographic.

Main statements: every operation here is exact or refused with the first coordinate, in the order of the flat index,
where it would not be exact.

Implementation notes: Python integers everywhere; tables are int64 where all values fit and Python objects elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import limits, memory
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.integer.matrix import Matrix, Vector, as_matrix, as_vector, integer, malformed

Coordinate: TypeAlias = "int | npt.NDArray[Any]"
Axes: TypeAlias = tuple[tuple[str, int], ...]
# entries of a table: of 64 bits, and of Python integers, which take five times the room
TABLE_ENTRIES, WIDE_ENTRIES = 2**24, 2**21
_WHAT = "this is not an integer layout"
_WIDE_BYTES = 48
_SAFE = 2**62


def axis_pairs(value: object, argument: str, rule: str, code: str = "LA724") -> Axes:
    """Return a mapping or pairs of (name, non-negative integer) as a tuple, or refuse it."""
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, (tuple, list)):
        raise malformed(argument, "must be a mapping or a sequence of (name, number) pairs", value, code, _WHAT)
    found: dict[str, int] = {}
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise malformed(argument, "must hold (name, number) pairs", entry, code, _WHAT)
        name, number = entry
        if not isinstance(name, str) or not name.isidentifier():
            raise malformed(argument, "names must be identifiers", name, code, _WHAT)
        if name in found:
            raise malformed(argument, "names must be distinct", name, code, _WHAT)
        count = integer(number, f"{argument}[{name!r}]", code, _WHAT)
        if count < 0:
            raise malformed(f"{argument}[{name!r}]", rule, count, code, _WHAT)
        found[name] = count
    return tuple(found.items())


@dataclass(frozen=True, slots=True)
class IntegerLayout:
    """The map ``x -> A x + b`` on a box, each output over Z or modulo its own modulus.

    Mathematically: on prod [0, extent_i), output j is ``sum_i A[j][i] x_i + b[j]``, reduced to [0, m_j) where its
    modulus m_j is positive. ``==`` is structural; ``same_function`` compares functions.

    Args:
        inputs: Input axes (name, extent >= 0), fastest first.
        outputs: Outputs (name, modulus), modulus 0 for an output over Z.
        matrix: One row per output, one column per input. Rows with a modulus are kept reduced.
        offset: One integer per output, reduced likewise.

    Raises: MalformedError: LA724.

    Example:
        >>> L = IntegerLayout((("i", 3), ("j", 5)), (("offset", 0), ("bank", 4)), ((5, 1), (5, 1)), (0, 2))
        >>> L(i=2, j=4), str(L)
        ({'offset': 14, 'bank': 0}, 'Z[i:3=(5,1), j:5=(1,1) -> offset, bank%4] + (0,2)')

    Source: own; Cohen, A Course in Computational Algebraic Number Theory, for the normal forms.
    """

    inputs: Axes
    outputs: Axes
    matrix: Matrix
    offset: Vector

    def __post_init__(self) -> None:
        inputs = axis_pairs(self.inputs, "inputs", "an extent must be at least 0")
        outputs = axis_pairs(self.outputs, "outputs", "a modulus must be at least 0 (0: none)")
        rows = as_matrix(self.matrix, "matrix", len(inputs))
        if len(rows) != len(outputs):
            raise malformed("matrix", f"must have {len(outputs)} rows, one per output", len(rows), "LA724", _WHAT)
        offset = as_vector(self.offset, "offset", len(outputs), "LA724")
        moduli = [modulus for _, modulus in outputs]
        numbers = [*[extent for _, extent in inputs], *moduli, *offset, *[a for row in rows for a in row]]
        longest = max(map(int.bit_length, numbers), default=0)
        if longest > limits.INTEGER_BITS:
            raise malformed("layout", f"its numbers have at most {limits.INTEGER_BITS} bits", longest, "LA724", _WHAT)
        bits = math.prod(extent for _, extent in inputs).bit_length()
        if bits > limits.POINTS_BITS:
            raise malformed("inputs", f"must hold points numbered in {limits.POINTS_BITS} bits", bits, "LA724", _WHAT)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(
            self,
            "matrix",
            tuple([tuple([a % m for a in row]) if m else row for row, m in zip(rows, moduli, strict=True)]),
        )
        object.__setattr__(self, "offset", tuple([b % m if m else b for b, m in zip(offset, moduli, strict=True)]))

    @classmethod
    def from_strides(
        cls,
        extents: Mapping[str, int] | Sequence[tuple[str, int]],
        strides: Sequence[int],
        offset: int = 0,
        output: str = "offset",
        modulus: int = 0,
    ) -> IntegerLayout:
        """Return the layout with one output: ``offset + sum of stride_i x_i``.

        Args:
            extents: Extent of each axis, fastest first.
            strides: One stride per axis; any sign. Elements.
            offset: Value at the origin. Elements.
            output: Name of the output.
            modulus: 0 for none.

        Raises: MalformedError: LA720, LA724.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (1, 3)).table().tolist()
            [0, 1, 2, 3, 4, 5]
        """
        return cls(
            tuple(axis_pairs(extents, "extents", "an extent must be at least 0")),
            ((output, modulus),),
            (as_vector(strides, "strides"),),
            (integer(offset, "offset", "LA724", _WHAT),),
        )

    @classmethod
    def identity(cls, extents: Mapping[str, int] | Sequence[tuple[str, int]]) -> IntegerLayout:
        """Return the map of each axis to the output of the same name.

        Example:
            >>> str(IntegerLayout.identity({"i": 3, "j": 2}))
            'Z[i:3=(1,0), j:2=(0,1) -> i, j]'
        """
        inputs = axis_pairs(extents, "extents", "an extent must be at least 0")
        size = len(inputs)
        return cls(
            inputs,
            tuple((name, 0) for name, _ in inputs),
            tuple(tuple(int(i == j) for j in range(size)) for i in range(size)),
            (0,) * size,
        )

    @classmethod
    def pitched(
        cls,
        extents: Mapping[str, int] | Sequence[tuple[str, int]],
        pitches: Sequence[int],
        output: str = "offset",
    ) -> IntegerLayout:
        """Return the padded compact layout: axis k has stride ``pitches[0] * ... * pitches[k-1]``.

        Args:
            extents: Extent of each axis, fastest first.
            pitches: The allocated extent of each axis, at least its extent. The difference is padding.

        Raises: MalformedError: LA724.

        Example:
            >>> IntegerLayout.pitched({"i": 3, "j": 2}, (5, 2)).table().tolist()
            [0, 1, 2, 5, 6, 7]
        """
        inputs = axis_pairs(extents, "extents", "an extent must be at least 0")
        widths = as_vector(pitches, "pitches", len(inputs), "LA724")
        for (name, extent), pitch in zip(inputs, widths, strict=True):
            if pitch < max(extent, 1):
                raise malformed(f"pitches[{name!r}]", f"must be at least {max(extent, 1)}", pitch, "LA724", _WHAT)
        return cls.from_strides(inputs, [math.prod(widths[:k]) for k in range(len(widths))], output=output)

    @property
    def in_dims(self) -> dict[str, int]:
        """The box: axis name -> extent, fastest first."""
        return dict(self.inputs)

    @property
    def out_dims(self) -> dict[str, int]:
        """Output name -> modulus, 0 for none."""
        return dict(self.outputs)

    @property
    def extents(self) -> Vector:
        """Extent of each axis, fastest first."""
        return tuple([extent for _, extent in self.inputs])

    @property
    def moduli(self) -> Vector:
        """Modulus of each output, 0 for none."""
        return tuple([modulus for _, modulus in self.outputs])

    @property
    def size(self) -> int:
        """Number of points of the box."""
        return math.prod(self.extents)

    @property
    def columns(self) -> tuple[Vector, ...]:
        """Per input axis, its stride on every output."""
        return tuple([tuple([row[place] for row in self.matrix]) for place in range(len(self.inputs))])

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return, per output, the least and the greatest value before any reduction by a modulus.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (-1, 4), 1).spans()
            ((-1, 5),)
        """
        return tuple([span(row, b, self.extents) for row, b in zip(self.matrix, self.offset, strict=True)])

    def at(self, index: int) -> Vector:
        """Return the outputs at a flat index.

        Raises: MalformedError: LA726.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (10, 1)).at(5)
            (21,)
        """
        return self.value(self.coordinate(index))

    def coordinate(self, index: int) -> Vector:
        """Return the coordinates of a flat index, fastest axis first.

        Raises: MalformedError: LA726.
        """
        number = integer(index, "index", "LA726")
        if not 0 <= number < self.size:
            raise self._outside(f"a flat index must be in [0, {self.size})", number)
        digits = []
        for extent in self.extents:
            number, digit = divmod(number, extent)
            digits.append(digit)
        return tuple(digits)

    def value(self, point: Sequence[int]) -> Vector:
        """Return the outputs at a point given as one integer per axis; the point is not checked against the box.

        Raises: MalformedError: LA726.
        """
        try:
            return tuple(
                [
                    total % m if m else total
                    for row, b, m in zip(self.matrix, self.offset, self.moduli, strict=True)
                    for total in [b + sum([a * x for a, x in zip(row, point, strict=True)])]
                ]
            )
        except (TypeError, ValueError) as error:
            raise self._outside(f"a point must have {len(self.inputs)} integers", point) from error

    def apply(self, coords: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
        """Evaluate at one point or, vectorised, at arrays of points.

        Args:
            coords: Value of every input axis; integers or integer arrays that broadcast together.

        Returns:
            Value of every output: int where all inputs are ints, else an array (int64, or object where 64 bits might
            not do).

        Raises: MalformedError: LA726.

        Example:
            >>> L = IntegerLayout.from_strides({"i": 3, "j": 2}, (10, 1))
            >>> L.apply({"i": np.arange(3), "j": 1})["offset"].tolist()
            [1, 11, 21]
        """
        if not isinstance(coords, Mapping) or set(coords) != set(self.in_dims):
            raise self._outside(f"the axes are {list(self.in_dims)}", coords)
        values = [self._checked(coords[name], name, extent) for name, extent in self.inputs]
        if all(isinstance(value, int) for value in values):
            point = self.value([int(value) for value in values])
            return dict(zip(self.out_dims, point, strict=True))
        try:
            shape = np.broadcast_shapes(*(np.shape(value) for value in values))
        except ValueError:
            raise self._outside("arrays of points must broadcast together", [np.shape(v) for v in values]) from None
        memory.reserve(f"values of {self}", math.prod(shape), self.bytes_per_point)
        return dict(zip(self.out_dims, self._arrays(values, shape), strict=True))

    def __call__(self, /, **coords: int) -> dict[str, Coordinate]:
        """Evaluate at one point, axes by name; see ``apply``."""
        return self.apply(coords)

    def _arrays(self, values: Sequence[Coordinate], shape: tuple[int, ...]) -> list[npt.NDArray[Any]]:
        answers = []
        for row, b, m in zip(self.matrix, self.offset, self.moduli, strict=True):
            kind = object if self._is_wide(row, b, m) else np.int64
            total: npt.NDArray[Any] = np.full(shape, b, dtype=kind)
            for a, x, extent in zip(row, values, self.extents, strict=True):
                # the coordinate of a short axis is 0, whatever its stride
                if a and extent > 1:
                    total += np.asarray(x).astype(kind) * a
            # numpy turns arrays of Python integers without axes into numbers
            answers.append(np.asarray(total % m, dtype=kind) if m else total)
        return answers

    def _is_wide(self, row: Vector, b: int, m: int) -> bool:
        """Return whether 64 bits might not hold the values of an output or a partial sum on the way."""
        bound = abs(b) + sum(abs(a) * max(extent - 1, 0) for a, extent in zip(row, self.extents, strict=True))
        return max(bound, m) >= _SAFE

    @property
    def bytes_per_point(self) -> int:
        """Bytes that the values of one point take, and as much again while they are computed."""
        rows = zip(self.matrix, self.offset, self.moduli, strict=True)
        return sum(2 * (_WIDE_BYTES if self._is_wide(*row) else 8) for row in rows)

    @property
    def table_limit(self) -> int:
        """The most points, with this number of outputs and values of this size, that ``table`` lists.

        Example:
            >>> IntegerLayout.from_strides({"i": 3}, (2,)).table_limit == 2**24
            True
        """
        rows = zip(self.matrix, self.offset, self.moduli, strict=True)
        entries = WIDE_ENTRIES if any(self._is_wide(*row) for row in rows) else TABLE_ENTRIES
        return entries // max(1, len(self.outputs))

    def table(self) -> npt.NDArray[Any]:
        """Return the outputs over all flat indices: one-dimensional for one output, else one column per output.

        Raises: BudgetError: LA727.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (2, 1), modulus=3).table().tolist()
            [0, 2, 1, 1, 0, 2]
        """
        limit = self.table_limit
        if self.size > limit:
            raise BudgetError(
                Diagnostic(
                    code="LA727",
                    what="the table is too large",
                    where=(str(self),),
                    because=f"{self.size} points with {len(self.outputs)} outputs, the limit for these is {limit}",
                    witness={"points": self.size, "outputs": len(self.outputs), "limit": limit},
                )
            )
        # next to an empty axis another may be too long to list
        extents = self.extents if self.size else (0,) * len(self.extents)
        answers = [answer.reshape(-1) for answer in self._arrays(grid(extents), extents[::-1])]
        if len(answers) == 1:
            return answers[0]
        return np.stack(answers, axis=-1) if answers else np.empty((self.size, 0), np.int64)

    def _checked(self, value: object, name: str, extent: int) -> Coordinate:
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            if not 0 <= value < extent:
                raise self._outside(f"{name} must be in [0, {extent})", int(value))
            return int(value)
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError, RecursionError):
            raise self._outside(f"{name} must hold integers", value) from None
        exact = array.dtype.kind in "iu" or (
            array.dtype.kind == "O" and all(type(entry) is int for entry in array.flat)
        )
        if not exact:
            raise self._outside(f"{name} must hold integers", value)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= extent):
            worst = int(array.min()) if int(array.min()) < 0 else int(array.max())
            raise self._outside(f"{name} must be in [0, {extent})", worst)
        return array

    def _outside(self, rule: str, actual: object) -> MalformedError:
        return malformed("coordinate", rule, actual, "LA726", "the coordinate is not in the domain of the layout")

    def __matmul__(self, inner: IntegerLayout) -> IntegerLayout:
        """Return ``self`` after ``inner``: the outputs of ``inner`` are the input axes of ``self``, by name.

        Raises: AdmissibilityError: LA728, LA729. RepresentabilityError: LA730. BudgetError: LA734.

        Example:
            >>> rows = IntegerLayout.from_strides({"row": 4, "col": 8}, (10, 1))
            >>> turn = IntegerLayout((("x", 8),), (("col", 0), ("row", 0)), ((-1,), (0,)), (7, 2))
            >>> str(rows @ turn)
            'Z[x:8=(-1) -> offset] + (27)'
        """
        from layoutalg.integer.compose import compose

        if not isinstance(inner, IntegerLayout):
            return NotImplemented
        return compose(self, inner)

    def then(self, outer: IntegerLayout) -> IntegerLayout:
        """Return ``outer`` after ``self``; see ``__matmul__``."""
        return layout_or_refuse(outer, "outer") @ self

    def __str__(self) -> str:
        def point(values: Sequence[int]) -> str:
            return "(" + ",".join(map(str, values)) + ")"

        ins = ", ".join(
            f"{name}:{extent}={point(column)}" for (name, extent), column in zip(self.inputs, self.columns, strict=True)
        )
        outs = ", ".join(f"{name}%{modulus}" if modulus else name for name, modulus in self.outputs)
        constant = f" + {point(self.offset)}" if any(self.offset) else ""
        return f"Z[{ins}{' ' if ins else ''}->{' ' if outs else ''}{outs}]{constant}"


def span(row: Sequence[int], constant: int, extents: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest value of an affine form on a box, which must not be empty."""
    low = high = constant
    for a, extent in zip(row, extents, strict=True):
        if a > 0:
            high += a * (extent - 1)
        else:
            low += a * (extent - 1)
    return low, high


def grid(extents: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Return one coordinate array per axis that broadcast to the box with the fastest axis last."""
    count = len(extents)
    return [
        np.arange(extent, dtype=np.int64).reshape([-1 if k == count - 1 - place else 1 for k in range(count)])
        for place, extent in enumerate(extents)
    ]


def layout_or_refuse(value: object, argument: str = "layout") -> IntegerLayout:
    """Return an integer layout, or refuse any other value."""
    if not isinstance(value, IntegerLayout):
        raise malformed(argument, "must be an IntegerLayout", value, "LA724", _WHAT)
    return value
