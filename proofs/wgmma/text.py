"""``wgmma`` plans as text, for ``str(plan)`` and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutalg.proofs.wgmma.operand import OperandPlan

SHOWN_TILES = 8
"""Descriptors printed if they do not follow steps."""


def operand_text(plan: OperandPlan) -> str:
    """Return a plan as lines of about 100 characters at most.

    The first word is ``admissible`` for a plan with a certificate, otherwise ``unproved``.

    Example:
        >>> from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
        >>> print(operand_text(synthesize_wgmma(canonical_operand("A", (128, 64)))))
        admissible    operand A is K-major (transpose 0), 8 instructions of 64 x 16 f16, swizzle 128B
          base        0x4000004000010000 for a tile at byte 0: leading 16 B (not read), stride 1024 B
          K steps     4; add 2 to the descriptor for each next one
          row tiles   2; add 512 to the descriptor for each next one
          tile        16384 bytes, base aligned to 1024; for another base add base / 16
          proof       8192 elements, by table; the wgmma read rule was measured
    """
    return "\n".join(_lines(plan))


def _lines(plan: OperandPlan) -> Iterator[str]:
    problem, first = plan.problem, plan.base
    many = f"{len(plan.tiles)} instruction{'s' if len(plan.tiles) > 1 else ''}"
    head = "unproved" if plan.certificate is None else "admissible"
    yield (
        f"{head:<14}operand {problem.operand} is {plan.major}-major (transpose {plan.transpose}), "
        f"{many}{' (sparse A)' if problem.sparse else ''} of {plan.rows} x {problem.instruction_k} "
        f"{problem.dtype}, swizzle {first.swizzle}"
    )
    words = [
        f"{name.removesuffix('_bytes')} {getattr(first, name)} B" + (" (not read)" if name in plan.unread else "")
        for name in ("leading_bytes", "stride_bytes")
    ]
    if first.base_offset:
        words.append(f"base offset {first.base_offset}")
    yield f"  base        {plan.tiles[0].encoded:#018x} for a tile at byte 0: {', '.join(words)}"
    if plan.k_steps is not None and plan.mn_steps is not None:
        yield f"  K steps     {_steps(plan.k_steps)}"
        yield f"  row tiles   {_steps(plan.mn_steps)}"
    else:
        for index, tile in enumerate(plan.tiles):
            if index == SHOWN_TILES and len(plan.tiles) > SHOWN_TILES + 1:
                yield f"  ...         {len(plan.tiles) - SHOWN_TILES} more"
                break
            yield f"  at          row {tile.mn}, K {tile.k}: {tile.encoded:#018x}"
    yield f"  tile        {plan.end_bytes} bytes, base aligned to {plan.align_bytes}; for another base add base / 16"
    if plan.certificate is not None:
        elements, engine = plan.certificate.get("elements"), plan.certificate.get("engine")
        yield f"  proof       {elements} elements, by {engine}; the wgmma read rule was {plan.evidence}"


def _steps(steps: tuple[tuple[int, int], ...]) -> str:
    """Return the number of instructions and the increments of the 64 bits, fastest digit first."""
    total = prod(count for count, _ in steps)
    if len(steps) < 2:
        return f"{total}" + "".join(f"; add {step} to the descriptor for each next one" for _, step in steps)
    counts, adds = " x ".join(str(count) for count, _ in steps), ", ".join(str(step) for _, step in steps)
    return f"{total} = {counts}, fastest first; add {adds} to the descriptor for the next of each"
