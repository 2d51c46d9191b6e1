"""The limits of tensor maps: every number once, and every enforced rule as one predicate on numbers of any kind.

Main statements: on the measured target, a driver accepts a map iff ``conditions`` hold for every rule of ``ENFORCED``.

Implementation notes: predicates use only comparisons, ``& | + - * //``, so they run on integers, on numpy arrays (one
column per field, one row per map) and on z3 bit-vectors of 64 bits with values below 2^62. Which document or device
states a rule is in ``rules``, what it says in words in ``checks``.

References: CUDA driver API 13.0, ``cuTensorMapEncodeTiled``; PTX ISA 9.1 sections 5.5 and 9.7.9.27; CUDA programming
guide 13.0, technical specifications per compute capability.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, INTERLEAVE_CODES, OOB_FILL_CODES, TensorMap

MAX_RANK = 5
MAX_DIM_ENCODED = 1 << 32
"""Largest extent that the driver encodes."""
MAX_DIM = 1 << 31
"""Largest extent that the engine can use: loads through a larger one raised an illegal instruction."""
MAX_BOX = 256
MAX_BOX_BYTES = 233_472
MAX_ELEMENT_STRIDE = 8
STRIDE_LIMIT_BYTES = 1 << 40
ADDRESS_LIMIT = 1 << 57
GLOBAL_ALIGN_BYTES = 16
WIDE_ALIGN_BYTES = 32
"""Alignment for interleave 32B and the two 16-byte packed types."""
MAX_SMEM_BYTES = 232_448
SMEM_DESTINATION_ALIGN_BYTES = 128
STORE_CHUNK_BYTES = 16
MAX_PHASE_BYTES = (1 << 20) - 1
"""Bytes that one barrier phase can expect (rule TX)."""
COORD_LIMIT = 1 << 31
"""Coordinates are signed 32-bit integers (rule COORD_RANGE)."""

RANGES: Mapping[str, tuple[str, int, int]] = MappingProxyType(
    {
        "BASE_RANGE": ("base_address", 0, ADDRESS_LIMIT - 1),
        "DIM_RANGE": ("dims", 1, MAX_DIM_ENCODED),
        "DIM_EXECUTE": ("dims", 1, MAX_DIM),
        "STRIDE_RANGE": ("strides_bytes", 0, STRIDE_LIMIT_BYTES - 1),
        "BOX_RANGE": ("box", 1, MAX_BOX),
        "ELEM_STRIDE": ("element_strides", 1, MAX_ELEMENT_STRIDE),
    }
)
"""Rules on single numbers: the field, the smallest and the largest legal value."""
ALIGNED: Mapping[str, str] = MappingProxyType({"BASE_ALIGN": "base_address", "STRIDE_ALIGN": "strides_bytes"})
"""Rules on multiples of ``GLOBAL_ALIGN_BYTES`` or ``WIDE_ALIGN_BYTES``, and their fields."""
FIRST_PACKED = min(entry.code for entry in DTYPES.values() if entry.packed)
FIRST_ATOM = min(entry.map_code for entry in SWIZZLE_TABLE.values() if entry.compute_capability >= (10, 0))
"""The types and the swizzles of compute capability 10.0 have the driver's highest numbers."""
FIRST_WIDE = DTYPES["u4_align16"].code
_SPANS = tuple((entry.map_code, 8 * entry.span_bytes) for name, entry in SWIZZLE_TABLE.items() if name != "NONE")
"""By the driver's numbers, which count from 1."""
_NO_INTERLEAVE, _WIDE_INTERLEAVE = INTERLEAVE_CODES["NONE"], INTERLEAVE_CODES["32B"]

Condition: TypeAlias = tuple[str, "int | None", Any]
"""A field, the position inside it, and whether the rule holds there: a truth value, an array of them, or a term."""


class Numbers(NamedTuple):
    """The fields of a map as numbers of any kind; enumerations are the driver's."""

    dtype: Any
    bits: Any  # bits of an element in global memory
    slot_bits: Any  # bits of an element in shared memory
    is_float: Any  # whether the driver treats the type as floating point
    rank: Any  # number of modes; the sequences may be longer, padded with numbers that no rule refuses
    base_address: Any
    dims: Sequence[Any]
    strides_bytes: Sequence[Any]
    box: Sequence[Any]
    element_strides: Sequence[Any]
    interleave: Any
    swizzle: Any
    oob_fill: Any

    @classmethod
    def of(cls, tm: TensorMap) -> Numbers:
        """Return the numbers of one map."""
        dtype = DTYPES[tm.dtype]
        slot = dtype.bits if dtype.slot_bytes is None else dtype.slot_bytes // 2  # slot_bytes hold 16 elements
        return cls(
            dtype.code, dtype.bits, slot, dtype.is_float, len(tm.dims), tm.base_address, tm.dims, tm.strides_bytes,
            tm.box, tm.element_strides, INTERLEAVE_CODES[tm.interleave], SWIZZLE_TABLE[tm.swizzle].map_code,
            OOB_FILL_CODES[tm.oob_fill],
        )  # fmt: skip

    def each(self, field: str) -> Iterable[tuple[int | None, Any]]:
        """Return every number of a field with its position."""
        values = getattr(self, field)
        return enumerate(values) if isinstance(values, list | tuple) else ((None, values),)


