"""Partial layouts with symbolic parameters: guarded quasi-affine pieces.

Main definitions: ``ParametricLayout``.

Notation: ISL's, for example ``[N] -> { [i, j] -> [(12i + j)] : 0 <= i < N and 0 <= j <= 11 }``; a context on the
parameters follows as ``given [N] -> { : N > 0 }``.

Implementation notes: unlike ``PiecewiseLayout`` the domain is any set, given by the guards. Axes are meant to be digits
(bits with a carry under an xor); a flat index with floor and modulo of a dense F2 map exhausts the quota. Evaluation
reads the pieces once into plain numbers, parameters first, and uses numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, shown
from layoutalg.ground.operators import then
from layoutalg.piecewise import reading, relations
from layoutalg.piecewise.chain import chain_inverse, digit_inverse
from layoutalg.piecewise.layout import PiecewiseLayout
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.points import ParametricSet, checked_values, evaluated, point_arrays

Numbers: TypeAlias = "int | npt.NDArray[np.int64]"
GIVEN = " given "
CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class ParametricLayout:
    """A partial function from integer points to integer points, piecewise quasi-affine, with symbolic parameters.

    Args:
        text: ISL map text; its guards are the domain. ``x div n`` and ``x // n`` may stand for ``floor(x/n)``. Pieces
            may overlap only where they agree. Kept in canonical form.
        context: Constraints on the parameters, ``"N >= 1"``; the layout has no point where they fail.
        outputs: Names of the outputs; None takes them from the text, ``y0``, ``y1``, ... where it has none.

    Raises: MalformedError: LA780, LA781, LA782, LA783, LA784, LA785. BudgetError: LA222.

    Example:
        >>> L = ParametricLayout("[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }", "N >= 1")
        >>> L.params, L.axes, L.at(i=50, j=3, N=60)
        (('N',), ('i', 'j'), (4, 2, 3))

    Source: arXiv 2511.10374 (layouts as ISL relations); islpy for the algorithms.
    """

    text: str
    context: str = ""
    outputs: tuple[str, ...] | None = None
    params: tuple[str, ...] = field(init=False, repr=False, compare=False)
    axes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = reading.read_function(self.text, self.context)
        names = found.outputs if self.outputs is None else self.outputs
        valid = isinstance(names, tuple) and all(isinstance(name, str) and name.isidentifier() for name in names)
        if not valid or len(set(names)) != len(found.outputs) or len(names) != len(found.outputs):
            because = f"outputs must be {len(found.outputs)} distinct identifiers, not {shown(names)}"
            raise malformed("LA785", "these are no names of outputs", found.text, because)
        for name, value in (("text", found.text), ("context", found.context), ("outputs", names)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "params", found.params)
        object.__setattr__(self, "axes", found.axes)

    def __str__(self) -> str:
        return f"{self.text}{GIVEN}{self.context}" if self.context else self.text

    @classmethod
    def parse(cls, text: str) -> ParametricLayout:
        """Read what ``str`` wrote; the outputs get default names.

        Example:
            >>> L = ParametricLayout("[N] -> { [i] -> [2i] : 0 <= i < N }", "N >= 4")
            >>> ParametricLayout.parse(str(L)) == L
            True
        """
        if not isinstance(text, str):
            raise malformed("LA780", "this is not ISL text", text, "text must be a str")
        body, _, context = text.partition(GIVEN)
        return cls(body, context)

    @classmethod
    def of(cls, layout: PiecewiseLayout) -> ParametricLayout:
        """Return a total layout on a box as a layout without parameters, digits and bits unchanged."""
        if not isinstance(layout, PiecewiseLayout):
            raise malformed("LA785", "this is not a piecewise layout", layout, "layout must be a PiecewiseLayout")
        return cls(layout.text, outputs=layout.outputs)

    def piecewise(self, **values: int) -> PiecewiseLayout:
        """Return the layout at parameter values as a total layout on a box.

        Raises: MalformedError: LA221, LA785.
        """
        here = self.subs(**checked_values(values, self.params, self.text, complete=True))
        return PiecewiseLayout(here.text, self.outputs)

    @property
    def out_dims(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.outputs or ()

    @property
    def domain(self) -> ParametricSet:
        """The points with a value."""
        return ParametricSet(relations.on_maps("domain", self.text))

    @property
    def image(self) -> ParametricSet:
        """The values; as a predicate, whether the inverse is defined."""
        return ParametricSet(relations.on_maps("range", self.text))

    def subs(self, **values: int) -> ParametricLayout:
        """Return the layout at values of some parameters.

        Raises: MalformedError: LA785, LA787.

        Example:
            >>> print(ParametricLayout("[N] -> { [i] -> [N - 1 - i] : 0 <= i < N }").subs(N=5))
            { [i] -> [(4 - i)] : 0 <= i <= 4 }
        """
        known = checked_values(values, self.params, self.text)
        context = relations.substitute(self.context, known) if self.context else ""
        if context and relations.is_empty(context):
            because = f"{known} contradicts {self.context}"
            raise malformed("LA787", "these parameter values are outside the context", self.text, because, dict(known))
        return ParametricLayout(relations.substitute(self.text, known), context, self.outputs)

    def contains(self, coords: Mapping[str, Numbers], **values: int) -> npt.NDArray[np.bool_]:
        """Return where points have a value, vectorised; see ``apply``."""
        return self._evaluate(coords, values)[1]

    def apply(self, coords: Mapping[str, Numbers], **values: int) -> dict[str, Numbers]:
        """Evaluate at one point or, vectorised, at arrays of points.

        Args:
            coords: Value of every axis; integers or integer arrays that broadcast together.
            values: Value of every parameter.

        Returns:
            Value of every output: int where all inputs are ints, else an array (object where 64 bits might not do).

        Raises: MalformedError: LA785, LA788.
        """
        answers, covered = self._evaluate(coords, values)
        if not covered.all():
            at = np.unravel_index(int(np.argmin(covered)), covered.shape)
            arrays, _ = point_arrays(coords, self.axes, self.text)
            point: dict[str, object] = {
                **values,
                **{n: int(array[at]) for n, array in zip(self.axes, arrays, strict=True)},
            }
            raise malformed(
                "LA788", "a point lies outside the guards", self.text, f"no piece holds at {shown(point)}", point
            )
        if all(isinstance(coords[name], (int, np.integer)) for name in self.axes):
            return {name: int(answer.item()) for name, answer in zip(self.out_dims, answers, strict=True)}
        return dict(zip(self.out_dims, answers, strict=True))

    def at(self, **values: int) -> tuple[int, ...]:
        """Return the outputs at one point; axes and parameters by name."""
        for name, value in values.items():
            if np.ndim(value):
                because = f"{name} must be one integer, not {shown(value)}"
                raise malformed("LA785", "a coordinate is no integer", self.text, because)
        coords = {name: value for name, value in values.items() if name in self.axes}
        rest = {name: value for name, value in values.items() if name not in self.axes}
        return tuple(int(value) for value in self.apply(coords, **rest).values())

    def table(self, **values: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the points of the domain in lexicographic order, and their values.

        Returns:
            Arrays of shapes (points, axes) and (points, outputs).

        Raises: AdmissibilityError: LA786. BudgetError: LA224, LA002.

        Example:
            >>> points, image = ParametricLayout("[N] -> { [i] -> [i, 2i] : 0 <= i < N }").table(N=2)
            >>> points.tolist(), image.tolist()
            ([[0], [1]], [[0, 0], [1, 2]])
        """
        points = self.domain.subs(**self._own(values, self.domain)).points()
        width = len(self.out_dims)
        memory.reserve(f"the table of {self.text[:200]}", len(points) * (width + len(self.axes)), 8)
        parts = [np.empty((0, width), dtype=np.int64)]
        for start in range(0, len(points), CHUNK):
            clock.check(f"the table of {self.text[:200]}")
            rows = points[start : start + CHUNK]
            coords = {name: rows[:, position] for position, name in enumerate(self.axes)}
            answers, _ = self._evaluate(coords, values)
            columns = [np.broadcast_to(answer, len(rows)) for answer in answers]
            parts.append(np.stack(columns, axis=-1) if columns else np.empty((len(rows), 0), dtype=np.int64))
        return points, np.concatenate(parts)

    def __matmul__(self, inner: ParametricLayout) -> ParametricLayout:
        """Return ``self`` after ``inner``; outputs meet axes by position.

        Raises: AdmissibilityError: LA789.
        """
        if not isinstance(inner, ParametricLayout):
            return NotImplemented
        total = self.after(inner)
        outside = relations.sample(relations.on_maps("outside", self.text, inner.text), inner.axes)
        if outside is not None:
            value = inner.at(**{**dict.fromkeys(inner.params, 0), **outside})  # type: ignore[arg-type]
            raise AdmissibilityError(
                Diagnostic(
                    code="LA789",
                    what="the right operand leaves the domain of the left operand",
                    where=(self.text[:200], f"after {inner.text[:200]}"),
                    because=f"at {outside} it has the value {value}, which no guard of the left operand admits",
                    witness={"at": outside, "value": value},
                )
            )
        return total

    def then(self, outer: ParametricLayout) -> ParametricLayout:
        """Return ``outer`` after ``self``.

        Raises: MalformedError: LA192.
        """
        return cast(ParametricLayout, then(self, outer))

    def after(self, inner: ParametricLayout) -> ParametricLayout:
        """Return ``self`` after ``inner`` on the points of ``inner`` whose value is in the domain of ``self``.

        Example:
            >>> f = ParametricLayout("{ [x] -> [x + 1] : x < 4 }")
            >>> print(f.after(ParametricLayout("{ [i] -> [2i] : 0 <= i < 9 }")))
            { [i] -> [(1 + 2i)] : 0 <= i <= 1 }
        """
        if not isinstance(inner, ParametricLayout):
            raise malformed("LA785", "this is not a parametric layout", inner, "inner must be a ParametricLayout")
        if len(inner.out_dims) != len(self.axes):
            raise AdmissibilityError(
                Diagnostic(
                    code="LA789",
                    what="the parametric layouts do not compose",
                    where=(self.text[:200], f"after {inner.text[:200]}"),
                    because=f"{len(inner.out_dims)} outputs meet {len(self.axes)} axes",
                )
            )
        return self._both(inner, relations.on_maps("after", self.text, inner.text))

    def restrict(self, points: ParametricSet | str) -> ParametricLayout:
        """Return the layout on the points of its domain that lie in a set."""
        chosen = self._set(points)
        return ParametricLayout(relations.on_maps("restrict", self.text, chosen.text), self.context, self.outputs)

    def without(self, points: ParametricSet | str) -> ParametricLayout:
        """Return the layout on the points of its domain outside a set."""
        chosen = self._set(points)
        return ParametricLayout(relations.on_maps("remove", self.text, chosen.text), self.context, self.outputs)

    def union(self, other: ParametricLayout) -> ParametricLayout:
        """Return the layout defined where either is.

        Raises: MalformedError: LA783.

        Example:
            >>> low = ParametricLayout("{ [i] -> [i] : 0 <= i < 4 }")
            >>> low.union(ParametricLayout("{ [i] -> [2i] : 4 <= i < 6 }")).table()[1].ravel().tolist()
            [0, 1, 2, 3, 8, 10]
        """
        self._alike(other)
        return self._both(other, relations.on_maps("union", self.text, other.text), self.outputs)

    def intersect(self, other: ParametricLayout) -> ParametricLayout:
        """Return the layout on the points where both are defined and agree."""
        self._alike(other)
        return self._both(other, relations.on_maps("intersect", self.text, other.text), self.outputs)

    def collision(self) -> dict[str, object] | None:
        """Return two points with one value (parameters, points, value), or None where the layout is injective."""
        return relations.collision(self.text, self.axes)

    def inverse(self) -> ParametricLayout:
        """Return the inverse, defined exactly on the image: its guard is the predicate that tells values from holes.

        Raises: AdmissibilityError: LA792. BudgetError: LA222.

        Example:
            >>> f = ParametricLayout("[N] -> { [i] -> [i div 12, i mod 12] : 0 <= i < N }")
            >>> f.inverse().at(y0=4, y1=2, N=60)
            (50,)
        """
        chain = self._chain()
        if chain is not None:
            return chain
        found = self.collision()
        if found is not None:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA792",
                    what="this layout has no inverse",
                    where=(self.text[:200],),
                    because=f"two points have the value {found['value']}",
                    witness=found,
                )
            )
        return self._turned(False)

    def right_inverse(self) -> ParametricLayout:
        """Return the function from each value to its lexicographically least point.

        Raises: AdmissibilityError: LA791.

        Example:
            >>> ParametricLayout("{ [i] -> [i div 3] : 0 <= i < 9 }").right_inverse().table()[1].ravel().tolist()
            [0, 3, 6]
        """
        return self._chain() or self._turned(True)

    def holes(self, box: ParametricSet | str) -> ParametricSet:
        """Return the points of a box of values that the layout never takes: the padding.

        Example:
            >>> f = ParametricLayout("[N] -> { [i] -> [i div 4, i mod 4] : 0 <= i < N }")
            >>> f.holes("[N] -> { [t, r] : 0 <= t and 4t < N and 0 <= r < 4 }").points(N=6).tolist()
            [[1, 2], [1, 3]]
        """
        whole = box if isinstance(box, ParametricSet) else ParametricSet(box)
        return whole.subtract(self.image)

    def difference(self, other: ParametricLayout) -> dict[str, object] | None:
        """Return parameter values and a point where only one is defined or the values differ; None where equal."""
        self._alike(other)
        return relations.difference(self.text, other.text, self.axes)

    def is_equal(self, other: ParametricLayout) -> bool:
        """Return whether both are the same partial function for all parameter values; axes go by position."""
        return self.difference(other) is None

    def _chain(self) -> ParametricLayout | None:
        """Return the inverse read off digits, None where the outputs are not chains of them."""
        names = self._out_axes()
        for find in (chain_inverse, digit_inverse):
            found = find(self.text, self.axes, names)
            if found is not None:
                relations.confirmed_inverse(found, self.text)
                return ParametricLayout(found, self.context, self.axes)
        return None

    def _turned(self, least: bool) -> ParametricLayout:
        """Return the inverse, or with ``least`` the right inverse, with the names of the outputs on its axes."""
        return ParametricLayout(relations.turned(self.text, self._out_axes(), least), self.context, self.axes)

    def _out_axes(self) -> list[str]:
        """Return the names of the outputs as names of axes, apart from those of parameters and axes."""
        taken = {*self.params, *self.axes}  # a name used twice in ISL text means equality
        names: list[str] = []
        for name in self.out_dims:
            while name in taken:
                name += "_out"
            taken.add(name)
            names.append(name)
        return names

    def _both(self, other: ParametricLayout, text: str, outputs: tuple[str, ...] | None = None) -> ParametricLayout:
        context = relations.on_maps("intersect_set", self.context or "{ : }", other.context or "{ : }")
        return ParametricLayout(text, context, self.outputs if outputs is None else outputs)

    def _alike(self, other: ParametricLayout) -> None:
        same = isinstance(other, ParametricLayout) and len(self.axes) == len(other.axes)
        if not same or len(self.out_dims) != len(other.out_dims):
            because = f"the layout has {len(self.axes)} axes and {len(self.out_dims)} outputs"
            raise malformed("LA785", "the layouts have different axes", other, because)

    def _set(self, points: ParametricSet | str) -> ParametricSet:
        chosen = points if isinstance(points, ParametricSet) else ParametricSet(points)
        if len(chosen.axes) != len(self.axes):
            because = f"the layout has the axes {list(self.axes)}"
            raise malformed("LA785", "the set has different axes", chosen.text, because)
        return chosen

    def _own(self, values: Mapping[str, int], points: ParametricSet) -> dict[str, int]:
        known = self._known(values)
        return {name: value for name, value in known.items() if name in points.params}

    def _known(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return checked values of all parameters, refused outside the context."""
        known = checked_values(values, self.params, self.text, complete=True)
        if self.context and relations.is_empty(relations.substitute(self.context, known)):
            because = f"{known} contradicts {self.context}"
            raise malformed("LA787", "these parameter values are outside the context", self.text, because, dict(known))
        return known

    def _evaluate(
        self, coords: Mapping[str, Numbers], values: Mapping[str, int]
    ) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
        arrays, shape = point_arrays(coords, self.axes, self.text)
        return evaluated(self.text, self.params, self._known(values), arrays, shape, len(self.out_dims))
