"""A global tensor: shape, strides, element type and base alignment.

Shapes and strides count elements, outermost dimension first. A size is an integer or the text of a polynomial in names
(``"K"``, ``"2*K + 8"``); names stand for integers >= 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.limits import PROBLEM_EXTENT, PROBLEM_RANK
from layoutalg.ground.picture import Shown
from layoutalg.ground.polynomial import Polynomial, names_of, product_of, require_names, sizes_of, whole_at
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.dtypes import dtype_name, element_type, stated_type

Size: TypeAlias = Any
"""An integer, or the text of a polynomial in names."""
CHECK = Checker("LA375", "invalid tensor")
NAMED = Checker("LA860", "tensor sizes must be numbers here")
BASE_ALIGN_BYTES = 256
"""The alignment that device allocators guarantee."""


@dataclass(frozen=True, slots=True, repr=False)
class Tensor(Shown):
    """A tensor in global memory.

    It maps a coordinate to the element offset sum of coordinate * stride; with names, one such function for all sizes
    that meet the assumptions.

    Args:
        shape: Extents in elements, outermost dimension first.
        stride: Element strides, same order; None for row-major.
        dtype: Element type: a TensorMap name (``"bf16"``), or a numpy, torch, CuTe or Triton one. The field is the
            TensorMap name, ``u8`` for ``e4m3``.
        base_align_bytes: Power of two that divides the base address.
        assume: Conditions on the names in shape and stride.
        element: The type that ``dtype`` named, ``e4m3``; used only if a TensorMap copies it as ``dtype``.

    Example:
        >>> Tensor((1024, 512), dtype="bfloat16")
        Tensor(shape=(1024, 512), stride=(512, 1), dtype='bf16', base_align_bytes=256)
        >>> Tensor(("B", "M", "K"), assume=("K % 8 == 0",))  # doctest: +NORMALIZE_WHITESPACE
        Tensor(shape=('B', 'M', 'K'), stride=('K*M', 'K', 1), dtype='bf16', base_align_bytes=256,
               assume=('K % 8 == 0',))
    """

    shape: tuple[Size, ...]
    stride: tuple[Size, ...] | None = None
    dtype: str = "bf16"
    base_align_bytes: int = BASE_ALIGN_BYTES
    assume: tuple[str, ...] = ()
    element: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        shape = _sizes(self.shape, "shape")
        if not 1 <= len(shape) <= PROBLEM_RANK:
            raise CHECK.malformed("shape", f"must have 1 to {PROBLEM_RANK} dimensions", shape)
        for place, extent in enumerate(shape):
            if isinstance(extent, int):
                CHECK.integer(extent, f"shape[{place}]", 1, PROBLEM_EXTENT + 1)
        stride = row_major(shape) if self.stride is None else _sizes(self.stride, "stride", len(shape))
        align = CHECK.integer(self.base_align_bytes, "base_align_bytes", 1, PROBLEM_EXTENT + 1)
        if align & (align - 1):
            raise CHECK.malformed("base_align_bytes", "must be a power of two", align)
        dtype, element = dtype_name(self.dtype), element_type(self.dtype).name
        named = element_type(self.element if not isinstance(self.element, str) or self.element else element)
        if element == dtype == named.tensormap:
            element = named.name
        assume = tuple(map(str, _assumed(self.assume).conditions))
        read = {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": align, "assume": assume}
        for name, value in {**read, "element": element}.items():
            object.__setattr__(self, name, value)

    @property
    def strides(self) -> tuple[Size, ...]:
        """The element strides."""
        return self.stride or ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names in shape and stride, sorted.

        Example:
            >>> Tensor(("M", "K")).names, Tensor((8, 8)).names
            (('K', 'M'), ())
        """
        stated = (polynomial(size) for size in (*self.shape, *self.strides) if not isinstance(size, int))
        return tuple(sorted(names_of(stated)))

    @property
    def assumptions(self) -> Assumptions:
        """The conditions on the names."""
        return Assumptions(self.assume)

    def at(self, sizes: Mapping[str, int]) -> Tensor:
        """Return the tensor at these sizes; the assumptions are not checked.

        Example:
            >>> Tensor(("M", "K"), ("K + 8", 1)).at({"M": 4, "K": 64})
            Tensor(shape=(4, 64), stride=(72, 1), dtype='bf16', base_align_bytes=256)
        """
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        shape, stride = (
            tuple(whole_at(polynomial(entry), values, str(self)) for entry in entries)
            for entries in (self.shape, self.strides)
        )
        return Tensor(shape, stride, self.element, self.base_align_bytes)

    def __repr__(self) -> str:
        known = f", assume={self.assume!r}" if self.assume else ""
        shape, stride, dtype = map(repr, (self.shape, self.stride, self.element))
        return f"Tensor(shape={shape}, stride={stride}, dtype={dtype}, base_align_bytes={self.base_align_bytes}{known})"

    def __str__(self) -> str:
        shape, stride = (",".join(map(str, numbers)) for numbers in (self.shape, self.strides))
        known = f" where {', '.join(self.assume)}" if self.assume else ""
        return f"{self.element} ({shape}):({stride}){known}"


