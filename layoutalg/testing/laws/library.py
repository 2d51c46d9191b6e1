"""How another library builds, evaluates and combines its layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.ground.check import Checker
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

    A layout of theirs is built from a *spec*: ``(shape, stride)``, nested tuples alike.
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
        strides: What strides are drawn; 0 to 12 where None.
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
    strides: st.SearchStrategy[int] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise CHECK.malformed("name", "must be a name", self.name)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "strides" and not isinstance(value, st.SearchStrategy | None):
                raise CHECK.malformed(field.name, "must be a Hypothesis strategy", value)
            optional = value is None and field.name not in REQUIRED
            if field.name not in ("name", "refusals", "strides") and not callable(value) and not optional:
                raise CHECK.malformed(field.name, "must be a function", value)
        kinds = self.refusals
        if not isinstance(kinds, tuple) or not all(isinstance(kind, type) for kind in kinds):
            raise CHECK.malformed("refusals", "must be a tuple of exceptions", kinds)

    def drawn(self) -> st.SearchStrategy[Any]:
        """Specs of single layouts."""
        return shaped(cute_layouts(max_leaves=3, strides=self.steps()))

    def steps(self) -> st.SearchStrategy[int]:
        """Strides of drawn layouts."""
        return st.integers(0, 12) if self.strides is None else self.strides

    def call(self, name: str, *operands: Any) -> Any:
        """Call one of the functions."""
        function = getattr(self, name)
        try:
            return function(*operands)
        except self.refusals as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # whatever foreign code raises that is no refusal
            raise Broken(f"{name} ended with {type(error).__name__}: {str(error)[:80]}") from error

    def built(self, name: str, *operands: Any) -> Any:
        """Call one of the functions with the layouts of specs; integers are passed on."""
        given = [each if isinstance(each, int) else self.call("build", each) for each in operands]
        return self.call(name, *given) if name != "build" else given[0]

    def answer(self, name: str, *operands: Any) -> list[Any]:
        """All values of what ``built`` returns."""
        return self.listed(self.built(name, *operands))

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
