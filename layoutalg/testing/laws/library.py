"""How another library builds, evaluates and combines its layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import LayoutError, shown
from layoutalg.ground.layout import Layout
from layoutalg.testing.laws import tilings
from layoutalg.testing.strategies import cute_layouts

CHECK = Checker("LA457", "this is not a library whose layouts can be tested")
POINTS = 2**14
"""Most values that are read of an answer."""
REQUIRED = ("name", "build", "size", "value")


class Broken(Exception):  # noqa: N818  a law is broken
    """A law does not hold for these operands; the message says why."""


class Refused(Exception):  # noqa: N818  an answer, no failure
    """The library refused the operation."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """What the laws call of another library. Only the first four are needed; a law runs where its own are.

    A layout of theirs is built from a *spec*: ``(shape, stride)``, nested tuples alike, unless ``specs`` says so.
    ``A``, ``B`` are layouts of theirs, ``n`` an integer; every function may refuse.

    Args:
        name: Of the library.
        build: spec -> A.
        size: A -> number of its coordinates.
        value: (A, flat coordinate, first mode fastest) -> its value.
        refusals: Exceptions by which it refuses; any other exception is a crash, and breaks the law.
        equal: (A, B) -> whether they are the same.
        cosize: A -> how far its values reach, as ``cosize``.
        coalesce: A -> the same function.
        compose: (A, B) -> A after B.
        complement: (A, n) -> what fills the gaps of A up to n.
        right_inverse: A -> R with A(R(i)) = i.
        left_inverse: A -> R with A(R(A(i))) = A(i).
        inverse: A -> the inverse of a bijection.
        logical_divide: (A, B) -> A read tile by tile.
        logical_product: (A, B) -> copies of A where B says.
        repeat: (A, n) -> n copies of A, as ``logical_product(A, n)``.
        upcast: (A, n) -> A in elements n times as wide.
        downcast: (A, n) -> A in elements n times as narrow.
        swizzle: ((bits, base, shift), x) -> the swizzled number.
        f2_matrix: A -> rows of its matrix over F2, low bit first, of entries 0 and 1.
        specs: What layouts are built from; None for shapes and strides.
        pairs: Specs of pairs (A, B) with the values of B inside A; None for shapes and strides.
        truth: spec -> all values, by other means than the library; None for those of shapes and strides.
        text: spec -> how it is written in a report.
        strides: What strides are drawn; 0 to 12 where None.
        index: (spec, value of several outputs) -> the flat coordinate that it is.
    """

    name: str
    build: Callable[[Any], Any]
    size: Callable[[Any], int]
    value: Callable[[Any, int], Any]
    refusals: tuple[type[Exception], ...] = (ValueError, NotImplementedError)
    equal: Callable[[Any, Any], bool] | None = None
    cosize: Callable[[Any], int] | None = None
    coalesce: Callable[[Any], Any] | None = None
    compose: Callable[[Any, Any], Any] | None = None
    complement: Callable[[Any, int], Any] | None = None
    right_inverse: Callable[[Any], Any] | None = None
    left_inverse: Callable[[Any], Any] | None = None
    inverse: Callable[[Any], Any] | None = None
    logical_divide: Callable[[Any, Any], Any] | None = None
    logical_product: Callable[[Any, Any], Any] | None = None
    repeat: Callable[[Any, int], Any] | None = None
    upcast: Callable[[Any, int], Any] | None = None
    downcast: Callable[[Any, int], Any] | None = None
    swizzle: Callable[[tuple[int, int, int], int], int] | None = None
    f2_matrix: Callable[[Any], Any] | None = None
    specs: st.SearchStrategy[Any] | None = None
    pairs: st.SearchStrategy[Any] | None = None
    truth: Callable[[Any], list[Any]] | None = None
    text: Callable[[Any], str] | None = None
    strides: st.SearchStrategy[int] | None = None
    index: Callable[[Any, Any], int] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise CHECK.malformed("name", "must be a name", self.name)
        strategies, others = ("specs", "pairs", "strides"), ("name", "refusals", "specs", "pairs", "strides")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in others and not callable(value) and (value is not None or field.name in REQUIRED):
                raise CHECK.malformed(field.name, "must be a function", value)
            if field.name in strategies and not isinstance(value, st.SearchStrategy | None):
                raise CHECK.malformed(field.name, "must be a Hypothesis strategy", value)
        kinds = self.refusals
        if not isinstance(kinds, tuple) or not all(isinstance(kind, type) for kind in kinds):
            raise CHECK.malformed("refusals", "must be a tuple of exceptions", kinds)
        if self.specs is not None and self.truth is None:
            raise CHECK.malformed("truth", "must say the values of specs that are not shapes and strides", None)

    @property
    def strided(self) -> bool:
        """Layouts are built from shapes and strides."""
        return self.specs is None

    def drawn(self) -> st.SearchStrategy[Any]:
        """Specs of single layouts."""
        return self.specs if self.specs is not None else shaped(cute_layouts(max_leaves=3, strides=self.steps()))

    def steps(self) -> st.SearchStrategy[int]:
        """Strides of drawn layouts."""
        return st.integers(0, 12) if self.strides is None else self.strides

    def told(self, spec: Any) -> str:
        """A spec as a report writes it."""
        if self.text is not None:
            return self.text(spec)
        return str(CuteLayout(*spec)) if self.strided else shown(spec)

    def wanted(self, spec: Any) -> list[Any]:
        """The values of a spec, by enumeration."""
        return tilings.values(*spec) if self.truth is None else self.truth(spec)

    def flat(self, spec: Any, value: Any) -> int:
        """A value as a flat coordinate of the layout of a spec."""
        return value if self.index is None else self.index(spec, value)

    def call(self, name: str, *operands: Any) -> Any:
        """Call one of the functions."""
        function = getattr(self, name)
        try:
            return function(*operands)
        except self.refusals as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # whatever foreign code raises that is no refusal
            raise Broken(f"{name} ended with {type(error).__name__}: {str(error)[:80]}") from error

    def listed(self, layout: Any) -> list[Any]:
        """All values of a layout of theirs.

        Raises: Broken: It has none, or too many.
        """
        try:
            size = self.size(layout)
            if not 0 <= size <= POINTS:
                raise Broken(f"the answer has size {size}")
            return [self.value(layout, index) for index in range(size)]
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"the answer cannot be evaluated: {type(error).__name__}: {str(error)[:80]}") from error


def shaped(layouts: st.SearchStrategy[CuteLayout]) -> st.SearchStrategy[Any]:
    """Return the shapes and strides of layouts."""
    return layouts.map(lambda layout: (layout.shape, layout.stride))


def _plain(value: Any) -> Any:
    """An entry of a table as a number, or a tuple of several."""
    found = value.tolist() if hasattr(value, "tolist") else value
    return tuple(found) if isinstance(found, list) else found


def protocol_library(
    name: str,
    layouts: st.SearchStrategy[Layout],
    pairs: st.SearchStrategy[tuple[Layout, Layout]] | None = None,
    truth: Callable[[Layout], Iterable[Any]] | None = None,
    inverses: bool = True,
) -> Library:
    """Return the library of layouts that follow the protocol ``layoutalg.ground.layout.Layout``.

    Args:
        name: Of the family.
        layouts: The layouts; of one output, or of outputs that are packed to one number.
        pairs: Pairs that compose.
        truth: The values of a layout, by other means than its table; None for its calls of single coordinates.
        inverses: Whether bijections among them have an inverse.
    """

    def single(layout: Layout) -> list[Any]:
        return [layout.at(index) for index in range(layout.size)] if truth is None else list(truth(layout))

    def flat(layout: Layout, value: Any) -> int:
        if not isinstance(value, tuple):
            return int(value)
        found, weight = 0, 1
        for digit, extent in zip(value, layout.in_dims.values(), strict=True):
            found, weight = found + digit * weight, weight * extent
        return found

    return Library(
        name=name,
        build=lambda layout: layout,
        size=lambda layout: layout.size,
        value=lambda layout, index: _plain(layout.table()[index]),
        refusals=(LayoutError,),
        equal=lambda one, other: one == other,
        compose=lambda outer, inner: outer @ inner,
        inverse=(lambda layout: layout.inverse()) if inverses else None,
        specs=layouts,
        pairs=pairs,
        truth=single,
        text=str,
        index=flat,
    )
