"""Integer layouts: affine maps over Z or Z/m from boxes of any extents to named outputs.

Notation: ``Z[i:4=(6), j:6=(1) -> offset] + (3)`` lists the extent and the strides of each input axis, one stride per
output; then the outputs; then the constant if nonzero. ``bank%32`` is an output modulo 32. Axes are listed fastest
first: the flat index is colexicographic.

Implementation notes: Python integers everywhere; tables are int64 if all values fit, otherwise Python objects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import limits, memory
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Axes, Coordinate, checked_axes, coordinates, digits_of
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.layout import Layout
from layoutalg.ground.text import Grammar, Tokens
from layoutalg.integer.forms import Index, grid, index_by_strides, index_by_table, residue_form, span
from layoutalg.integer.matrix import Form, Matrix, Vector, as_matrix, transpose
from layoutalg.integer.matrix import check as check_matrix

# most entries of a table: of 64-bit integers, and of Python integers, which need several times the memory
TABLE_ENTRIES, WIDE_ENTRIES = 2**24, 2**21
_WIDE_BYTES = 48
_SAFE = 2**62
check = Checker("LA724", "this is not an integer layout")
check_argument = Checker("LA731", "the operation does not apply to the integer layout")
_check_point = Checker("LA726", "the coordinate is not in the domain of the layout")


def outputs_at(layout: IntegerLayout, point: Sequence[Any]) -> tuple[Any, ...]:
    """Return A x + b, with moduli, at a point of integers or of other numbers: laws pass symbols."""
    return tuple(
        [
            total % m if m else total
            for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True)
            for total in [b + sum([a * x for a, x in zip(row, point, strict=True)])]
        ]
    )


@dataclass(frozen=True, slots=True)
class IntegerLayout(Layout):
    """The map ``x -> A x + b`` on a box, each output over Z or modulo its own modulus.

    Mathematically: on prod [0, extent_i), output j is ``sum_i A[j][i] x_i + b[j]``, reduced to [0, m_j) if its modulus
    m_j is positive. ``==`` is structural; ``same_function`` compares functions.

    Args:
        inputs: Input axes (name, extent >= 0), fastest first.
        outputs: Outputs (name, modulus), modulus 0 for an output over Z.
        matrix: One row per output, one column per input. Rows with a modulus are stored reduced.
        offset: One integer per output, reduced likewise.

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

    title = "affine over Z on a box"

    def __post_init__(self) -> None:
        inputs = checked_axes(self.inputs, "inputs", check)
        outputs = checked_axes(self.outputs, "outputs", check)
        rows = as_matrix(self.matrix, "matrix", len(inputs))
        if len(rows) != len(outputs):
            raise check.malformed("matrix", f"must have {len(outputs)} rows, one per output", len(rows))
        offset = check.vector(self.offset, "offset", len(outputs))
        moduli = [modulus for _, modulus in outputs]
        numbers = [*[extent for _, extent in inputs], *moduli, *offset, *[a for row in rows for a in row]]
        longest = max(map(int.bit_length, numbers), default=0)
        if longest > limits.INTEGER_BITS:
            raise check.malformed("layout", f"must have numbers of at most {limits.INTEGER_BITS} bits", longest)
        bits = math.prod(extent for _, extent in inputs).bit_length()
        if bits > limits.POINTS_BITS:
            raise check.malformed("inputs", f"must have flat indices of at most {limits.POINTS_BITS} bits", bits)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "outputs", outputs)
        if any(moduli):
            rows = tuple([tuple([a % m for a in row]) if m else row for row, m in zip(rows, moduli, strict=True)])
            offset = tuple([b % m if m else b for b, m in zip(offset, moduli, strict=True)])
        object.__setattr__(self, "matrix", rows)
        object.__setattr__(self, "offset", offset)

    @classmethod
    def from_strides(
        cls,
        extents: Mapping[str, int] | Sequence[tuple[str, int]],
        strides: Sequence[int],
        offset: int = 0,
        output: str = "offset",
        modulus: int = 0,
    ) -> IntegerLayout:
        """Return the layout with the single output ``offset + sum of stride_i x_i``, in elements.

        Args:
            extents: Extent of each axis, fastest first.
            strides: One stride per axis; any sign.
            offset: Value at the origin.
            output: Name of the output.
            modulus: Modulus of the output; 0 for none.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (1, 3)).table().tolist()
            [0, 1, 2, 3, 4, 5]
        """
        inputs = checked_axes(extents, "extents", check)
        row = check_matrix.vector(strides, "strides")
        return cls(inputs, ((output, modulus),), (row,), (check.integer(offset, "offset"),))

    @classmethod
    def identity(cls, extents: Mapping[str, int] | Sequence[tuple[str, int]]) -> IntegerLayout:
        """Return the layout that maps each axis to the output of the same name.

        Example:
            >>> str(IntegerLayout.identity({"i": 3, "j": 2}))
            'Z[i:3=(1,0), j:2=(0,1) -> i, j]'
        """
        inputs = checked_axes(extents, "extents", check)
        places = range(len(inputs))
        rows = tuple(tuple(int(i == j) for j in places) for i in places)
        return cls(inputs, tuple((name, 0) for name, _ in inputs), rows, (0,) * len(inputs))

    @classmethod
    def pitched(
        cls, extents: Mapping[str, int] | Sequence[tuple[str, int]], pitches: Sequence[int], output: str = "offset"
    ) -> IntegerLayout:
        """Return the padded compact layout: axis k has stride ``pitches[0] * ... * pitches[k-1]``.

        Args:
            extents: Extent of each axis, fastest first.
            pitches: Allocated extent of each axis, at least its extent; the difference is padding.
            output: Name of the output.

        Example:
            >>> IntegerLayout.pitched({"i": 3, "j": 2}, (5, 2)).table().tolist()
            [0, 1, 2, 5, 6, 7]
        """
        inputs = checked_axes(extents, "extents", check)
        widths = check.vector(pitches, "pitches", len(inputs))
        for (name, extent), pitch in zip(inputs, widths, strict=True):
            check.integer(pitch, f"pitches[{name!r}]", max(extent, 1))
        return cls.from_strides(inputs, [math.prod(widths[:k]) for k in range(len(widths))], output=output)

    @property
    def in_dims(self) -> dict[str, int]:
        """The box: axis name -> extent, fastest first."""
        return dict(self.inputs)

    @property
    def out_dims(self) -> dict[str, int | None]:
        """Output name -> modulus, None for an output over Z."""
        return {name: modulus or None for name, modulus in self.outputs}

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
        return transpose(self.matrix, len(self.inputs))

    @property
    def forms(self) -> tuple[Form, ...]:
        """Each output as (row, constant, modulus), with modulus 0 if the residue does not wrap on the box.

        Strides of axes of extent 0 or 1 are 0.

        Example:
            >>> IntegerLayout.from_strides({"i": 4, "j": 1}, (7, 5), modulus=8).forms
            (((7, 0), 0, 8),)
            >>> IntegerLayout.from_strides({"i": 4, "j": 1}, (7, 5), 3, modulus=8).forms
            (((-1, 0), 3, 0),)
        """
        found, extents = [], self.extents
        short = any(extent < 2 for extent in extents)
        for row, b, m in zip(self.matrix, self.offset, self.moduli, strict=True):
            form = residue_form(row, b, m, extents) if m else None
            strides, constant, modulus = (row, b, m) if form is None else (*form, 0)
            if short:
                strides = tuple([a if extent > 1 else 0 for a, extent in zip(strides, extents, strict=True)])
            found.append((strides, constant, modulus))
        return tuple(found)

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the least and greatest value of each output before reduction by its modulus.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (-1, 4), 1).spans()
            ((-1, 5),)
        """
        return tuple([span(row, b, self.extents) for row, b in zip(self.matrix, self.offset, strict=True)])

    def at(self, index: int) -> int | Vector:
        """Return the value at a flat index: an int for one output, else a tuple.

        Example:
            >>> IntegerLayout.from_strides({"i": 3, "j": 2}, (10, 1)).at(5)
            21
        """
        value = self.value(self.coordinate(index))
        return value[0] if len(value) == 1 else value

    def coordinate(self, index: int) -> Vector:
        """Return the coordinates of a flat index, fastest axis first."""
        number = _check_point.integer(index, "index", 0, self.size)
        digits = []
        for extent in self.extents:
            number, digit = divmod(number, extent)
            digits.append(digit)
        return tuple(digits)

    def value(self, point: Sequence[int]) -> Vector:
        """Return the outputs at a point, one integer per axis, which may lie outside the box."""
        return outputs_at(self, _check_point.vector(point, "point", len(self.inputs)))

    def apply(self, coords: Any) -> Any:
        """Evaluate at many points.

        Args:
            coords: Flat indices, in an array of any shape; or a mapping of every axis to integers or arrays that
                broadcast together.

        Returns:
            For flat indices an array of values, with one more axis if there are several outputs; for a mapping the
            value of every output, as ints if all inputs are ints. int64, or Python integers if 64 bits might overflow.

        Example:
            >>> L = IntegerLayout.from_strides({"i": 3, "j": 2}, (10, 1))
            >>> L.apply({"i": np.arange(3), "j": 1})["offset"].tolist(), L.apply([[0, 5]]).tolist()
            ([1, 11, 21], [[0, 21]])
        """
        if isinstance(coords, Mapping):
            values, shape = coordinates(self.inputs, coords, _check_point)
            if shape is None:
                return dict(zip(self.out_dims, self.value([int(value) for value in values]), strict=True))
            memory.reserve(f"values of {self}", math.prod(shape), self.bytes_per_point)
            return dict(zip(self.out_dims, self._arrays(values, shape), strict=True))
        index = _check_point.coordinate(coords, "coords", self.size)
        if isinstance(index, int):
            return self.at(index)
        memory.reserve(f"values of {self}", index.size, self.bytes_per_point)
        answers = self._arrays(digits_of(self.inputs, index), index.shape)
        if len(answers) == 1:
            return answers[0]
        return np.stack(answers, axis=-1) if answers else np.empty((*index.shape, 0), np.int64)

    def __call__(self, /, **coords: Any) -> Any:
        """Return the value of every output at one point, axes by name."""
        return self.apply(coords)

    def _arrays(self, values: Sequence[Coordinate], shape: tuple[int, ...]) -> list[npt.NDArray[Any]]:
        """Return each output at coordinates inside the box, one array per axis, that broadcast to a shape."""
        answers = []
        for row, b, m in zip(self.matrix, self.offset, self.moduli, strict=True):
            kind = object if self._is_wide(row, b, m) else np.int64
            total: npt.NDArray[Any] = np.full(shape, b, dtype=kind)
            for a, x, extent in zip(row, values, self.extents, strict=True):
                # the stride of an axis of extent 1 is irrelevant: its coordinate is 0
                if a and extent > 1:
                    total += np.asarray(x).astype(kind) * a
            # numpy turns 0-d object arrays into plain numbers
            answers.append(np.asarray(total % m, dtype=kind) if m else total)
        return answers

    def _is_wide(self, row: Vector, b: int, m: int) -> bool:
        """Return whether an output or a partial sum might overflow 64 bits."""
        bound = abs(b) + sum(abs(a) * max(extent - 1, 0) for a, extent in zip(row, self.extents, strict=True))
        return max(bound, m) >= _SAFE

    @property
    def bytes_per_point(self) -> int:
        """Bytes per point for the values, and as much again for temporaries."""
        rows = zip(self.matrix, self.offset, self.moduli, strict=True)
        return sum(2 * (_WIDE_BYTES if self._is_wide(*row) else 8) for row in rows)

    @property
    def table_limit(self) -> int:
        """Most points that ``table`` lists for this number of outputs and size of values."""
        rows = zip(self.matrix, self.offset, self.moduli, strict=True)
        entries = WIDE_ENTRIES if any(self._is_wide(*row) for row in rows) else TABLE_ENTRIES
        return entries // max(1, len(self.outputs))

    def table(self) -> npt.NDArray[Any]:
        """Return the outputs at all flat indices: one-dimensional for one output, else one column per output.

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
                    because=f"{self.size} points with {len(self.outputs)} outputs; the limit is {limit}",
                    witness={"points": self.size, "outputs": len(self.outputs), "limit": limit},
                )
            )
        # if one axis is empty, another may be too long to list
        extents = self.extents if self.size else (0,) * len(self.extents)
        answers = [answer.reshape(-1) for answer in self._arrays(grid(extents), extents[::-1])]
        if len(answers) == 1:
            return answers[0]
        return np.stack(answers, axis=-1) if answers else np.empty((self.size, 0), np.int64)

    def inverse(self) -> IntegerLayout:
        """Return the inverse of a bijection onto 0, ..., size - 1, from the value to the flat index.

        The value is given by its digits along the strides, ``offset0, offset1, ...``, or by ``offset`` if it has only
        one. Use ``right_inverse`` or ``image_inverse`` for other layouts.

        Example:
            >>> f = IntegerLayout.from_strides({"i": 4, "j": 6}, (6, -1), 5)
            >>> str(f.inverse()), [f.inverse().at(f.at(i)) for i in range(4)]
            ('Z[offset0:6=(-4), offset1:4=(1) -> index] + (20)', [0, 1, 2, 3])
        """
        what, where = f"the values of the layout are not 0, ..., {self.size - 1}, each once", (str(self),)
        if len(self.outputs) != 1:
            because = f"it has {len(self.outputs)} outputs; a flat index is one number"
            raise AdmissibilityError(Diagnostic("LA746", what, where, because))
        name, (row, constant, wrap) = self.outputs[0][0], self.forms[0]
        found = index_by_table(self.table(), wrap) if wrap else index_by_strides(row, constant, self.extents)
        if found is None:
            because = f"the index is not affine in the digits of the value, not even modulo {self.size} or {wrap}"
            because += "; integer.image_inverse returns the inverse in pieces"
            raise RepresentabilityError(Diagnostic("LA747", "the inverse is not an integer layout", where, because))
        if isinstance(found, Index):
            names = [name] if len(found.modes) == 1 else [f"{name}{k}" for k in range(len(found.modes))]
            inputs = tuple((digit, extent) for digit, (extent, _) in zip(names, found.modes, strict=True))
            strides = tuple(stride for _, stride in found.modes)
            return IntegerLayout(inputs, (("index", found.modulus),), (strides,), (found.start,))
        if isinstance(found, int):
            because = f"it has the negative value {found}" if found < 0 else f"no coordinate has the value {found}"
            witness: dict[str, object] = {"value" if found < 0 else "missed": found}
        else:
            because = "two coordinates share a value"
            points = [dict(zip(self.in_dims, self.coordinate(index), strict=True)) for index in found]
            witness = {"first": points[0], "second": points[1], "value": self.at(found[0])}
        raise AdmissibilityError(Diagnostic("LA746", what, where, because, witness))

    def __str__(self) -> str:
        def point(values: Sequence[int]) -> str:
            return "(" + ",".join(map(str, values)) + ")"

        axes = zip(self.inputs, self.columns, strict=True)
        ins = ", ".join([f"{name}:{extent}={point(column)}" for (name, extent), column in axes])
        outs = ", ".join(f"{name}%{modulus}" if modulus else name for name, modulus in self.outputs)
        constant = f" + {point(self.offset)}" if any(self.offset) else ""
        return f"Z[{ins}{' ' if ins else ''}->{' ' if outs else ''}{outs}]{constant}"


