"""The base class of all layouts: functions on a finite box of integers; how values compose and are written.

Notation: flat indices are colexicographic (first axis fastest). The *value* at a flat index is one integer if the
layout has one output or all outputs have extents (packed, first output fastest), otherwise the tuple of outputs.

Each family registers its compositions when it is imported; the notation package registers its reader and writer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.picture import Shown

if TYPE_CHECKING:
    import numpy.typing as npt

Rule: TypeAlias = Callable[[Any, Any], Any]
Registered = TypeVar("Registered", bound=Rule)

_RULES: dict[tuple[type, type], Rule] = {}


def composes(outer: type, inner: type) -> Callable[[Registered], Registered]:
    """Register the decorated function ``(outer, inner)`` as the composition of these types.

    Args:
        outer: Type of the value applied last.
        inner: Type of the value applied first.

    Example:
        >>> class Shift(int): pass
        >>> @composes(Shift, Shift)
        ... def added(outer, inner): return Shift(outer + inner)
        >>> after(Shift(2), Shift(3))
        5
    """

    def register(rule: Registered) -> Registered:
        _RULES[outer, inner] = rule
        return rule

    return register


def rule_for(outer: type, inner: type) -> Rule | None:
    """Return the function that composes values of these types, or None."""
    rule = _RULES.get((outer, inner))
    if rule is not None:
        return rule
    pairs = ((above, below) for above in outer.__mro__ for below in inner.__mro__)
    return next((_RULES[pair] for pair in pairs if pair in _RULES), None)


def after(outer: object, inner: object) -> Any:
    """Return the composition ``outer @ inner``, which applies ``inner`` first."""
    rule = rule_for(type(outer), type(inner))
    if rule is not None:
        return rule(outer, inner)
    ours = [any(base.__module__.startswith("layoutalg.") for base in type(value).__mro__) for value in (outer, inner)]
    hint = ""
    if isinstance(outer, str) or isinstance(inner, str):
        hint = "; use layoutalg.parse for text"
    elif all(ours):
        hint = "; layoutalg.compose(outer, inner, widen=True) may find a common family"
    names = [
        f"a {type(value).__name__}" if mine else shown(value) for value, mine in zip((outer, inner), ours, strict=True)
    ]
    because = f"cannot compose {names[0]} after {names[1]}{hint}"
    raise MalformedError(Diagnostic("LA192", "these values do not compose", because=because))


_READERS: list[Callable[[object, object, object], object]] = []


def read_by(reader: Callable[[object, object, object], object]) -> None:
    """Register the function behind ``read``. ``layoutalg`` calls this once."""
    _READERS[:] = [reader]


def read(value: object, shape: object = None, like: object = None) -> Any:
    """Return the layout given in any form: see ``layoutalg.layout``; ``like`` has the extents of a form without any."""
    return value if isinstance(value, Layout) else _READERS[0](value, shape, like)


_WRITERS: list[Callable[..., str]] = []


def written_by(writer: Callable[..., str]) -> None:
    """Register the function behind ``to_text``. ``layoutalg`` calls this once."""
    _WRITERS[:] = [writer]


class Written:
    """A value that can be written in the notations of other systems."""

    __slots__ = ()

    def to_text(self, form: str, **options: Any) -> str:
        """Return the value in another system's notation, exact or refused; ``layoutalg.parse`` reads it.

        Args:
            form: ``"cute_cpp"`` and ``"cute_dsl"`` for what CuTe prints, ``"cute_type"`` for a C++ type, ``"ttg"`` for
                an attribute of Triton, ``"gluon"`` for a constructor, ``"mlir"`` for the layout of a
                ``memref``, ``"isl"``.
            options: ``element_bits`` for the CuTe forms: swizzles are then written on byte addresses, with a pointer
                that shows the element width. Without it they act on element offsets.

        Raises: MalformedError: LA195. RepresentabilityError: LA196, LA711, and those of ``layoutalg.convert``.

        Example:
            >>> import layoutalg as la
            >>> shared = la.parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
            >>> shared.to_text("cute_cpp")
            'Sw<3,3,3> o _0 o (_8,_64):(_64,_1)'
            >>> shared.to_text("cute_cpp", element_bits=16)
            'Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)'
        """
        return _WRITERS[0](self, form, **options)


class Layout(Shown, Written):
    """A function from a box of named integer axes to integers; each family represents some of them.

    The methods mean the same in every family; ``tests/property/test_protocol.py`` checks these laws:
    ``table()[i]`` is ``at(i)``, ``apply(a)`` is ``table()[a]``, ``(f @ g).at(i)`` is ``f.at(g.at(i))``,
    ``g.then(f)`` is ``f @ g``, ``f.inverse().at(f.at(i))`` is ``i``.
    """

    __slots__ = ()
    _whole = True
    title: ClassVar[str] = ""
    """What explanations call the family."""
    hint: ClassVar[str] = "layoutalg.convert.to_cute gives its CuTe form if it has one"
    """What to do where a CuTe operation refuses a layout of the family."""

    @property
    @abstractmethod
    def in_dims(self) -> dict[str, int]:
        """The box: axis name -> extent, fastest first."""

    @property
    @abstractmethod
    def out_dims(self) -> dict[str, Any]:
        """Output name -> extent of the codomain, None if unbounded."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of points of the box."""

    @property
    def is_total(self) -> bool:
        """Whether every point of the box has a value."""
        return True

    @abstractmethod
    def at(self, index: int) -> Any:
        """Return the value at a flat index."""

    @abstractmethod
    def apply(self, coords: Any) -> Any:
        """Return the values at many points.

        Args:
            coords: An array of flat indices gives an array of values of the same shape (plus one axis if values are
                tuples); a mapping axis -> integers gives a mapping output -> integers.
        """

    @abstractmethod
    def table(self) -> npt.NDArray[Any]:
        """Return the values at 0, 1, ..., size - 1, one row each."""

    @abstractmethod
    def inverse(self) -> Any:
        """Return the inverse; the values must be exactly 0, 1, ..., size - 1."""

    def __matmul__(self, inner: Any) -> Any:
        """Return ``self`` after ``inner``: (f @ g)(x) = f(g(x)), exact or refused."""
        return after(self, inner) if isinstance(inner, Layout) else NotImplemented

    def then(self, outer: Any) -> Any:
        """Return ``outer`` after ``self``: (g.then(f))(x) = f(g(x)), exact or refused."""
        return after(outer, self)


OFFSET = "offset"
"""Axis of layouts of shared memory, as input or output."""


def takes_offsets(layout: Any) -> bool:
    """Return whether a layout maps offsets to the coordinates of a tile.

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> shared = LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})
        >>> takes_offsets(shared), takes_offsets(shared.inverse())
        (True, False)
    """
    outputs = layout.out_dims
    named = set(outputs) == {f"dim{place}" for place in range(len(outputs))}
    return named and bool(outputs) and OFFSET in layout.in_dims
