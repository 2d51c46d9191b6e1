"""Piecewise quasi-affine layouts: total functions on a box of digits, held as ISL text.

Main definitions: ``PiecewiseLayout``.

Notation: ISL's, for example ``{ [c0, c1] -> [(4c0 + c1)] : 0 <= c0 <= 2 and 0 <= c1 <= 3 }``.

Implementation notes: the axes of the box are meant to be *digits* (the modes of a CuTe layout, single bits under a
swizzle): on digits ISL answers in well under a millisecond what takes it seconds on a flat index with floor and modulo.
Evaluation does not use ISL: the pieces are read once into plain numbers and evaluated with numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, limits, memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, MalformedError, shown
from layoutalg.ground.operators import then
from layoutalg.piecewise import isl
from layoutalg.piecewise.evaluate import SAFE, evaluate, integers, reach
from layoutalg.piecewise.notation import whole

Coordinate: TypeAlias = "int | npt.NDArray[np.int64]"
CHUNK = 2**18
OBJECT_BYTES = 48


@dataclass(frozen=True, slots=True)
class PiecewiseLayout:
    """A total function on the box of ``inputs``, piecewise quasi-affine (integer affine with floors).

    The flat index of a point of the box is colexicographic: the first axis is the fastest.

    Args:
        text: ISL map text without parameters, single-valued, defined exactly on a box from the origin; ``x div n`` and
            ``x // n`` may stand for ``floor(x/n)``. It is kept in canonical form, without the names of outputs.
        outputs: Names of the outputs; None takes them from the text, ``y0``, ``y1``, ... where it has none.

    Raises: MalformedError: LA220, LA221, LA780, LA782. BudgetError: LA222.

    Example:
        >>> L = PiecewiseLayout("{ [i, j] -> [offset = 10i + floor(j/2)] : 0 <= i < 2 and 0 <= j < 3 }")
        >>> L.inputs, L.outputs, L.table().tolist()
        ((('i', 2), ('j', 3)), ('offset',), [0, 10, 0, 10, 1, 11])

    Source: arXiv 2511.10374 (layouts as ISL relations); islpy for the algorithms.
    """

    text: str
    outputs: tuple[str, ...] | None = None
    inputs: tuple[tuple[str, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise _malformed("text", "must be ISL text", self.text)
        function = isl.read_function(whole(self.text, code="LA220"))
        names = function.outputs if self.outputs is None else self.outputs
        valid = isinstance(names, tuple) and all(isinstance(name, str) and name.isidentifier() for name in names)
        if not valid or len(set(names)) != len(function.outputs) or len(names) != len(function.outputs):
            raise _malformed("outputs", f"must be {len(function.outputs)} distinct identifiers", names)
        object.__setattr__(self, "text", function.text)
        object.__setattr__(self, "outputs", names)
        object.__setattr__(self, "inputs", function.inputs)

    @property
    def in_dims(self) -> dict[str, int]:
        """The domain box: axis name -> extent, fastest first."""
        return dict(self.inputs)

    @property
    def out_dims(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.outputs or ()

    @property
    def size(self) -> int:
        """Number of points of the domain."""
        answer = 1
        for _, extent in self.inputs:
            answer *= extent
        return answer

    def apply(self, coords: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
        """Evaluate at one point or, vectorised, at arrays of points.

        Args:
            coords: Value of every input axis; integers or integer arrays that broadcast together.

        Returns:
            Value of every output: int where all inputs are ints, else an array (object where 64 bits might not do).

        Raises: MalformedError: LA223.

        Example:
            >>> PiecewiseLayout("{ [i] -> [floor(i/3)] : 0 <= i < 7 }").apply({"i": 5})
            {'y0': 1}
        """
        if not isinstance(coords, Mapping) or set(coords) != set(self.in_dims):
            raise _malformed("coords", f"must map each of {list(self.in_dims)} to integers", coords)
        values = [_checked(coords[name], name, extent) for name, extent in self.inputs]
        scalar = all(isinstance(coords[name], (int, np.integer)) for name, _ in self.inputs)
        try:
            digits = np.broadcast_arrays(*values) if values else []
        except ValueError:
            raise _malformed("coords", "must have shapes that fit", [np.shape(value) for value in values]) from None
        answers = self._evaluate(digits)
        if scalar:
            return {name: int(answer.item()) for name, answer in zip(self.out_dims, answers, strict=True)}
        return dict(zip(self.out_dims, answers, strict=True))

    def __call__(self, **coords: int) -> dict[str, Coordinate]:
        """Evaluate at one point, axes by name; see ``apply``."""
        return self.apply(coords)

    def at(self, index: int) -> tuple[int, ...]:
        """Return the outputs at a flat index.

        Raises: MalformedError: LA223.
        """
        if isinstance(index, (bool, np.bool_)) or not isinstance(index, (int, np.integer)):
            raise _malformed("index", "must be an integer", index)
        if not 0 <= index < self.size:
            raise _malformed("index", f"must be in [0, {self.size})", index)
        index = int(index)
        coords = {}
        for name, extent in self.inputs:
            index, coords[name] = divmod(index, extent)
        return tuple(int(value) for value in self.apply(coords).values())

    def table(self) -> npt.NDArray[np.int64]:
        """Return the values over all flat indices: shape (size,) for one output, else (size, outputs).

        Raises: BudgetError: LA224, LA002.

        Example:
            >>> PiecewiseLayout("{ [i] -> [i, floor(i/2)] : 0 <= i < 3 }").table().tolist()
            [[0, 0], [1, 0], [2, 1]]
        """
        if self.size > limits.PIECEWISE_POINTS:
            raise BudgetError(
                Diagnostic(
                    code="LA224",
                    what="the table of this layout is too large",
                    where=(self.text[:200],),
                    because=f"{self.size} points; tables go up to {limits.PIECEWISE_POINTS}",
                )
            )
        width = len(self.out_dims)
        wide = reach(isl.pieces(self.text), [extent for _, extent in self.inputs]) >= SAFE
        memory.reserve(f"the table of {self.text[:200]}", self.size * width, OBJECT_BYTES if wide else 8)
        table = np.empty((self.size, width), dtype=object if wide else np.int64)
        for start in range(0, self.size, CHUNK):
            clock.check(f"the table of {self.text[:200]}")
            rest = np.arange(start, min(self.size, start + CHUNK), dtype=np.int64)
            digits = []
            for _, extent in self.inputs:
                rest, digit = np.divmod(rest, extent)
                digits.append(digit)
            for place, answer in enumerate(self._evaluate(digits)):
                table[start : start + CHUNK, place] = answer
        return table[:, 0] if width == 1 else table

    def is_equal(self, other: PiecewiseLayout) -> bool:
        """Return whether both are the same function on the same box; axis and output names do not matter.

        Raises: MalformedError: LA223. BudgetError: LA222.

        Example:
            >>> f = PiecewiseLayout("{ [i] -> [i - 2*floor(i/2)] : 0 <= i < 8 }")
            >>> f.is_equal(PiecewiseLayout("{ [x] -> [x mod 2] : 0 <= x < 8 }"))
            True
        """
        if not isinstance(other, PiecewiseLayout):
            raise _malformed("other", "must be a PiecewiseLayout", other)
        same_box = [extent for _, extent in self.inputs] == [extent for _, extent in other.inputs]
        if not same_box or len(self.out_dims) != len(other.out_dims):
            return False
        return isl.first_difference(self.text, other.text) is None

    def __matmul__(self, inner: PiecewiseLayout) -> PiecewiseLayout:
        """Return ``self`` after ``inner``, on the axes of ``inner``.

        Mathematically: the outputs of ``inner`` are the inputs of ``self``, in order; a single output that meets
        several inputs is their flat (colexicographic) index.

        Raises: AdmissibilityError: LA650, LA651. BudgetError: LA222.

        Example:
            >>> f = PiecewiseLayout("{ [r, c] -> [8r + c] : 0 <= r < 4 and 0 <= c < 8 }")
            >>> print(f @ PiecewiseLayout("{ [i] -> [4i + 1] : 0 <= i < 8 }"))
            { [i] -> [(8 + i)] : 0 <= i <= 7 }
        """
        if not isinstance(inner, PiecewiseLayout):
            return NotImplemented
        link = None
        if len(inner.out_dims) != len(self.inputs):
            if len(inner.out_dims) != 1:
                raise AdmissibilityError(
                    Diagnostic(
                        code="LA650",
                        what="the piecewise layouts do not compose",
                        where=(self.text[:200], f"after {inner.text[:200]}"),
                        because=f"{len(inner.out_dims)} outputs meet {len(self.inputs)} inputs",
                    )
                )
            link = flat_link([extent for _, extent in self.inputs])
        found = isl.pullback(self.text, link, inner.text)
        if not isinstance(found, str):
            point = dict(zip(inner.in_dims, found, strict=True))
            values = inner.apply(point)
            raise AdmissibilityError(
                Diagnostic(
                    code="LA651",
                    what="the right operand leaves the domain of the left operand",
                    where=(self.text[:200], f"after {inner.text[:200]}"),
                    because=f"the inner layout has the value {tuple(values.values())} at {point}, "
                    f"the outer one is defined on {self.in_dims}",
                    witness={"at": point, "value": tuple(values.values())},
                )
            )
        return PiecewiseLayout(found, self.outputs)

    def then(self, outer: PiecewiseLayout) -> PiecewiseLayout:
        """Return ``outer`` after ``self``.

        Raises: MalformedError: LA192.
        """
        return cast(PiecewiseLayout, then(self, outer))

    def __str__(self) -> str:
        return self.text

    def _evaluate(self, digits: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
        """Return the outputs for arrays of digits that are inside the box and share one shape."""
        shape = np.shape(digits[0]) if digits else ()
        pieces = isl.pieces(self.text)
        dtype = object if reach(pieces, [extent for _, extent in self.inputs]) >= SAFE else np.int64
        digits = [digit.astype(dtype) for digit in digits]
        answers, _ = evaluate(pieces, digits, shape, len(self.out_dims), dtype)
        return answers


def flat_link(extents: Sequence[int]) -> str:
    """Return the ISL map from a flat index to the digits of a box, the last digit not wrapped.

    Example:
        >>> flat_link((4, 8))
        '{ [v] -> [v mod 4, floor(v/4)] }'
    """
    parts = []
    weight = 1
    for position, extent in enumerate(extents):
        digit = f"floor(v/{weight})" if weight > 1 else "v"
        parts.append(digit if position == len(extents) - 1 else f"{digit} mod {extent}")
        weight *= extent
    return f"{{ [v] -> [{', '.join(parts)}] }}"


def _checked(value: object, name: str, extent: int) -> npt.NDArray[np.int64]:
    """Return a coordinate as an array, refused unless it holds integers in [0, extent)."""
    array = integers(value)
    if array is None:
        raise _malformed("coords", f"{name} must hold integers", value)
    if array.size and (int(array.min()) < 0 or int(array.max()) >= extent):
        worst = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise _malformed("coords", f"{name} must be in [0, {extent})", worst)
    return array.astype(np.int64 if extent <= SAFE else object)


def _malformed(argument: str, rule: str, actual: object) -> MalformedError:
    return MalformedError(
        Diagnostic(
            code="LA223",
            what="this does not fit a piecewise layout",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
            witness={"actual": actual if type(actual) is int else shown(actual)},
        )
    )
