"""The global tensor of a statement: shape, strides, element type, what is known of its base address.

Main definitions: ``Tensor``, ``tensor_of``. Arrays of other libraries are read by ``arrays``, names of their element
types by ``dtypes``.

Notation: shapes and strides count elements, outermost dimension first.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.limits import PROBLEM_EXTENT, PROBLEM_RANK
from layoutalg.proofs.dtypes import dtype_name

CHECK = Checker("LA375", "this is not a tensor")
BASE_ALIGN_BYTES = 256
"""What allocators of device memory promise."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory.

    Args:
        shape: Extents in elements, outermost dimension first.
        stride: Element strides, same order; None for row-major.
        dtype: Element type: a TensorMap name (``"bf16"``), or numpy's, torch's, CuTe's or Triton's.
        base_align_bytes: Power of two that divides the base address.

    Raises: MalformedError: LA375.

    Example:
        >>> Tensor((1024, 512), dtype="bfloat16")
        Tensor(shape=(1024, 512), stride=(512, 1), dtype='bf16', base_align_bytes=256)
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    dtype: str = "bf16"
    base_align_bytes: int = BASE_ALIGN_BYTES

    def __post_init__(self) -> None:
        shape = CHECK.vector(self.shape, "shape")
        if not 1 <= len(shape) <= PROBLEM_RANK:
            raise CHECK.malformed("shape", f"must have 1 to {PROBLEM_RANK} dimensions", shape)
        for place, extent in enumerate(shape):
            CHECK.integer(extent, f"shape[{place}]", 1, PROBLEM_EXTENT + 1)
        stride = row_major(shape) if self.stride is None else CHECK.vector(self.stride, "stride", len(shape))
        align = CHECK.integer(self.base_align_bytes, "base_align_bytes", 1, PROBLEM_EXTENT + 1)
        if align & (align - 1):
            raise CHECK.malformed("base_align_bytes", "must be a power of two", align)
        dtype = dtype_name(self.dtype)
        for name, value in (("shape", shape), ("stride", stride), ("dtype", dtype), ("base_align_bytes", align)):
            object.__setattr__(self, name, value)

    @property
    def strides(self) -> tuple[int, ...]:
        """The element strides."""
        return self.stride or ()

    def __str__(self) -> str:
        shape, stride = (",".join(map(str, numbers)) for numbers in (self.shape, self.strides))
        return f"{self.dtype} ({shape}):({stride})"


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose last dimension is contiguous.

    Example:
        >>> row_major((2, 3, 4))
        (12, 4, 1)
    """
    strides = [1]
    for extent in shape[:0:-1]:
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


def tensor_of(value: object) -> Tensor:
    """Return a tensor from whatever holds one.

    Args:
        value: A ``Tensor``; ``(shape, stride, dtype)`` or ``(shape, dtype)``; an array or tensor of another library
            (see ``arrays``), of which nothing but the description is read.

    Raises: MalformedError: LA375.

    Example:
        >>> import numpy as np
        >>> tensor_of(((64, 32), None, "f16")).strides, tensor_of(np.zeros((4, 6), np.int32)[:, ::2]).strides
        ((32, 1), (6, 2))
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (tuple, list)):
        if len(value) == 2:
            return Tensor(value[0], None, value[1])
        if len(value) != 3:
            raise CHECK.malformed("tensor", "must be a Tensor, (shape, stride, dtype) or an array", value)
        return Tensor(*value)
    from layoutalg.proofs.arrays import described  # loads ctypes, for foreign arrays alone

    try:
        found = described(value)
    except LayoutError:
        raise
    except Exception:  # whatever foreign code raises, the description cannot be read
        found = None
    if found is None:
        raise CHECK.malformed("tensor", "must be a Tensor, (shape, stride, dtype) or an array", value)
    aligned = BASE_ALIGN_BYTES if not found.address else min(BASE_ALIGN_BYTES, found.address & -found.address)
    return Tensor(found.shape, found.stride, dtype_name(found.dtype), aligned)
