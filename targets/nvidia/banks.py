"""Shared-memory banks of NVIDIA GPUs: how many turns one access of a warp takes.

Main definitions: ``wavefronts`` (any byte offsets), ``layout_wavefronts`` (linear layouts, by ranks).

Main statements, all measured: 32 banks of 4 bytes; lanes that touch the same word are served together, elements below a
word included; an access of 64 bits per lane is served as two groups of 16 lanes, one of 128 bits as four groups of 8,
each in as many turns as its busiest bank has different words. In a *load* two neighbouring groups are one when every
lane shares its address with lane ^ 1, or every lane with lane ^ 2; stores, ``ldmatrix`` and ``stmatrix`` never do so.

References: CUDA C++ programming guide, shared memory (banks and words). The groups and the exception are not in
it: 1,800 accesses counted on an H200, ``tests/data/measured/banks_dev.npz``, ``benchmarks/device_banks.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg import f2
from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.f2 import LinearLayout

BANKS = 32
WORD_BYTES = 4
LANES = 32
KINDS = ("load", "store", "ldmatrix", "stmatrix")
ACCESS_BITS = (8, 16, 32, 64, 128)


def wavefronts(offsets_bytes: npt.ArrayLike, access_bits: int, kind: str = "load") -> int:
    """Return the turns that shared memory needs for one access of a warp, all lanes active.

    Args:
        offsets_bytes: Byte offset of each of the 32 lanes, multiples of the access; for ``ldmatrix`` and ``stmatrix``
            (x4) the row that each lane supplies.
        access_bits: Bits per lane: 8, 16, 32, 64 or 128.
        kind: ``"load"``, ``"store"``, ``"ldmatrix"`` or ``"stmatrix"``.

    Raises:
        MalformedError: LA709, an argument is not of this kind.

    Example:
        >>> wavefronts([128 * lane for lane in range(32)], 32), wavefronts([16 * lane for lane in range(32)], 128)
        (32, 4)

    Source: measured; see the head of the file.
    """
    bits = _check(access_bits, kind)
    size = bits // 8
    offsets = _offsets(offsets_bytes, size)
    lanes = np.arange(LANES)
    shared = any(np.array_equal(offsets, offsets[lanes ^ step]) for step in (1, 2))
    touched = offsets[:, None] // WORD_BYTES + np.arange(max(1, size // WORD_BYTES))
    groups = touched.reshape(_groups(bits, kind, shared), -1)
    return sum(int(np.bincount(np.unique(group) % BANKS).max()) for group in groups)


def _offsets(offsets_bytes: npt.ArrayLike, size: int) -> npt.NDArray[np.int64]:
    """Return the checked offsets of all lanes."""
    try:
        given = np.asarray(offsets_bytes)
    except (ValueError, OverflowError):
        raise _malformed("offsets_bytes", "must hold 32 integers, one per lane", type(offsets_bytes).__name__) from None
    if given.shape != (LANES,) or given.dtype.kind not in "iu":
        raise _malformed("offsets_bytes", "must hold 32 integers, one per lane", f"{given.dtype} {given.shape}")
    for lane, offset in enumerate(given.tolist()):
        if offset < 0 or offset >= 2**62 or offset % size:
            rule = f"must be non-negative multiples of {size} below 2**62"
            raise _malformed("offsets_bytes", rule, f"{offset} in lane {lane}")
    return given.astype(np.int64)


def layout_wavefronts(access: LinearLayout, element_bits: int, kind: str = "load") -> int:
    """Return ``wavefronts`` of a linear layout in closed form, from ranks.

    Mathematically: the groups are cosets of one space of lanes and take equally many turns, so the answer is the number
    of groups times ``layoutalg.f2.wavefronts`` of one.

    Args:
        access: (register, lane), in this order, -> offset in elements, the output axes taken together; ``lane`` has 32
            entries and ``register`` counts the neighbouring elements of one lane's access.
        element_bits: Bits per element, a power of two.
        kind: As for ``wavefronts``.

    Raises:
        MalformedError: LA709, other axes, registers that are not neighbours, or an access of another size.

    Example:
        >>> lanes = [(32,), (64,), (128,), (256,), (512,)]
        >>> rows = LinearLayout.from_bases({"register": [], "lane": lanes}, {"offset": 1024})
        >>> layout_wavefronts(rows, 32), layout_wavefronts(rows, 8)
        (32, 8)

    Source: ``wavefronts``; the rank form is arXiv 2505.23819, section 5.4.
    """
    if not isinstance(access, LinearLayout) or tuple(access.in_dims) != ("register", "lane"):
        raise _malformed("access", "must map the axes 'register' and 'lane', in this order", access)
    if access.in_dims["lane"] != LANES:
        raise _malformed("access", "must have 32 lanes", access.in_dims["lane"])
    registers = access.in_dims["register"]
    bits = registers.bit_length() - 1
    if isinstance(element_bits, bool) or not isinstance(element_bits, (int, np.integer)) or element_bits < 1:
        raise _malformed("element_bits", "must be a positive integer", element_bits)
    element_bits = int(element_bits)
    _check(element_bits * registers, kind)
    lanes = access.columns[bits:]
    low = registers - 1
    if access.columns[:bits] != tuple(1 << bit for bit in range(bits)) or any(
        column & low for column in (*lanes, access.constant)
    ):
        raise _malformed("access", "must give every lane neighbouring elements, aligned to their number", access)
    groups = _groups(element_bits * registers, kind, 0 in lanes[:2])
    kept = 5 - (groups.bit_length() - 1)
    group = LinearLayout(
        (("register", bits), ("lane", kept)), access.outputs, access.columns[: bits + kept], access.constant
    )
    return groups * f2.wavefronts(group, element_bits)


def _groups(access_bits: int, kind: str, shared: bool) -> int:
    """Return the number of groups of lanes that are served one after the other."""
    groups = max(1, access_bits // 32)
    return groups // 2 if groups > 1 and shared and kind == "load" else groups


def _check(access_bits: object, kind: object) -> int:
    """Return the bits of one lane's access, as a Python integer."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise _malformed("kind", f"must be one of {KINDS}", kind)
    allowed = ACCESS_BITS if kind in ("load", "store") else (128,)
    integral = isinstance(access_bits, (int, np.integer)) and not isinstance(access_bits, bool)
    if not integral or access_bits not in allowed:
        raise _malformed("access_bits", f"must be one of {allowed} for a {kind}", access_bits)
    return int(access_bits)  # type: ignore[call-overload, no-any-return]


def _malformed(argument: str, rule: str, actual: object) -> MalformedError:
    return MalformedError(
        Diagnostic(
            code="LA709",
            what="this is no shared-memory access of a warp",
            where=(argument,),
            because=f"{argument} {rule}, not {actual}",
            witness={"actual": actual},
        )
    )
