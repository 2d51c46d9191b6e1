"""Piecewise quasi-affine layouts: functions of integer points, with optional symbolic parameters.

Notation: ISL's; then the names of the outputs, unless these are ``y0, y1, ...``; then the constraints on parameters:
``[N] -> { [i, j] -> [(12i + j)] : 0 <= i < N and 0 <= j <= 11 } as offset given [N] -> { : N > 0 }``.

Implementation notes: a layout is its canonical text and, read from it once, its pieces as plain numbers, which numpy
evaluates; ISL's own objects stay in the thread that made them (``budget``). The axes should be *digits* (the modes of a
CuTe layout, single bits under a swizzle): on digits ISL answers in well under a millisecond, on a flat index with floor
and modulo it takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, limits, memory
from layoutalg.ground import digits as named
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, MalformedError, shown
from layoutalg.ground.layout import Layout, composes
from layoutalg.piecewise import operations, reading, sympy_form
from layoutalg.piecewise.inverse import digits_inverse, turned
from layoutalg.piecewise.notation import malformed, split_names
from layoutalg.piecewise.pieces import SAFE, evaluated
from layoutalg.piecewise.points import Numbers, check, checked_values, constants, point_arrays
from layoutalg.piecewise.sets import PointSet
from layoutalg.piecewise.value import TextOfValue, Value

CHUNK = 2**18
OBJECT_BYTES = 48


@dataclass(frozen=True, slots=True)
class PiecewiseLayout(TextOfValue, Layout):
    """A partial function from integer points to integer points, piecewise quasi-affine (integer affine with floors).

    It is *total* if it has no parameters and its domain is a box from the origin; then it has ``in_dims``, ``size``,
    ``at`` and ``table``, over flat indices with the first axis fastest.

    Args:
        text: ISL map text; its guards are the domain. ``x div n`` and ``x // n`` are accepted for ``floor(x/n)``.
            Pieces may overlap only if they agree. Stored in canonical form, without the names of outputs.
        outputs: Names of the outputs; () uses those in the text, or ``y0``, ``y1``, ... if it has none.
        given: Constraints on the parameters, such as ``"N >= 1"``; the layout is undefined where they fail.

    Example:
        >>> L = PiecewiseLayout("{ [i, j] -> [offset = 10i + floor(j/2)] : 0 <= i < 2 and 0 <= j < 3 }")
        >>> L.in_dims, L.out_dims, L.table().tolist()
        ({'i': 2, 'j': 3}, {'offset': None}, [0, 10, 0, 10, 1, 11])
        >>> T = PiecewiseLayout("[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }")
        >>> T.params, T.axes, T.is_total, T(i=50, j=3, N=60)
        (('N',), ('i', 'j'), False, {'y0': 4, 'y1': 2, 'y2': 3})

    Source: arXiv 2511.10374 (layouts as ISL relations); islpy for the algorithms.
    """

    text: str
    outputs: tuple[str, ...] = ()
    given: str = ""
    params: tuple[str, ...] = field(init=False, repr=False, compare=False)
    axes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    value: Value = field(init=False, repr=False, compare=False)
    title = "piecewise quasi-affine"

    def __post_init__(self) -> None:
        found, given = reading.read_function(self.text, self.given)
        names = self.outputs or found.outputs if isinstance(self.outputs, tuple) else self.outputs
        valid = isinstance(names, tuple) and all(isinstance(name, str) and name.isidentifier() for name in names)
        if not valid or len(set(names)) != len(found.outputs) or len(names) != len(found.outputs):
            because = f"outputs must be {len(found.outputs)} distinct identifiers, not {shown(names)}"
            raise malformed("LA785", "these output names are invalid", found.text, because)
        object.__delattr__(self, "text")  # from now on the canonical one
        self._take(found, names, given)

    def _take(self, value: Value, outputs: tuple[str, ...], given: str) -> PiecewiseLayout:
        fields = {"outputs": outputs, "given": given, "params": value.params, "axes": value.axes, "value": value}
        for name, entry in fields.items():
            object.__setattr__(self, name, entry)
        return self

    @classmethod
    def of(cls, value: Value, outputs: tuple[str, ...] = ()) -> PiecewiseLayout:
        """Return the layout of a function that ISL answered."""
        return cls.__new__(cls)._take(value, outputs or value.outputs, "")

    def __reduce__(self) -> tuple[type[PiecewiseLayout], tuple[object, ...]]:
        return PiecewiseLayout, (self.text, self.outputs, self.given)

    def __str__(self) -> str:
        # the text of an empty function names its outputs
        usual = () if not self.value.pieces else tuple(f"y{place}" for place in range(len(self.outputs)))
        names = "" if self.outputs == usual else f" as {', '.join(self.outputs)}"
        return f"{self.text}{names}{f' given {self.given}' if self.given else ''}"

    @classmethod
    def parse(cls, text: str) -> PiecewiseLayout:
        """Parse the output of ``str``.

        Example:
            >>> L = PiecewiseLayout("[N] -> { [i] -> [v = 2i] : 0 <= i < N }", given="N >= 4")
            >>> print(L)
            [N] -> { [i] -> [(2i)] : N >= 4 and 0 <= i < N } as v given [N] -> {  : N >= 4 }
            >>> PiecewiseLayout.parse(str(L)) == L
            True
        """
        body, names, given = split_names(text)
        return cls(body, names, given)

    @property
    def is_total(self) -> bool:
        """Whether the layout has no parameters and its domain is a box from the origin."""
        return isinstance(operations.extents(self.value), tuple)

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Axes and extents of a total layout."""
        found = operations.extents(self.value)
        if isinstance(found, operations.NotABox):
            because = f"{found.because}; .domain is where it is defined, .subs(...) fixes parameters"
            raise MalformedError(
                Diagnostic("LA221", "this layout is not total on a box", (self.text[:200],), because, found.witness)
            )
        return tuple(zip(self.axes, found, strict=True))

    @property
    def in_dims(self) -> dict[str, int]:
        """The box of a total layout: axis name -> extent, fastest first."""
        return dict(self.inputs)

    @property
    def out_dims(self) -> dict[str, int | None]:
        """Output name -> None: outputs have no bounds."""
        return dict.fromkeys(self.outputs)

    @property
    def size(self) -> int:
        """Number of points of a total layout; use ``domain.count`` for a partial one."""
        return named.size(self.inputs)

    def __call__(self, **values: int) -> dict[str, Numbers]:
        """Evaluate at one point, axes and parameters by name; see ``apply``."""
        coords = {name: value for name, value in values.items() if name in self.axes}
        for name, value in coords.items():
            if isinstance(value, (tuple, list)) or np.ndim(value):
                raise check.malformed(name, "must be one integer", value)
        params = {name: value for name, value in values.items() if name not in self.axes}
        answers: dict[str, Numbers] = self.apply(coords, **params)
        return answers

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return output -> sympy expression of axes and parameters, nan where the layout is undefined.

        Args:
            symbols: sympy symbols by name; missing ones become integer symbols.

        Example:
            >>> PiecewiseLayout("[N] -> { [i] -> [floor(i/3) + N] : 0 <= i < N }").to_sympy()
            {'y0': Piecewise((N + floor(i/3), (i >= 0) & (N - i - 1 >= 0)), (nan, True))}
        """
        found = sympy_form.pieces(self.value, sympy_form.symbols_of((*self.params, *self.axes), symbols))
        columns = [[(values[place], guard) for values, guard in found] for place in range(len(self.outputs))]
        return {name: sympy_form.piecewise(column) for name, column in zip(self.outputs, columns, strict=True)}

    def at(self, index: int) -> int | tuple[int, ...]:
        """Return the value of a total layout at a flat index: an int for one output, else a tuple.

        Example:
            >>> PiecewiseLayout("{ [i, j] -> [10i + j] : 0 <= i < 3 and 0 <= j < 4 }").at(4)
            11
        """
        inputs = self.inputs
        point = named.point_at(inputs, check.integer(index, "index", 0, named.size(inputs)))
        digits = [np.array(value, dtype=np.int64 if value < SAFE else object) for value in point.values()]
        answers, _ = evaluated(self.value, {}, digits, (), everywhere=True)
        values = tuple([int(answer) for answer in answers])
        return values[0] if len(values) == 1 else values

    def apply(self, coords: Any, **values: int) -> Any:
        """Evaluate at many points.

        Args:
            coords: Value of every axis, integers or integer arrays that broadcast together; or, for a total layout, an
                array of flat indices.
            values: Value of every parameter.

        Returns:
            Value of every output: int if all inputs are ints, else an array (of Python integers if 64 bits might
            overflow). For flat indices, an array of their shape, with one more axis unless there is one output.

        Example:
            >>> f = PiecewiseLayout("{ [i] -> [floor(i/3)] : 0 <= i < 7 }")
            >>> f.apply({"i": 5}), f.apply(np.array([0, 6])).tolist()
            ({'y0': 1}, [0, 2])
        """
        if not isinstance(coords, Mapping) and not self.params and not values:
            inputs = self.inputs
            flat = np.asarray(check.coordinate(coords, "coords", named.size(inputs)))
            digits = named.digits_of(inputs, flat)
            whole, _ = evaluated(self.value, {}, digits, flat.shape, everywhere=True)
            return whole[0] if len(whole) == 1 else np.stack(whole, -1) if whole else np.empty((*flat.shape, 0), int)
        answers = self._values(coords, values)
        if all(isinstance(coords[name], (int, np.integer)) for name in self.axes):
            return {name: int(answer.item()) for name, answer in zip(self.outputs, answers, strict=True)}
        return dict(zip(self.outputs, answers, strict=True))

    def contains(self, coords: Mapping[str, Numbers], **values: int) -> npt.NDArray[np.bool_]:
        """Return at which points the layout is defined, vectorised; see ``apply``."""
        return self._evaluate(coords, values)[1]

    def table(self) -> npt.NDArray[np.int64]:
        """Return the values of a total layout at all flat indices: shape (size,) for one output, else (size, outputs).

        Example:
            >>> PiecewiseLayout("{ [i] -> [i, floor(i/2)] : 0 <= i < 3 }").table().tolist()
            [[0, 0], [1, 0], [2, 1]]
        """
        inputs, size = self.inputs, self.size
        if size > limits.PIECEWISE_POINTS:
            because = f"{size} points; tables go up to {limits.PIECEWISE_POINTS}"
            raise BudgetError(Diagnostic("LA224", "the table of this layout is too large", (self.text[:200],), because))

        def digits(start: int, stop: int) -> list[npt.NDArray[np.int64]]:
            return named.digits_of(inputs, np.arange(start, stop, dtype=np.int64))

        table = self._listed(digits, size, {})
        return table[:, 0] if len(self.outputs) == 1 else table

    def graph(self, **values: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the points of the domain in lexicographic order, and their values.

        Args:
            values: Value of every parameter.

        Returns:
            Arrays of shapes (points, axes) and (points, outputs).

        Example:
            >>> points, image = PiecewiseLayout("[N] -> { [i] -> [i, 2i] : 0 <= i < N }").graph(N=2)
            >>> points.tolist(), image.tolist()
            ([[0], [1]], [[0, 0], [1, 2]])
        """
        domain, known = self.domain, self._known(values)
        points = domain.points(**{name: value for name, value in known.items() if name in domain.params})
        return points, self._listed(lambda start, stop: [*points[start:stop].T], len(points), values)

    def subs(self, **values: int) -> PiecewiseLayout:
        """Return the layout with values substituted for some parameters.

        Example:
            >>> print(PiecewiseLayout("[N] -> { [i] -> [N - 1 - i] : 0 <= i < N }").subs(N=5))
            { [i] -> [(4 - i)] : 0 <= i <= 4 }
        """
        known = checked_values(values, self.params, self)
        if not self.given:
            return PiecewiseLayout.of(operations.substitute(self.value, known), self.outputs)
        allowed = operations.substitute(reading.read_set(self.given), known)
        if operations.sample(allowed) is None:
            raise self._outside(known)
        return PiecewiseLayout(operations.substitute(self.value, known).text, self.outputs, _conditions(allowed))

    def inverse(self) -> PiecewiseLayout:
        """Return the inverse of a bijection onto 0, ..., size - 1, from value to flat index.

        ``image_inverse`` inverts any injective layout, ``right_inverse`` any layout.

        Example:
            >>> print(PiecewiseLayout("{ [i, j] -> [3i + j] : 0 <= i < 2 and 0 <= j < 3 }").inverse())
            { [y0] -> [(2y0 - 5*floor((y0)/3))] : 0 <= y0 <= 5 } as index
        """
        inputs = self.inputs
        if len(self.outputs) != 1:
            raise self._no_inverse(f"it has {len(self.outputs)} outputs; a flat index is one number", {})
        back = self.image_inverse()
        size, name = named.size(inputs), back.axes[0]
        if operations.extents(back.value) != (size,):
            missed = PointSet(f"{{ [{name}] : 0 <= {name} < {size} }}").subtract(self.image).sample() or {}
            raise self._no_inverse(f"no point has the value {missed.get(name)}", {"missed": missed.get(name)})
        weights = [named.size(inputs[:place]) for place in range(len(inputs))]
        terms = " + ".join(["0", *(f"{w}*{axis}" for w, axis in zip(weights, self.axes, strict=True))])
        return PiecewiseLayout(f"{{ [{', '.join(self.axes)}] -> [{terms}] }}", ("index",)).after(back)

    @property
    def domain(self) -> PointSet:
        """The points where the layout is defined."""
        return PointSet.of(operations.domain(self.value))

    @property
    def image(self) -> PointSet:
        """The set of values."""
        return PointSet.of(operations.image(self.value))

    def after(self, inner: PiecewiseLayout) -> PiecewiseLayout:
        """Return ``self`` after ``inner`` on the points of ``inner`` whose value is in the domain of ``self``.

        Outputs match axes by position; a single output is read as the flat index of a total layout with several axes or
        none. ``self @ inner`` raises on a value outside the domain instead.

        Example:
            >>> f = PiecewiseLayout("{ [x] -> [x + 1] : x < 4 }")
            >>> print(f.after(PiecewiseLayout("{ [i] -> [2i] : 0 <= i < 9 }")))
            { [i] -> [(1 + 2i)] : 0 <= i <= 1 }
        """
        check.kind(inner, PiecewiseLayout, "inner")
        link = operations.link(self.value, inner.value)
        return self.made_with(inner, operations.after(self.value, link, inner.value))

    def restrict(self, points: PointSet | str) -> PiecewiseLayout:
        """Return the layout restricted to the points of a set."""
        return self._made(operations.restrict(self.value, self._set(points).value))

    def without(self, points: PointSet | str) -> PiecewiseLayout:
        """Return the layout restricted to the points outside a set."""
        return self._made(operations.restrict(self.value, self._set(points).value, outside=True))

    def union(self, other: PiecewiseLayout) -> PiecewiseLayout:
        """Return the layout defined where either is; they must agree where both are.

        Example:
            >>> low = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")
            >>> low.union(PiecewiseLayout("{ [i] -> [2i] : 4 <= i < 6 }")).table().tolist()
            [0, 1, 2, 3, 8, 10]
        """
        return self.made_with(other, operations.union(self.value, self._alike(other).value))

    def intersect(self, other: PiecewiseLayout) -> PiecewiseLayout:
        """Return the layout restricted to the points where both are defined and agree."""
        return self.made_with(other, operations.intersect(self.value, self._alike(other).value))

    def collision(self) -> dict[str, object] | None:
        """Return two points with the same value (parameters, points, value), or None if the layout is injective."""
        return operations.collision(self.value)

    def injective(self) -> bool:
        """Return whether no two points have the same value, for all parameters."""
        return self.collision() is None

    def image_inverse(self) -> PiecewiseLayout:
        """Return the inverse, defined exactly on the image.

        Example:
            >>> f = PiecewiseLayout("[N] -> { [i] -> [i div 12, i mod 12] : 0 <= i < N }")
            >>> f.image_inverse()(y0=4, y1=2, N=60)
            {'i': 50}
        """
        names = self._out_axes()
        back = digits_inverse(self.value, names) or turned(self.value, names, False)
        if back is None:
            found = self.collision() or {}
            raise self._no_inverse(f"two points have the value {found.get('value')}", found)
        return self._made(back, self.axes)

    def right_inverse(self) -> PiecewiseLayout:
        """Return the function from each value to its lexicographically least preimage.

        Example:
            >>> PiecewiseLayout("{ [i] -> [i div 3] : 0 <= i < 9 }").right_inverse().table().tolist()
            [0, 3, 6]
        """
        names = self._out_axes()
        back = digits_inverse(self.value, names) or turned(self.value, names, True)
        return self._made(back, self.axes) if back is not None else self.image_inverse()

    def holes(self, box: PointSet | str) -> PointSet:
        """Return the values of a box that the layout never takes, such as padding.

        Example:
            >>> f = PiecewiseLayout("[N] -> { [i] -> [i div 4, i mod 4] : 0 <= i < N }")
            >>> f.holes("[N] -> { [t, r] : 0 <= t and 4t < N and 0 <= r < 4 }").points(N=6).tolist()
            [[1, 2], [1, 3]]
        """
        return PointSet.of(box).subtract(self.image)

    def difference(self, other: PiecewiseLayout) -> dict[str, object] | None:
        """Return parameter values and a point where only one is defined or the values differ; None if equal."""
        found = operations.difference(self.value, self._alike(other).value)
        return None if found is None else {**found[0], **dict(zip(self.axes, found[1], strict=True))}

    def is_equal(self, other: PiecewiseLayout) -> bool:
        """Return whether both are the same partial function for all parameter values; names are ignored.

        Example:
            >>> f = PiecewiseLayout("{ [i] -> [i - 2*floor(i/2)] : 0 <= i < 8 }")
            >>> f.is_equal(PiecewiseLayout("{ [x] -> [x mod 2] : 0 <= x < 8 }"))
            True
        """
        check.kind(other, PiecewiseLayout, "other")
        alike = (len(self.axes), len(self.outputs)) == (len(other.axes), len(other.outputs))
        return alike and self.difference(other) is None

    def _known(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return checked values of all parameters; raise if they violate the given constraints."""
        known = checked_values(values, self.params, self, complete=True)
        if self.given and constants(reading.read_set(self.given), known) is None:
            raise self._outside(known)
        return known

    def _outside(self, known: Mapping[str, int]) -> MalformedError:
        because = f"{known} violates {self.given}"
        return malformed("LA787", "the parameter values violate the constraints", self.text, because, dict(known))

    def _evaluate(
        self, coords: Mapping[str, Numbers], values: Mapping[str, int]
    ) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
        arrays, shape = point_arrays(coords, self.axes, self)
        return evaluated(self.value, self._known(values), arrays, shape)

    def _values(self, coords: Mapping[str, Numbers], values: Mapping[str, int]) -> list[npt.NDArray[np.int64]]:
        """Return the outputs; raise if the layout is undefined at a point."""
        answers, covered = self._evaluate(coords, values)
        if not covered.all():
            at = np.unravel_index(int(np.argmin(covered)), covered.shape)
            arrays, _ = point_arrays(coords, self.axes, self)
            here = {name: int(array[at]) for name, array in zip(self.axes, arrays, strict=True)}
            point: dict[str, object] = {**values, **here}
            because = f"the layout is undefined at {shown(point)}"
            raise malformed("LA788", "a point is outside the guards", self.text, because, point)
        return answers

    def _listed(
        self, points: Callable[[int, int], list[npt.NDArray[np.int64]]], count: int, values: Mapping[str, int]
    ) -> npt.NDArray[np.int64]:
        """Return the values at ``count`` points of the domain, one row each, in chunks ``points(start, stop)``."""
        what, width, known = "the table of a piecewise layout", len(self.outputs), self._known(values)
        memory.reserve(what, count * (width + len(self.axes)), 8)
        table = np.empty((count, width), dtype=np.int64)
        for start in range(0, count, CHUNK):
            clock.check(what)
            stop = min(count, start + CHUNK)
            answers, _ = evaluated(self.value, known, points(start, stop), (stop - start,), everywhere=True)
            if table.dtype != object and any(answer.dtype == object for answer in answers):
                memory.reserve(what, count * width, OBJECT_BYTES)
                table = table.astype(object)
            for place, answer in enumerate(answers):
                table[start:stop, place] = answer
        return table

    def _no_inverse(self, because: str, witness: dict[str, object]) -> AdmissibilityError:
        return AdmissibilityError(
            Diagnostic("LA792", "this layout has no inverse", (self.text[:200],), because, witness)
        )

    def _out_axes(self) -> list[str]:
        """Return axis names made from the output names, distinct from parameters and axes."""
        taken = {*self.params, *self.axes}  # a name used twice in ISL text means equality
        names: list[str] = []
        for name in self.outputs:
            while name in taken:
                name += "_out"
            taken.add(name)
            names.append(name)
        return names

    def _made(self, value: Value, outputs: tuple[str, ...] | None = None) -> PiecewiseLayout:
        """Return the layout of a function within this one's constraints; outputs default to those of this one."""
        names = self.outputs if outputs is None else outputs
        # with constraints through text, whose form the constraints simplify
        return PiecewiseLayout(value.text, names, self.given) if self.given else PiecewiseLayout.of(value, names)

    def made_with(self, other: PiecewiseLayout, value: Value) -> PiecewiseLayout:
        """Return the layout of a function of this layout and another, with the output names of this one."""
        if not self.given and not other.given:
            return self._made(value)
        given = self.given or other.given
        if self.given and other.given:
            given = _conditions(
                operations.combined_sets("intersect", reading.read_set(given), reading.read_set(other.given))
            )
        return PiecewiseLayout(value.text, self.outputs, given)

    def _alike(self, other: PiecewiseLayout) -> PiecewiseLayout:
        same = isinstance(other, PiecewiseLayout) and len(self.axes) == len(other.axes)
        if not same or len(self.outputs) != len(other.outputs):
            because = f"the layout has {len(self.axes)} axes and {len(self.outputs)} outputs"
            raise malformed("LA785", "the layouts have different axes", other, because)
        return other

    def _set(self, points: PointSet | str) -> PointSet:
        chosen = PointSet.of(points)
        if len(chosen.axes) != len(self.axes):
            because = f"the layout has the axes {list(self.axes)}"
            raise malformed("LA785", "the set has different axes", chosen.text, because)
        return chosen


def _conditions(allowed: Value) -> str:
    """Return a set without axes as constraints, empty if all parameters are allowed."""
    text = allowed.text.replace("{ []", "{ ")
    return "" if text.endswith("{  }") else text


@composes(PiecewiseLayout, PiecewiseLayout)
def composed(outer: PiecewiseLayout, inner: PiecewiseLayout) -> PiecewiseLayout:
    """Return ``outer`` after ``inner``, on all points of ``inner``; ``PiecewiseLayout.after`` restricts instead.

    Outputs match axes by position; a single output is read as the flat index of a total layout with several axes or
    none.

    Example:
        >>> f = PiecewiseLayout("{ [r, c] -> [8r + c] : 0 <= r < 4 and 0 <= c < 8 }")
        >>> print(f @ PiecewiseLayout("{ [i] -> [4i + 1] : 0 <= i < 8 }"))
        { [i] -> [(8 + i)] : 0 <= i <= 7 }
    """
    found = operations.composed(outer.value, operations.link(outer.value, inner.value), inner.value)
    if isinstance(found, Value):
        return outer.made_with(inner, found)
    point = dict(zip(inner.axes, found[1], strict=True))
    params = {**dict.fromkeys(inner.params, 0), **found[0]}
    value = tuple(inner(**point, **{name: int(str(params[name])) for name in inner.params}).values())
    at = {**found[0], **point}
    what = "a value of the right operand is outside the domain of the left operand"
    because = f"at {at} its value is {value}, where the left operand is undefined"
    where, witness = (outer.text[:200], f"after {inner.text[:200]}"), {"at": at, "value": value}
    raise AdmissibilityError(Diagnostic("LA651", what, where, because, witness))
