"""Four rows at a time: ``tile::gather4`` and ``tile::scatter4`` as uses of a tiled map, as documented.

Mathematically: four boxes of one row each, at rows r0..r3 and one common first column, consecutive in shared memory
like a tiled box of four rows.

Implementation notes: documented only; no available device has the instructions (ptxas refuses them below compute
capability 10.0).

References: PTX ISA 9.1, sections 5.5.3.4 and 9.7.9.27; what ptxas 13.0 accepts per architecture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from layoutalg.ground.errors import shown
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.tensormap.checks import violations
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, TensorMap, checked_ints, malformed
from layoutalg.targets.registry import having, lookup

GATHER_TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gather4 to shared::cta": having("gather4"),
        "gather4 to shared::cluster": having("scatter4"),
        "scatter4": having("scatter4"),
    }
)
"""Architectures for which ptxas 13.0 accepts each form."""
_COORDS = 5
_COORD_LIMIT = 1 << 31


def row_violations(
    tm: TensorMap, coords: Sequence[int], target: str, form: str = "gather4 to shared::cta"
) -> tuple[Violation, ...]:
    """Return every documented rule that gathering or scattering four rows breaks.

    Args:
        tm: The map.
        coords: First column, then the four rows.
        target: Architecture.
        form: A name of ``GATHER_TARGETS``.

    Example:
        >>> tm = TensorMap("bf16", (64, 100), (128,), (64, 1), swizzle="128B")
        >>> row_violations(tm, (0, 2, 5, 0, 9), "sm_100a")
        ()
        >>> [entry.rule for entry in row_violations(tm, (0, 2, 5, 0, 9), "sm_90a")]
        ['GATHER_ARCH']
    """
    if not isinstance(form, str) or form not in GATHER_TARGETS:
        raise malformed("LA856", f"unknown form {shown(form)}", "the forms are " + ", ".join(GATHER_TARGETS))
    lookup(target)
    starts = checked_ints("coords", coords, "LA856")
    found = list(violations(tm, target, "documented"))
    if target not in GATHER_TARGETS[form]:
        message = f"{target} does not have {form}; these do: " + ", ".join(GATHER_TARGETS[form])
        found.append(Violation("GATHER_ARCH", message, "target"))
    if tm.rank != 2:
        found.append(Violation("GATHER_RANK", f"dims has {tm.rank} entries, not 2", "dims"))
    elif tm.box[1] != 1:
        found.append(Violation("GATHER_BOX", f"box[1] = {tm.box[1]}, not 1", "box", 1))
    if tm.interleave != "NONE":
        found.append(Violation("GATHER_INTERLEAVE", f"interleave is {tm.interleave}, not NONE", "interleave"))
    if len(starts) != _COORDS:
        because = f"got {len(starts)}"
        raise malformed("LA856", "coords must be the first column and four rows", because)
    for index, start in enumerate(starts):
        if not -_COORD_LIMIT <= start < _COORD_LIMIT:
            message = f"coords[{index}] = {start} is not a signed 32-bit integer"
            found.append(Violation("COORD_RANGE", message, "coords", index))
    if starts[0] * DTYPES[tm.dtype].bits % 128:
        message = f"coords[0] = {starts[0]} is not a multiple of 16 bytes"
        found.append(Violation("BOX_ADDR", message, "coords", 0))
    if form == "scatter4" and min(starts) < 0:
        found.append(Violation("STORE", f"a store starts at a negative coordinate: {starts}", "coords"))
    return tuple(found)


def gathered_boxes(tm: TensorMap, coords: Sequence[int], target: str = "sm_100a") -> tuple[tuple[int, int], ...]:
    """Return the start (column, row) of each of the four boxes, in shared-memory order.

    Example:
        >>> gathered_boxes(TensorMap("bf16", (64, 100), (128,), (64, 1)), (0, 2, 5, 0, 9))
        ((0, 2), (0, 5), (0, 0), (0, 9))
    """
    broken = row_violations(tm, coords, target)
    if broken:
        raise malformed("LA856", "these rows cannot be gathered", "; ".join(str(entry) for entry in broken))
    column, *rows = (int(value) for value in coords)
    return tuple((column, row) for row in rows)