def within(value: Any, low: int, high: int) -> Any:
    """Return whether low <= value <= high."""
    return (value >= low) & (value <= high)


def conditions(rule: str, numbers: Numbers) -> Iterator[Condition]:
    """Yield where a rule can be broken, and whether it holds there.

    Args:
        rule: A rule of ``ENFORCED`` or ``RANGES``.
        numbers: Fields of a map, or of many.

    Example:
        >>> tall = Numbers.of(TensorMap("u8", (16, 2**32 + 1), (16,), (16, 1)))
        >>> list(conditions("DIM_RANGE", tall))
        [('dims', 0, True), ('dims', 1, False)]
    """
    if rule in RANGES:
        field, low, high = RANGES[rule]
        for at, value in numbers.each(field):
            yield field, at, (value >= low) & (value <= high)
    elif rule in ALIGNED:
        narrow = (numbers.interleave != _WIDE_INTERLEAVE) & (numbers.dtype < FIRST_WIDE)
        for at, value in numbers.each(ALIGNED[rule]):
            coarse = (value & (WIDE_ALIGN_BYTES - 1)) == 0
            yield ALIGNED[rule], at, ((value & (GLOBAL_ALIGN_BYTES - 1)) == 0) & (narrow | coarse)
    else:
        yield from _OTHERS[rule](numbers)


def _rank(numbers: Numbers) -> Iterator[Condition]:
    plain = numbers.interleave == _NO_INTERLEAVE
    yield "dims", None, within(numbers.rank, 1, MAX_RANK) & (plain | (numbers.rank >= 3))


def _architecture(numbers: Numbers) -> Iterator[Condition]:
    yield "dtype", None, numbers.dtype < FIRST_PACKED
    yield "swizzle", None, numbers.swizzle < FIRST_ATOM


def _inner_row(numbers: Numbers) -> Iterator[Condition]:
    for extent in numbers.box[:1]:
        yield "box", 0, (extent * numbers.bits & (8 * GLOBAL_ALIGN_BYTES - 1)) == 0


def _swizzle_row(numbers: Numbers) -> Iterator[Condition]:
    interleaved = numbers.interleave != _NO_INTERLEAVE
    only = numbers.swizzle if isinstance(numbers.swizzle, int) else None
    spans = _SPANS if only is None else _SPANS[max(0, only - 1) : max(1, only)]  # of one map its own swizzle will do
    for extent in numbers.box[:1]:
        fits = ((numbers.swizzle != code) | (extent <= span_bits // numbers.slot_bits) for code, span_bits in spans)
        yield "box", 0, interleaved | functools.reduce(operator.and_, fits)


def _fill(numbers: Numbers) -> Iterator[Condition]:
    yield "oob_fill", None, (numbers.oob_fill != OOB_FILL_CODES["NAN"]) | numbers.is_float


def _whole_box(numbers: Numbers) -> Iterator[Condition]:
    # a box or a step below 1 breaks another rule; a step below 1 is counted as 1, so that nothing is divided by 0
    total, uncountable = numbers.bits // 8, numbers.rank < 1
    for extent, step in zip(numbers.box, numbers.element_strides, strict=True):
        uncountable = uncountable | (extent < 1) | (step < 1)
        total = total * (extent // (step + (step < 1) * (1 - step)))
    yield "box", None, (total <= MAX_BOX_BYTES) | uncountable


_OTHERS: Mapping[str, Callable[[Numbers], Iterator[Condition]]] = MappingProxyType(
    {
        "RANK": _rank,
        "ARCH_ATOM": _architecture,
        "BOX_INNER_16B": _inner_row,
        "SWIZZLE_INNER": _swizzle_row,
        "OOB_NAN": _fill,
        "BOX_SMEM": _whole_box,
    }
)
ENFORCED: tuple[str, ...] = (
    "RANK", "ARCH_ATOM", "BASE_ALIGN", "BASE_RANGE", "DIM_RANGE", "STRIDE_ALIGN", "STRIDE_RANGE", "BOX_RANGE",
    "BOX_INNER_16B", "ELEM_STRIDE", "SWIZZLE_INNER", "OOB_NAN", "BOX_SMEM",
)  # fmt: skip
"""The rules that decide acceptance on the measured device; BASE_RANGE is this library's own caution."""
