"""Linear layouts: affine maps over F2 between products of named power-of-two axes.

Main definitions: ``LinearLayout``.

Notation: ``F2[lane=(1,0)(0,1) -> row:2, col:2] ^ (1,0)`` lists, per input axis, the image of each of its bits, low bit
first, with one component per output axis; then the output axes with their sizes; then the constant.

Implementation notes: a point of the codomain is one integer, the first output axis in the low bits; a point of the
domain likewise. The matrix is a tuple of such integers, one per input bit, so composing and inverting are integer xors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.f2.axes import (
    Axes,
    check_axes,
    fields,
    integer,
    log2,
    malformed,
    pack,
    pack_offset,
    pairs,
    unpack,
    width,
)
from layoutalg.ground import memory
from layoutalg.ground.cache import kept
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown

Bases: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
Coordinate: TypeAlias = "int | npt.NDArray[np.int64]"
PACKED_BITS = 63
SMALL_BITS = 64


def _elimination(columns: tuple[int, ...]) -> matrix.Elimination:
    """Return the elimination of the columns; recent ones are kept, of small matrices by number, of others by bytes."""
    if len(columns) <= SMALL_BITS and not (columns and max(columns) >> SMALL_BITS):
        return _small_elimination(columns)
    return _large_elimination(columns)


_small_elimination = lru_cache(maxsize=1024)(matrix.eliminate)
_large_elimination = kept()(matrix.eliminate)


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A map ``x -> M x xor c`` over F2 between products of named axes of power-of-two sizes.

    ``==`` is structural (axis names and order included); ``layoutalg.equivalent`` compares functions. Build one with
    ``from_bases``; the fields are the packed form.

    Args:
        inputs: Input axes (name, bits), minor to major.
        outputs: Output axes (name, bits), minor to major.
        columns: Image of each input bit under M, packed with the first output axis in the low bits.
        constant: The packed affine part c.

    Raises: MalformedError: LA200.

    Example:
        >>> swap = LinearLayout.from_bases({"i": [(2,), (1,)]}, {"offset": 4})
        >>> swap(i=1), (swap @ swap.inverse()).columns, str(swap)
        ({'offset': 2}, (1, 2), 'F2[i=(2)(1) -> offset:4]')

    Source: arXiv 2505.23819 (linear layouts); the affine part is an addition.
    """

    inputs: Axes
    outputs: Axes
    columns: tuple[int, ...]
    constant: int = 0

    def __post_init__(self) -> None:
        for argument, axes in (("inputs", self.inputs), ("outputs", self.outputs)):
            check_axes(axes, argument)
        if not isinstance(self.columns, tuple) or len(self.columns) != self.in_bits:
            raise malformed("columns", f"must be a tuple of {self.in_bits} integers, one per input bit", self.columns)
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
        """Return the layout given by the images of the input bits.

        Args:
            bases: Per input axis, minor to major, the images of its bits, low bit first; each image has one
                component per output axis. An axis with k images has size 2**k.
            out_dims: Size of each output axis, powers of two, minor to major.
            offset: The affine part, per output axis by name (absent axes are 0) or in order; None for zero.

        Raises: MalformedError: LA200.

        Example:
            >>> LinearLayout.from_bases({"i": [(1, 0), (0, 1)]}, {"row": 2, "col": 2}, {"row": 1}).table().tolist()
            [1, 0, 3, 2]
        """
        out_pairs = pairs(out_dims, "out_dims")
        outputs = tuple((name, log2(size, f"out_dims[{name!r}]")) for name, size in out_pairs)
        places = tuple(fields(outputs))
        inputs: list[tuple[str, int]] = []
        columns: list[int] = []
        for name, images in pairs(bases, "bases"):
            if isinstance(images, np.ndarray):
                images = images.tolist()
            if not isinstance(images, (tuple, list)):
                raise malformed(f"bases[{name!r}]", "must be a sequence of images, one per bit", images)
            inputs.append((name, width(len(images), f"bases[{name!r}]")))
            columns += [pack(image, places, f"bases[{name!r}]", bit) for bit, image in enumerate(images)]
        return _trusted(tuple(inputs), outputs, tuple(columns), pack_offset(offset, outputs))

    @classmethod
    def identity(cls, dims: Mapping[str, int] | Sequence[tuple[str, int]]) -> LinearLayout:
        """Return the identity on the axes ``dims`` (name -> size).

        Example:
            >>> str(LinearLayout.identity({"row": 2, "col": 2}))
            'F2[row=(1,0), col=(0,1) -> row:2, col:2]'
        """
        axes = tuple((name, log2(size, f"dims[{name!r}]")) for name, size in pairs(dims, "dims"))
        return cls(axes, axes, tuple(1 << bit for bit in range(sum(bits for _, bits in axes))))

    @property
    def in_bits(self) -> int:
        """Number of input bits."""
        return sum(bits for _, bits in self.inputs)

    @property
    def out_bits(self) -> int:
        """Number of output bits."""
        return sum(bits for _, bits in self.outputs)

    @property
    def size(self) -> int:
        """Number of points of the domain."""
        return 1 << self.in_bits

    @property
    def in_dims(self) -> dict[str, int]:
        """Input axes, minor to major: name -> size."""
        return {name: 1 << bits for name, bits in self.inputs}

    @property
    def out_dims(self) -> dict[str, int]:
        """Output axes, minor to major: name -> size."""
        return {name: 1 << bits for name, bits in self.outputs}

    @property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Per input axis the images of its bits under M, one component per output axis."""
        return {
            name: tuple(tuple(unpack(column, self.outputs).values()) for column in self.columns[low : low + bits])
            for name, low, bits in fields(self.inputs)
        }

    @property
    def offset(self) -> dict[str, int]:
        """The affine part per output axis: the value at the origin."""
        return unpack(self.constant, self.outputs)

    def apply(self, coords: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
        """Evaluate at one point or, vectorised, at arrays of points.

        Args:
            coords: Value of every input axis; integers or integer arrays that broadcast together.

        Returns:
            Value of every output axis: int where all inputs are ints, else an array (int64, or object for an output
            axis of more than 63 bits).

        Raises: MalformedError: LA204. BudgetError: LA002.

        Example:
            >>> L = LinearLayout.from_bases({"i": [(1,), (3,)]}, {"offset": 4})
            >>> L.apply({"i": np.arange(4)})["offset"].tolist()
            [0, 1, 3, 2]
        """
        if not isinstance(coords, Mapping):
            raise self._out_of_domain("coords must map axis names to coordinates", coords)
        if set(coords) != {name for name, _ in self.inputs}:
            raise self._out_of_domain(f"the axes are {[name for name, _ in self.inputs]}", list(coords))
        values = {name: self._checked(coords[name], name, bits) for name, bits in self.inputs}
        if all(isinstance(value, int) for value in values.values()):
            packed = sum(int(values[name]) << low for name, low, _ in fields(self.inputs))
            return dict(unpack(self.constant ^ matrix.apply(self.columns, packed), self.outputs))
        shapes = [np.shape(value) for value in values.values()]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            raise self._out_of_domain("the arrays of coords must broadcast together", shapes) from None
        memory.reserve("the values of a linear layout", prod(shape), 8 * (len(self.outputs) + 3))
        return {name: self._apply_axis(values, shape, low, bits) for name, low, bits in fields(self.outputs)}

    def _apply_axis(
        self, values: Mapping[str, Coordinate], shape: tuple[int, ...], low: int, bits: int
    ) -> npt.NDArray[np.int64]:
        """Return one output axis for arrays of inputs."""
        mask = (1 << bits) - 1
        answer = np.full(shape, self.constant >> low & mask, dtype=np.int64 if bits <= PACKED_BITS else object)
        for name, first, count in fields(self.inputs):
            for bit in range(count):
                part = self.columns[first + bit] >> low & mask
                if part:
                    # an in-place xor keeps the shape of ``answer``; the operand broadcasts
                    answer ^= (np.asarray(values[name]) >> bit & 1).astype(answer.dtype) * part
        return answer

    def _checked(self, value: object, name: str, bits: int) -> Coordinate:
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            if not 0 <= value < 1 << bits:
                raise self._out_of_domain(f"{name} must be in [0, {1 << bits})", int(value))
            return int(value)
        memory.reserve_items("the coordinates of a linear layout", value)
        try:
            array = np.asarray(value)
            if not array.size and isinstance(value, (tuple, list)):
                array = array.astype(np.int64)  # no entry says otherwise; numpy would make it float
        except (ValueError, OverflowError, MemoryError):  # ragged, or a range too long to write out
            raise self._out_of_domain(f"{name} must hold integers", value) from None
        exact = array.dtype.kind in "iu" or (
            array.dtype.kind == "O" and all(type(entry) is int for entry in array.flat)
        )
        if not exact:
            raise self._out_of_domain(f"{name} must hold integers", value)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= 1 << bits):
            worst = int(array.min()) if int(array.min()) < 0 else int(array.max())
            raise self._out_of_domain(f"{name} must be in [0, {1 << bits})", worst)
        # shifts on int64 are only meaningful below 64 bits, so wide axes keep Python integers
        return array.astype(np.int64 if bits <= PACKED_BITS else object)

    def _out_of_domain(self, rule: str, actual: object) -> MalformedError:
        return MalformedError(
            Diagnostic(
                code="LA204",
                what="the coordinate is not in the domain of the layout",
                where=(str(self),),
                because=f"{rule}, not {shown(actual)}",
                witness={"actual": actual},
            )
        )

    def __call__(self, /, **coords: int) -> dict[str, Coordinate]:
        """Evaluate at one point, axes by name; see ``apply``."""
        return self.apply(coords)

    def at(self, index: int) -> int:
        """Return the packed output at a flat input index (first input axis fastest, first output axis in the low bits).

        Example:
            >>> LinearLayout.identity({"row": 2, "col": 4}).at(5)
            5
        """
        number = integer(index, "index")
        if not 0 <= number < self.size:
            raise self._out_of_domain(f"a flat index must be in [0, {self.size})", number)
        return self.constant ^ matrix.apply(self.columns, number)

    def table(self) -> npt.NDArray[np.int64]:
        """Return the packed outputs over all flat inputs, int64 of length ``size``.

        Raises: BudgetError: LA211.

        Example:
            >>> LinearLayout.from_bases({"i": [(1, 0), (0, 1)]}, {"row": 4, "col": 2}).table().tolist()
            [0, 1, 4, 5]
        """
        return matrix.table(self.columns, self.constant)

    def __matmul__(self, inner: LinearLayout) -> LinearLayout:
        """Return ``self`` after ``inner``.

        The output axes of ``inner`` must be the input axes of ``self`` by name, in any order, none larger.

        Raises: AdmissibilityError: LA202.
        """
        if not isinstance(inner, LinearLayout):
            return NotImplemented
        if inner.outputs == self.inputs:
            constant = self.constant
            if inner.constant:
                constant ^= matrix.apply(self.columns, inner.constant)
            return _trusted(inner.inputs, self.outputs, matrix.multiply(self.columns, inner.columns), constant)
        needed, given = self.in_dims, inner.out_dims
        for name in (*needed, *given):
            if name not in needed or name not in given or given[name] > needed[name]:
                raise AdmissibilityError(
                    Diagnostic(
                        code="LA202",
                        what="the linear layouts do not compose",
                        where=(str(self), f"after {inner}"),
                        because=f"the inner layout leaves axes {given}, the outer one takes axes {needed}",
                        witness={"axis": name, "given": given.get(name), "taken": needed.get(name)},
                    )
                )
        placed = {name: low for name, low, _ in fields(self.inputs)}

        def move(value: int) -> int:
            return sum(part << placed[name] for name, part in unpack(value, inner.outputs).items())

        columns = tuple(move(column) for column in inner.columns)
        return LinearLayout(
            inner.inputs,
            self.outputs,
            matrix.multiply(self.columns, columns),
            self.constant ^ matrix.apply(self.columns, move(inner.constant)),
        )

    def __mul__(self, outer: LinearLayout) -> LinearLayout:
        """Return the direct sum, ``self`` in the low bits; see ``layoutalg.f2.direct_sum``."""
        if not isinstance(outer, LinearLayout):
            return NotImplemented
        from layoutalg.f2.build import direct_sum  # the module of the operation needs this one

        return direct_sum(self, outer)

    def then(self, outer: LinearLayout) -> LinearLayout:
        """Return ``outer`` after ``self``."""
        if not isinstance(outer, LinearLayout):
            raise malformed("outer", "must be a LinearLayout", outer)
        return outer @ self

    def inverse(self) -> LinearLayout:
        """Return the inverse map; input and output axes change places.

        Raises: AdmissibilityError: LA203.

        Example:
            >>> LinearLayout.from_bases({"i": [(3,), (1,)]}, {"o": 4}, (1,)).inverse().table().tolist()
            [2, 0, 1, 3]
        """
        reduced = _elimination(self.columns)
        if reduced.null:
            witness: dict[str, object] = {"kernel": unpack(reduced.null[0], self.inputs), "value": self.at(0)}
            raise self._singular(f"rank {reduced.rank} is less than the {self.in_bits} input bits", witness)
        if reduced.rank < self.out_bits:
            free = next(bit for bit in range(self.out_bits) if reduced.reduce(1 << bit)[0])
            missed = unpack(self.constant ^ 1 << free, self.outputs)
            raise self._singular(
                f"rank {reduced.rank} is less than the {self.out_bits} output bits", {"missed": missed}
            )
        columns = tuple([columns for _, columns in reduced.pivots])
        return _trusted(self.outputs, self.inputs, columns, matrix.apply(columns, self.constant))

    def __invert__(self) -> LinearLayout:
        """Return ``inverse()``."""
        return self.inverse()

    def _singular(self, because: str, witness: Mapping[str, object]) -> AdmissibilityError:
        return AdmissibilityError(
            Diagnostic(
                code="LA203",
                what="the linear layout is not invertible",
                where=(str(self),),
                because=because,
                witness=witness,
            )
        )

    @property
    def rank(self) -> int:
        """The dimension of the image of the linear part: the layout takes ``2**rank`` values."""
        return _elimination(self.columns).rank

    def kernel(self) -> tuple[dict[str, int], ...]:
        """Return a basis of the kernel of the linear part, as points of the domain.

        Example:
            >>> LinearLayout.from_bases({"i": [(1,), (1,)]}, {"o": 2}).kernel()
            ({'i': 3},)
        """
        return tuple(unpack(vector, self.inputs) for vector in _elimination(self.columns).null)

    def image(self) -> tuple[dict[str, int], ...]:
        """Return the reduced basis of the image of the linear part, as points of the codomain."""
        return tuple(unpack(vector, self.outputs) for vector, _ in _elimination(self.columns).pivots)

    @property
    def is_injective(self) -> bool:
        """No two inputs share an output."""
        return self.rank == self.in_bits

    @property
    def is_surjective(self) -> bool:
        """Every output is reached."""
        return self.rank == self.out_bits

    @property
    def is_invertible(self) -> bool:
        """Injective and surjective."""
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


_new, _set = object.__new__, object.__setattr__


def _trusted(inputs: Axes, outputs: Axes, columns: tuple[int, ...], constant: int) -> LinearLayout:
    """Return a layout whose fields are valid by construction, without checking them again."""
    layout = _new(LinearLayout)
    _set(layout, "inputs", inputs)
    _set(layout, "outputs", outputs)
    _set(layout, "columns", columns)
    _set(layout, "constant", constant)
    return layout
