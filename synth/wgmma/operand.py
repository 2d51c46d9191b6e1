"""The canonical shared-memory layouts of ``wgmma`` operands (PTX ISA 9.1, section 9.7.15.5)."""

from __future__ import annotations

from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.proofs.wgmma import InstructionTile, OperandPlan, OperandProblem
from layoutalg.targets.nvidia import wgmma as hardware
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

__all__ = [
    "InstructionTile",
    "OperandPlan",
    "OperandProblem",
    "canonical_modes",
    "canonical_operand",
    "canonical_swizzle",
]

Modes = tuple[tuple[int, int], ...]


def canonical_swizzle(shape: tuple[int, int], major: str, dtype: str = "f16") -> str:
    """Return the widest swizzle whose span divides the contiguous extent of a tile.

    Args:
        shape: ``(mn, k)`` in elements; the extent along ``major`` must be a multiple of 16 bytes.
        major: ``"K"`` or ``"MN"``.
        dtype: Element type.

    Example:
        >>> canonical_swizzle((128, 96), "K")
        '64B'
    """
    extent = shape[1] if major == "K" else shape[0]
    for swizzle in reversed(hardware.SWIZZLES):
        if extent % _span(swizzle, dtype) == 0:
            return swizzle
    raise _not_canonical(f"the {major} extent {extent} is not a multiple of 16 bytes")


def canonical_modes(shape: tuple[int, int], major: str, swizzle: str, dtype: str = "f16") -> tuple[Modes, Modes]:
    """Return the digits of a canonical tile: consecutive dense blocks, each one swizzle span wide.

    This is what one bulk tensor copy per span-wide box writes to shared memory.

    Args:
        shape: ``(mn, k)`` in elements; the extent along ``major`` must be a multiple of the span (16 to 128 bytes).
        major: ``"K"`` or ``"MN"``: the axis along which elements are contiguous.
        swizzle: A descriptor swizzle name.
        dtype: Element type; only 16-bit elements may be MN-major.

    Returns:
        Digits of MN and of K: ``(extent, element stride)``, fastest first.

    Raises: MalformedError: the shape has no canonical layout. TargetRuleError: the type has no such major.

    Example:
        >>> canonical_modes((128, 128), "K", "128B")
        (((128, 64),), ((64, 1), (2, 8192)))
        >>> canonical_modes((128, 64), "MN", "64B")
        (((32, 1), (4, 2048)), ((64, 32),))

    Source: PTX ISA 9.1 section 9.7.15.5.
    """
    hardware.read_pattern(major, swizzle, hardware.multiply(dtype).bits)
    span = _span(swizzle, dtype)
    along, across = (shape[1], shape[0]) if major == "K" else (shape[0], shape[1])
    if along % span:
        raise _not_canonical(f"the {major} extent {along} is not a multiple of the {swizzle} span, {span} elements")
    blocks: Modes = ((along // span, span * across),) if along > span else ()
    contiguous: Modes = ((span, 1), *blocks)
    rows: Modes = ((across, span),)
    return (rows, contiguous) if major == "K" else (contiguous, rows)


def canonical_operand(
    operand: str,
    shape: tuple[int, int],
    *,
    major: str = "K",
    swizzle: str | None = None,
    dtype: str = "f16",
    sparse: bool = False,
) -> OperandProblem:
    """Return the problem of a canonical tile.

    Args:
        operand: ``"A"`` or ``"B"``.
        shape: ``(mn, k)`` in elements.
        major: ``"K"`` or ``"MN"``.
        swizzle: A descriptor swizzle name; by default the widest that fits.
        dtype: Element type.
        sparse: Whether A of the instruction is sparse.

    Example:
        >>> print(canonical_operand("B", (256, 64), major="MN"))
        B f16 128B XOR o 0 o ((64,4),(64)):((1,4096),(64))
    """
    chosen = canonical_swizzle(shape, major, dtype) if swizzle is None else swizzle
    modes = canonical_modes(shape, major, chosen, dtype)
    return OperandProblem(operand, shape, modes, chosen, dtype, sparse=sparse)


def _span(swizzle: str, dtype: str) -> int:
    """Elements in a swizzle span."""
    return 8 * SWIZZLE_TABLE[swizzle].span_bytes // hardware.multiply(dtype).bits


def _not_canonical(because: str) -> MalformedError:
    return MalformedError(Diagnostic("LA363", "the tile has no canonical wgmma layout", ("canonical_modes",), because))