def layout_or_refuse(value: object, argument: str = "layout") -> IntegerLayout:
    """Return an integer layout; raise on any other value."""
    return check.kind(value, IntegerLayout, argument)


_GRAMMAR = Grammar(
    ("[", "]", "(", ")", ",", ":", "=", "+", "%", "->"), True, "LA725", "this is not the text of an integer layout"
)


def parse_integer(text: str) -> IntegerLayout:
    """Parse the text form of an integer layout; ``parse_integer(str(L)) == L``.

    Example:
        >>> parse_integer("Z[i:4=(6), j:3=(-1) -> offset%7] + (2)").table().tolist()
        [2, 1, 0, 6, 1, 0, 6, 5, 0, 6, 5, 4]
    """
    tokens = Tokens(text, _GRAMMAR)
    if tokens.take("name", "Z") != "Z":
        tokens.fail("Z", tokens.items[0][2])
    tokens.take("[", "[")
    inputs: list[tuple[str, int]] = []
    columns: list[tuple[int, ...]] = []
    while not tokens.accept("->"):
        if inputs:
            tokens.take(",", ", or ->")
        name = tokens.take("name", "an input axis or ->")
        tokens.take(":", ":")
        extent = int(tokens.take("number", "an extent"))
        tokens.take("=", "=")
        inputs.append((name, extent))
        columns.append(tokens.point())
    outputs: list[tuple[str, int]] = []
    while not tokens.accept("]"):
        if outputs:
            tokens.take(",", ", or ]")
        name = tokens.take("name", "an output or ]")
        outputs.append((name, int(tokens.take("number", "a modulus")) if tokens.accept("%") else 0))
    offset = tokens.point() if tokens.accept("+") else (0,) * len(outputs)
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.items[tokens.next][2])
    for (name, _), column in zip(inputs, columns, strict=True):
        if len(column) != len(outputs):
            tokens.fail(f"{len(outputs)} strides for the axis {name}, one per output", 0)
    return IntegerLayout(tuple(inputs), tuple(outputs), transpose(tuple(columns), len(outputs)), offset)