def size_text(value: Polynomial) -> Size:
    """Return a polynomial as a size: an integer if constant, otherwise its text.

    Example:
        >>> size_text(polynomial("3 + 4")), size_text(polynomial("K*2"))
        (7, '2*K')
    """
    whole = value.as_int()
    return str(value) if whole is None else whole


def _sizes(values: object, argument: str, length: int | None = None) -> tuple[Size, ...]:
    """Return sizes: integers as they are, names and polynomials as text."""
    if not isinstance(values, (tuple, list)) or not any(_named(entry) for entry in values):
        return CHECK.vector(values, argument, length)
    if length is not None and len(values) != length:
        raise CHECK.malformed(argument, f"must have {length} entries", values)
    found = [
        size_text(polynomial(entry)) if _named(entry) else CHECK.integer(entry, f"{argument}[{place}]")
        for place, entry in enumerate(values)
    ]
    return tuple(found)


def _named(entry: object) -> bool:
    return isinstance(entry, (str, Polynomial)) or hasattr(entry, "free_symbols")


def _assumed(given: object) -> Assumptions:
    if isinstance(given, Assumptions):
        return given
    if not isinstance(given, Iterable):
        raise CHECK.malformed("assume", "must be conditions such as 'K % 8 == 0'", given)
    return Assumptions(given)


def row_major(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    """Return the strides of a dense tensor whose last dimension is contiguous.

    Example:
        >>> row_major((2, 3, 4)), row_major(("M", 4, "K"))
        ((12, 4, 1), ('4*K', 'K', 1))
    """
    if not all(isinstance(extent, int) for extent in shape):
        known = [polynomial(extent) for extent in shape]
        return tuple(size_text(product_of(known[place + 1 :])) for place in range(len(shape)))
    strides = [1]
    for extent in shape[:0:-1]:
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


def tensor_of(value: object, *given: object, named: bool = False, dtype: object = None) -> Tensor:
    """Return a ``Tensor`` from any supported description.

    Args:
        value: A ``Tensor``; ``(shape, stride, dtype)`` or ``(shape, dtype)``; an array or tensor of another library,
            of which only the description is read (see ``arrays``).
        given: Layouts of its tiles; an element type in their texts must agree.
        named: Whether sizes may be names.
        dtype: The type that a ``None`` in ``value`` stands for; None for the type in the texts.

    Example:
        >>> import numpy as np
        >>> tensor_of(((64, 32), None, "f16")).strides, tensor_of(np.zeros((4, 6), np.int32)[:, ::2]).strides
        ((32, 1), (6, 2))
    """
    if isinstance(value, (tuple, list)) and len(value) in (2, 3):
        if value[-1] is None:
            value = (*value[:-1], stated_type(dtype, *given, check=CHECK).name)
        value = Tensor(value[0], None, value[1]) if len(value) == 2 else Tensor(*value)
    if isinstance(value, Tensor):
        if value.names and not named:
            rule = "must have no names; tensormap() plans for all sizes at once, Tensor.at() inserts numbers"
            raise NAMED.malformed("tensor", rule, str(value))
        stated_type(value.element, *given, check=CHECK, argument="dtype of the tensor")
        return value
    if isinstance(value, (tuple, list)):
        raise CHECK.malformed("tensor", "must be a Tensor, (shape, stride, dtype) or an array", value)
    from layoutalg.notation.arrays import described  # loads ctypes: only for foreign arrays

    try:
        found = described(value)
    except LayoutError:
        raise
    except Exception:  # foreign code may raise anything
        found = None
    if found is None:
        raise CHECK.malformed("tensor", "must be a Tensor, (shape, stride, dtype) or an array", value)
    aligned = BASE_ALIGN_BYTES if not found.address else min(BASE_ALIGN_BYTES, found.address & -found.address)
    return tensor_of(Tensor(found.shape, found.stride, element_type(found.dtype).name, aligned), *given)
