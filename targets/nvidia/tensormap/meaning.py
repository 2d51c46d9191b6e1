"""The function that a tensor map denotes, as layout values: where a tile is in shared memory, and what it reads.

Main statements: let c be a point of the loaded box, outermost mode first, ``loaded_counts`` points along each mode. The
shared side is c -> swizzle(sum over modes of c * pitch), with the inner pitch one element, the next ``row_pitch_bytes``
and every other the one before times its count: a total CuTe layout, swizzled. The global side is c -> base +
sum over modes of (start + step * c) * stride, defined exactly where every coordinate start + step * c is inside the
tensor: a piecewise layout whose guards are the bounds. A tile load writes at ``shared(c)`` the element at ``global(c)``
where that is defined and the fill elsewhere. The points of an interleaved map are slices: c has one more coordinate,
the last one, for the element within its slice, whose pitch and stride are one element.

References: PTX ISA 9.1 sections 5.5.3 to 5.5.7; measurements on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import Diagnostic, TargetRuleError, shown
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import RefusedMapError, violations
from layoutalg.targets.nvidia.tensormap.facts import (
    element_bytes,
    is_measured,
    loaded_counts,
    require_map,
    row_pitch_bytes,
    unit_bytes,
)
from layoutalg.targets.nvidia.tensormap.fields import TensorMap, checked_ints, malformed

if TYPE_CHECKING:
    from layoutalg.piecewise import PiecewiseLayout

Meaning: TypeAlias = "CuteLayout | ComposedLayout | PiecewiseLayout"
_COORDINATE = 2**31


def layout(
    tm: TensorMap,
    target: str = "sm_90a",
    *,
    side: str = "shared",
    unit: str = "element",
    coords: Sequence[int] | None = None,
) -> Meaning:
    """Return the function that a tensor map denotes, on one side of the copy.

    Mathematically: ``shared``: box coordinates, outermost mode first, to the offset in shared memory from a base
    aligned to the swizzle's period. ``global``: the same coordinates to the byte offset in global memory, defined
    where the element is inside the tensor, so that out of bounds is outside the domain.

    Args:
        tm: The map; breaking a rule of the target is an error.
        target: Architecture; without a measured device, the documented rules apply.
        side: ``"shared"`` or ``"global"``.
        unit: What shared offsets count: ``"element"`` or ``"byte"``. Global offsets are bytes with ``base_address``.
        coords: For the global side, the start coordinate in elements, innermost mode first, as for ``tile_load``; None
            leaves it symbolic, as the parameters ``start0``, ``start1``, ..., outermost mode first.

    Returns:
        Shared: a ``CuteLayout`` or, if swizzled, a ``ComposedLayout``; mode k is box dimension k, outermost first.
        Global: a ``PiecewiseLayout`` over ``dim0``, ``dim1``, ..., outermost first, with the output ``byte``.
        For an interleaved map either has one more dimension at the end: the elements of a slice.

    Example:
        >>> tm = TensorMap("bf16", (512, 1000), (1024,), (64, 64), swizzle="128B")
        >>> print(layout(tm))
        Sw<3,3,3> o 0 o (64,64):(64,1)
        >>> print(layout(TensorMap("bf16", (512, 1000), (1024,), (16, 64), swizzle="128B"), unit="byte"))
        Sw<3,4,3> o 0 o (64,16):(128,2)
        >>> edge = layout(tm, side="global", coords=(448, 960))
        >>> edge(dim0=39, dim1=63), edge.domain.count()
        ({'byte': 1023998}, 2560)
        >>> sliced = TensorMap("bf16", (56, 56, 16, 2), (896, 50176, 802816), (8, 4, 1, 1), interleave="16B")
        >>> print(layout(sliced))
        (1,1,4,8,8):(256,256,64,8,1)

    Laws: on the recorded loads, the image of ``tile_load`` is the shared side after the inverse of the global side.
    Source: measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0); ATOM swizzles: PTX ISA 9.1 section 5.5.7.
    """
    require_map(tm, "layout")
    for name, value, known in (("side", side, ("shared", "global")), ("unit", unit, ("element", "byte"))):
        if not isinstance(value, str) or value not in known:
            raise malformed("LA804", f"unknown {name} {shown(value)}", f"{name} must be one of {', '.join(known)}")
    found = violations(tm, target, "enforced" if is_measured(target) else "documented")
    if found:
        raise _broken(tm, found)
    if side == "shared":
        return _shared(tm, element_bytes(tm.dtype) if unit == "byte" else 1)
    return _global(tm, coords)


def _broken(tm: TensorMap, found: tuple[Violation, ...]) -> RefusedMapError:
    because = "; ".join(str(entry) for entry in found)
    what = f"a map that breaks {len(found)} rules denotes nothing"
    return RefusedMapError(Diagnostic("LA307", what, (repr(tm),), because), found[0].rule, found)


def _shared(tm: TensorMap, scale: int) -> CuteLayout | ComposedLayout:
    """The box in shared memory; ``scale`` units per element."""
    counts, size = loaded_counts(tm), element_bytes(tm.dtype)
    within = () if tm.interleave == "NONE" else (unit_bytes(tm) // size,)  # the elements of a slice
    pitches, reach = [unit_bytes(tm) * scale // size], row_pitch_bytes(tm) * scale // size
    for count in counts[1:]:
        pitches.append(reach)
        reach *= count
    strides = (*pitches[::-1], *(scale for _ in within))
    inner: CuteLayout | ComposedLayout = CuteLayout((*counts[::-1], *within), strides)
    groups: dict[int, list[int]] = {}
    for target, source in SWIZZLE_TABLE[tm.swizzle].xor:
        groups.setdefault(source - target, []).append(target)
    for shift, targets in groups.items():  # sources lie above all targets, so the groups commute
        swizzle = Swizzle(len(targets), min(targets), shift, "byte").recast_elements(size // scale)
        inner = ComposedLayout(Swizzle(swizzle.bits, swizzle.base, swizzle.shift), 0, inner)
    return inner


def _global(tm: TensorMap, coords: Sequence[int] | None) -> PiecewiseLayout:
    """The bytes read: box coordinates, and symbolic start coordinates if any, to byte offsets."""
    from layoutalg.piecewise import PiecewiseLayout

    size, rank, unit = element_bytes(tm.dtype), tm.rank, unit_bytes(tm)
    plain = tm.interleave == "NONE"
    grain = 16 // size if plain else 1
    given = ""
    if coords is None:
        starts: list[object] = [f"start{rank - 1 - mode}" for mode in range(rank)]
        inner = [f"{starts[0]} mod {grain} = 0"] if grain > 1 else []
        given = " and ".join([*inner, *(f"{-_COORDINATE} <= {name} < {_COORDINATE}" for name in starts)])
    else:
        values = checked_ints("coords", coords, "LA326")
        if len(values) != rank or any(not -_COORDINATE <= value < _COORDINATE for value in values):
            raise malformed("LA326", "coords are not start coordinates", f"the map has rank {rank}, coords = {values}")
        if values[0] % grain:
            because = f"coords[0] = {values[0]} elements of {size} bytes is not a multiple of 16 bytes"
            error = Diagnostic(
                "LA321", "the inner start coordinate is not aligned", (), because, source="rule BOX_ADDR"
            )
            raise TargetRuleError(error, "BOX_ADDR")
        starts = list(values)
    guards, terms = [], [str(tm.base_address)]
    axes = [f"dim{place}" for place in range(rank if plain else rank + 1)]
    for mode, count in enumerate(loaded_counts(tm)):
        axis, step = axes[rank - 1 - mode], tm.element_strides[mode] if mode or not plain else 1
        stride = tm.strides_bytes[mode - 1] if mode else unit
        guards.append(f"0 <= {axis} < {count} and 0 <= {starts[mode]} + {step}*{axis} < {tm.dims[mode]}")
        start = f"{stride}*{starts[mode]}" if coords is None else str(stride * int(str(starts[mode])))
        terms.append(f"{start} + {stride * step}*{axis}")
    if not plain:
        guards.append(f"0 <= {axes[rank]} < {unit // size}")
        terms.append(f"{size}*{axes[rank]}")
    params = f"[{', '.join(map(str, reversed(starts)))}] -> " if coords is None else ""
    text = f"{params}{{ [{', '.join(axes)}] -> [{' + '.join(terms)}] : {' and '.join(guards)} }}"
    return PiecewiseLayout(text, ("byte",), given)
