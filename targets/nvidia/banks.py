"""Shared-memory banks of NVIDIA GPUs: how many turns one access of a warp takes.

Main statements, all measured: 32 banks of 4 bytes; lanes that touch the same word are served together, also with
sub-word elements; an access of 64 bits per lane is served as two groups of 16 lanes, one of 128 bits as four groups of
8, each in as many turns as its busiest bank has distinct words. In a *load*, two neighbouring groups merge if every
lane shares its address with lane ^ 1, or every lane with lane ^ 2; they never do in stores, ``ldmatrix``, ``stmatrix``.

Inactive lanes touch nothing: a fully inactive group takes no turn, and an inactive lane matches any address, so
neighbouring groups of a load merge if their pairs of active lanes agree. ``ldmatrix`` and ``stmatrix`` of one and two
matrices (x1, x2) read 8 and 16 addresses in groups of 8.

References: CUDA C++ programming guide, shared memory (banks and words). The groups and their merging are undocumented:
1,800 accesses counted on an H200, ``tests/data/measured/banks_dev.npz``, ``benchmarks/device.py banks``; for narrow
matrices and inactive lanes, 1,080 on an H100, ``matrix_banks_dev.npz``, ``benchmarks/device.py banks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.targets import bank_counting
from layoutalg.targets.bank_counting import BANKS, JOINS, LANES, WORD_BYTES, Offsets

KINDS = ("load", "store", "ldmatrix", "stmatrix")
__all__ = ["ACCESS_BITS", "BANKS", "KINDS", "LANES", "WORD_BYTES", "layout_wavefronts", "wavefronts"]
Lanes: TypeAlias = "Sequence[int | None] | npt.NDArray[Any]"
ACCESS_BITS = (8, 16, 32, 64, 128)


def wavefronts(offsets_bytes: Lanes, access_bits: int, kind: str = "load") -> int:
    """Return the turns that shared memory needs for one access of a warp.

    Args:
        offsets_bytes: Byte offset of each of the 32 lanes, multiples of the access, None for an inactive lane; for
            ``ldmatrix`` and ``stmatrix`` the row that each lane supplies: 8 offsets for x1, 16 for x2, 32 for x4.
        access_bits: Bits per lane: 8, 16, 32, 64 or 128.
        kind: ``"load"``, ``"store"``, ``"ldmatrix"`` or ``"stmatrix"``.

    Example:
        >>> wavefronts([128 * lane for lane in range(32)], 32), wavefronts([16 * lane for lane in range(32)], 128)
        (32, 4)
        >>> wavefronts([128 * row for row in range(8)], 128, "ldmatrix"), wavefronts([0] + [None] * 31, 32)
        (8, 1)
    """
    bits = _check(access_bits, kind)
    offsets = checked_offsets(offsets_bytes, bits // 8, _counts(kind))
    joins = JOINS if kind == "load" and bits > 32 else ()
    groups = bank_counting.groups(len(offsets), bits)
    turns, _ = bank_counting.group_turns(groups, joins, bits // 8, BANKS, *bank_counting.arrays(offsets))
    return int(turns.sum())


def checked_offsets(
    offsets: object, size: int, counts: tuple[int, ...], argument: str = "offsets_bytes", each: str = "one per lane"
) -> Offsets:
    """Check lane offsets: multiples of ``size``, one of ``counts`` many, None for an inactive lane."""
    rule = f"must have {' or '.join(map(str, counts))} integers, {each} (None for an inactive lane)"
    if isinstance(offsets, np.ndarray):
        offsets = offsets.tolist() if offsets.dtype.kind in "iuO" else None
    if not isinstance(offsets, list | tuple) or len(offsets) not in counts:
        raise malformed(argument, rule, shown(offsets))
    found: Offsets = []
    for lane, offset in enumerate(offsets):
        if offset is None:
            found.append(None)
            continue
        if isinstance(offset, bool) or not isinstance(offset, int | np.integer):
            raise malformed(argument, rule, f"{shown(offset)} in lane {lane}")
        if offset < 0 or offset >= 2**62 or offset % size:
            within = f"must be non-negative multiples of {size} below 2**62"
            raise malformed(argument, within, f"{shown(int(offset))} in lane {lane}")
        found.append(int(offset))
    return found


def layout_wavefronts(access: LinearLayout, element_bits: int, kind: str = "load") -> int:
    """Return ``wavefronts`` of a linear layout.

    Args:
        access: (register, lane), in this order, -> offset in elements, output axes flattened; ``lane`` has 32 entries,
            for ``ldmatrix`` and ``stmatrix`` 8, 16 or 32, and ``register`` counts the contiguous elements of one lane.
        element_bits: Bits per element, a power of two.
        kind: As for ``wavefronts``.

    Example:
        >>> lanes = [(32,), (64,), (128,), (256,), (512,)]
        >>> rows = LinearLayout.from_bases({"register": [], "lane": lanes}, {"offset": 1024})
        >>> layout_wavefronts(rows, 32), layout_wavefronts(rows, 8)
        (32, 8)
    """
    if not isinstance(access, LinearLayout) or tuple(access.in_dims) != ("register", "lane"):
        rule = "must map the axes 'register' and 'lane', in this order (layoutalg.banks accepts any axes)"
        raise malformed("access", rule, access)
    counts = _counts(kind)
    if access.in_dims["lane"] not in counts:
        raise malformed("access", f"must have {' or '.join(map(str, counts))} lanes", access.in_dims["lane"])
    registers = access.in_dims["register"]
    bits = registers.bit_length() - 1
    if isinstance(element_bits, bool) or not isinstance(element_bits, (int, np.integer)) or element_bits < 1:
        raise malformed("element_bits", "must be a positive integer", element_bits)
    element_bits = int(element_bits)
    lanes = access.columns[bits:]
    low = registers - 1
    if access.columns[:bits] != tuple(1 << bit for bit in range(bits)) or any(
        column & low for column in (*lanes, access.constant)
    ):
        rule = "must give every lane contiguous elements, aligned to their number (layoutalg.banks accepts any)"
        raise malformed("access", rule, access)
    starts = [matrix.apply(lanes, lane) ^ access.constant for lane in range(1 << len(lanes))]
    return wavefronts([element_bits * start >> 3 for start in starts], element_bits * registers, kind)


def _counts(kind: object) -> tuple[int, ...]:
    """Return the legal numbers of address lanes."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise malformed("kind", f"must be one of {KINDS}", kind)
    return (LANES,) if kind in ("load", "store") else (8, 16, LANES)


def _check(access_bits: object, kind: object) -> int:
    """Check the bits of one lane's access and return them as a Python integer."""
    _counts(kind)
    allowed = ACCESS_BITS if kind in ("load", "store") else (128,)
    integral = isinstance(access_bits, (int, np.integer)) and not isinstance(access_bits, bool)
    if not integral or access_bits not in allowed:
        raise malformed("access_bits", f"must be one of {allowed} for a {kind}", access_bits)
    return int(access_bits)  # type: ignore[call-overload, no-any-return]


def malformed(argument: str, rule: str, actual: object) -> MalformedError:
    """Return the error for an invalid access: the argument, the rule and the offending value."""
    return MalformedError(
        Diagnostic(
            code="LA709",
            what="invalid shared-memory access of a warp",
            where=(argument,),
            because=f"{argument} {rule}, not {actual if isinstance(actual, str) else shown(actual)}",
            witness={"actual": actual},
        )
    )
