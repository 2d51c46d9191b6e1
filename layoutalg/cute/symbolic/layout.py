"""The CuTe layout with symbolic extents and strides.

Notation: ``(M,N):(1,M)``, followed by the open side conditions.

A value stands for one concrete layout per assignment of sizes that meets the assumptions and all side conditions; at
other sizes nothing is claimed and ``subs`` raises. All extents are at least 1.

References: J. Cecka, arXiv:2603.02298; CuTe documentation of NVIDIA CUTLASS, "Layouts".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from layoutalg.cute.inttuple import integer, malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.symbolic.ledger import (
    Ledger,
    Nested,
    alike,
    graft,
    leaves,
    nest_of,
    offset_expression,
    offset_term,
    text_of,
)
from layoutalg.ground import clock, limits
from layoutalg.ground.assumptions import CONDITIONS, Assumptions, SideCondition
from layoutalg.ground.check import Checker, refuse
from layoutalg.ground.conditions import Condition, at_least
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.layout import Written, after
from layoutalg.ground.polynomial import ONE, Polynomial, names_of, product_of, sizes_do_not_fit, sizes_of, whole_at
from layoutalg.ground.polynomial_text import PolynomialLike, polynomial

__all__ = ["SymbolicLayout", "SymbolicValue", "symbolic"]


@dataclass(frozen=True, slots=True)
class SymbolicValue:
    """A symbolic integer, claimed where its side conditions hold.

    Args:
        value: The value.
        assumptions: What is known about the sizes.
        conditions: Side conditions with their status.

    Example:
        >>> answer = SymbolicLayout(("M", "N"), ("N", 1))(2, "j")
        >>> print(answer)
        2*N + j where M >= 3, j >= 0, N >= j + 1
    """

    value: Polynomial
    assumptions: Assumptions
    conditions: tuple[SideCondition, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", polynomial(self.value))
        if not isinstance(self.assumptions, Assumptions):
            raise malformed("assumptions", "must be Assumptions", self.assumptions, "LA622")
        object.__setattr__(self, "conditions", _carried(self.conditions))

    def subs(self, sizes: Mapping[Any, int]) -> int:
        """Return the value at ``sizes``; checks the assumptions and side conditions."""
        names = self.value.names | names_of([entry.condition.value for entry in self.conditions])
        values = _checked(sizes, names, self.assumptions, self.conditions, str(self.value))
        return whole_at(self.value, values, str(self.value))

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the value as a sympy expression; the conditions have their own ``to_sympy``."""
        return self.value.to_sympy(symbols)

    def _repr_latex_(self) -> str:
        return self.value._repr_latex_()

    def __str__(self) -> str:
        return f"{self.value}{_where_text(self.conditions)}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SymbolicLayout(Written):
    """A CuTe layout ``shape:stride`` whose extents and strides may be symbolic.

    Mathematically: for all sizes that meet the assumptions and side conditions, the function c -> sum of c_k d_k from
    the coordinates of ``shape`` to the integers.

    Args:
        shape: Extents, each at least 1: nested tuples of integers, text such as ``"M/64"``, polynomials or sympy
            expressions.
        stride: Strides, congruent to the shape. Default: compact column-major. Elements.
        assumptions: ``Assumptions``, or conditions to build them from. Names are >= 1 unless listed in ``integers``.
        conditions: Side conditions carried over. Integrality of extents and strides and extents >= 1 are added where
            they do not follow from the form.

    Example:
        >>> layout = SymbolicLayout(("M", "N"), ("P", 1), ("P >= N",))
        >>> print(layout)
        (M,N):(P,1)
        >>> print(layout.subs({"M": 4, "N": 8, "P": 10}))
        (4,8):(10,1)
    """

    shape: Nested
    stride: Nested
    assumptions: Assumptions
    conditions: tuple[SideCondition, ...]
    title = "CuTe shape:stride with symbolic sizes"
    no_bridge = "other families need concrete sizes: call .subs({...}) first"
    hint = (
        "layoutalg.cute.symbolic (import it) has coalesce, composition, complement, inverses, logical_divide and "
        "logical_product of symbolic sizes"
    )

    def __init__(
        self,
        shape: object,
        stride: object = None,
        assumptions: Assumptions | Iterable[object] = (),
        conditions: Iterable[SideCondition] = (),
    ) -> None:
        extents = nest_of(shape, "shape")
        steps = _compact(extents) if stride is None else nest_of(stride, "stride")
        if not alike(extents, steps):
            where, because = f"{text_of(extents)}:{text_of(steps)}", "every extent needs one stride in the same place"
            raise MalformedError(Diagnostic("LA622", "shape and stride nest differently", (where,), because))
        known = assumptions if isinstance(assumptions, Assumptions) else Assumptions(assumptions)
        carried = _carried(conditions)
        with clock.within(limits.SYMBOLIC_SECONDS):
            ledger = Ledger(known, carried, f"{text_of(extents)}:{text_of(steps)}")
            for extent in leaves(extents):
                if not extent.whole:
                    ledger.require(Condition("integral", extent))
                ledger.require(at_least(extent, 1))
            for step in leaves(steps):
                if not step.whole:
                    ledger.require(Condition("integral", step))
        object.__setattr__(self, "shape", extents)
        object.__setattr__(self, "stride", steps)
        object.__setattr__(self, "assumptions", known)
        object.__setattr__(self, "conditions", ledger.conditions)

    @property
    def flat(self) -> tuple[tuple[Polynomial, Polynomial], ...]:
        """The modes without nesting: (extent, stride) pairs, fastest first."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    @property
    def size(self) -> Polynomial:
        """Number of coordinates."""
        return product_of(leaves(self.shape))

    @property
    def rank(self) -> int:
        """Number of top-level modes; 1 for a single extent."""
        return 1 if isinstance(self.shape, Polynomial) else len(self.shape)

    @property
    def symbols(self) -> frozenset[str]:
        """The names in shape, stride and side conditions."""
        values = [*leaves(self.shape), *leaves(self.stride), *[entry.condition.value for entry in self.conditions]]
        return names_of(values)

    @property
    def open_conditions(self) -> tuple[Condition, ...]:
        """The side conditions that are not proved: the caller must ensure them."""
        return tuple([entry.condition for entry in self.conditions if entry.status is not True])

    def __getitem__(self, mode: int) -> SymbolicLayout:
        """Return one top-level mode; mode 0 of ``M:1`` is ``M:1``."""
        position = integer(mode, "mode", "LA622")
        if not 0 <= position < self.rank:
            raise malformed("mode", f"must be in [0, {self.rank}), the modes of {self}", position, "LA622")
        if isinstance(self.shape, Polynomial) or isinstance(self.stride, Polynomial):
            return self
        return SymbolicLayout(self.shape[position], self.stride[position], self.assumptions, self.conditions)

    def subs(self, sizes: Mapping[Any, int]) -> CuteLayout:
        """Return the concrete layout at ``sizes``.

        Args:
            sizes: A size for each name of the layout, its side conditions and its assumptions.

        Example:
            >>> print(SymbolicLayout(("M/4", 4), (4, 1)).subs({"M": 32}))
            (8,4):(4,1)
        """
        values = _checked(sizes, self.symbols, self.assumptions, self.conditions, str(self))
        return CuteLayout(int_nest(self.shape, values), int_nest(self.stride, values))

    def __call__(self, *coord: object, assumptions: Iterable[object] = ()) -> SymbolicValue:
        """Return the offset at a coordinate as a polynomial, with the side conditions that put it inside the domain.

        Args:
            coord: A 1-D coordinate, or one entry per mode, nested to any depth. Names that are not in the layout are
                arbitrary integers.
            assumptions: Further conditions, for example on the names of the coordinate.

        Example:
            >>> layout = SymbolicLayout(("M", "N"), ("N", 1))
            >>> print(layout("M*j + 1", assumptions=("M >= 2", "j >= 0", "j <= N - 1")).value)
            N + j
        """
        with clock.within(limits.SYMBOLIC_SECONDS):
            point, ledger = self._point(coord, assumptions)
            value = offset_term(point, self.shape, self.stride, ledger)
        return SymbolicValue(value, ledger.assumptions, ledger.conditions)

    def expression(self, *coord: object, assumptions: Iterable[object] = ()) -> Any:
        """Return the offset at a coordinate as a sympy expression with simplified divisions and remainders.

        Mathematically: an expression equal to the layout's value for all sizes that meet the assumptions and side
        conditions and all coordinates inside the domain; nothing is claimed outside.

        Args:
            coord: As for a call; text, polynomials or sympy expressions.
            assumptions: Further conditions, for example on the names of the coordinate.

        Example:
            >>> layout = SymbolicLayout(("M", "N"), ("N", 1))
            >>> layout.expression("i")
            N*(Mod(i, M)) + floor(i/M)
            >>> layout.expression("i", "j")
            N*i + j
            >>> layout.expression("M*j + i", assumptions=("0 <= i < M",))
            N*i + j
        """
        symbols: dict[str, Any] = {}
        _collect_symbols(coord, symbols)
        _collect_symbols((self.shape, self.stride), symbols)
        with clock.within(limits.SYMBOLIC_SECONDS):
            point, ledger = self._point(coord, assumptions)
            return offset_expression(point, self.shape, self.stride, ledger, symbols)

    def _point(self, coord: tuple[object, ...], assumptions: Iterable[object]) -> tuple[Nested, Ledger]:
        point = nest_of(coord[0] if len(coord) == 1 else coord, "coordinate")
        extra = Assumptions(assumptions)
        names = names_of(leaves(point)) | extra.names
        fresh = names - self.symbols - self.assumptions.names
        known = self.assumptions.extended(extra.conditions, fresh)
        where = f"({self})({text_of(point).removeprefix('(').removesuffix(')')})"
        return point, Ledger(known, self.conditions, where)

    def __matmul__(self, inner: object) -> SymbolicLayout:
        """Return ``self`` after ``inner``: (f @ g)(c) = f(g(c)), with the side conditions it needs."""
        if not isinstance(inner, SymbolicLayout | CuteLayout):
            return NotImplemented
        return cast(SymbolicLayout, after(self, inner))

    def then(self, outer: SymbolicLayout | CuteLayout) -> SymbolicLayout:
        """Return ``outer`` after ``self``; an integer or name n means ``n:1``."""
        return symbolic(outer) @ self

    def __str__(self) -> str:
        return f"{text_of(self.shape)}:{text_of(self.stride)}{_where_text(self.conditions)}"

    def __repr__(self) -> str:
        return (
            f"SymbolicLayout({_repr_nest(self.shape)}, {_repr_nest(self.stride)}, {self.assumptions!r}, "
            f"{self.conditions!r})"
        )


def symbolic(
    value: SymbolicLayout | CuteLayout | PolynomialLike, assumptions: Assumptions | None = None
) -> SymbolicLayout:
    """Return ``value`` as a symbolic layout; a size n means ``n:1``.

    Example:
        >>> print(symbolic(CuteLayout((4, 8), (8, 1))), symbolic("M"))
        (4,8):(8,1) M:1
    """
    if isinstance(value, SymbolicLayout):
        return value
    known = Assumptions() if assumptions is None else assumptions
    if isinstance(value, CuteLayout):
        return SymbolicLayout(value.shape, value.stride, known)
    if isinstance(value, tuple):
        raise malformed("layout", "must be a layout or a size", value, "LA620")
    return SymbolicLayout(value, 1, known)


def _carried(conditions: Iterable[SideCondition]) -> tuple[SideCondition, ...]:
    """Return side conditions as a tuple, or raise for other values."""
    carried = Checker("LA622").entries(conditions, "conditions", CONDITIONS, "must be SideCondition values")
    for entry in carried:
        if not isinstance(entry, SideCondition):
            raise malformed("conditions", "must be SideCondition values", entry, "LA622")
    return carried


def _compact(shape: Nested) -> Nested:
    steps: list[Polynomial] = []
    current = ONE
    for extent in leaves(shape):
        steps.append(current)
        current = current * extent
    return graft(iter(steps), shape)


def _where_text(conditions: tuple[SideCondition, ...]) -> str:
    stated = [str(entry.condition) for entry in conditions if entry.status is not True]
    return f" where {', '.join(stated)}" if stated else ""


def _repr_nest(value: Nested) -> str:
    if isinstance(value, Polynomial):
        plain = value.as_int()
        return repr(str(value)) if plain is None else str(plain)
    return "(" + ", ".join([_repr_nest(entry) for entry in value]) + (",)" if len(value) == 1 else ")")


def int_nest(value: Nested, sizes: Mapping[str, int]) -> Any:
    """Return the nested integers at ``sizes``, which must have every name."""
    if isinstance(value, Polynomial):
        return whole_at(value, sizes, str(value))
    return tuple([int_nest(entry, sizes) for entry in value])


def _collect_symbols(value: object, found: dict[str, Any]) -> None:
    """Collect the caller's sympy symbols, so that the answer uses the same ones."""
    if isinstance(value, tuple):
        for entry in value:
            _collect_symbols(entry, found)
    elif hasattr(value, "free_symbols"):
        for symbol in value.free_symbols:
            found.setdefault(symbol.name, symbol)


def _checked(
    sizes: Mapping[Any, int],
    names: frozenset[str],
    assumptions: Assumptions,
    conditions: tuple[SideCondition, ...],
    where: str,
) -> dict[str, int]:
    values = sizes_of(sizes)
    needed = names | assumptions.names
    for rule, wrong in (("needs a size for", needed - values.keys()), ("has no name", values.keys() - needed)):
        if wrong and not (rule == "has no name" and wrong <= set(assumptions.integers)):
            raise sizes_do_not_fit(where, f"it {rule} {', '.join(sorted(wrong))}")
    broken = assumptions.broken_at(values)
    if broken is not None:
        raise _fails("LA624", "an assumption", broken, values, where)
    for entry in conditions:
        if not entry.condition.true_at(values):
            raise _fails("LA625", "a side condition", entry.condition, values, where)
    return values


def _fails(code: str, what: str, broken: Condition, sizes: Mapping[str, int], where: str) -> AdmissibilityError:
    return refuse(code, f"{what} fails at these sizes", f"{broken} is false", sizes, where)
