"""Symbolic plans as text, for ``str(plan)`` and the command line.

o0, o1, ... is the tile origin, outermost dimension first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layoutalg.proofs.tensormap.text import SHOWN_ISSUES, coordinates, oob_text

if TYPE_CHECKING:
    from layoutalg.proofs.symbolic.plan import SymbolicPlan


def plan_text(plan: SymbolicPlan) -> str:
    """Return a plan as lines; the first word is ``admissible`` with a certificate, otherwise ``unproved``.

    Example:
        >>> import layoutalg as la
        >>> plan = la.tensormap(la.Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
        >>> print("\\n".join(plan_text(plan).split("\\n")[:5]))
        admissible    1 issue of box [64, 64] bf16, swizzle NONE, for all sizes of the guard
          guard       K % 8 == 0, 1 <= K <= 2**31, 1 <= M <= 2**31
          dims        [K, M], strides [2*K] bytes
          issue 0     coordinates (o1, o0) -> shared byte 0
          barrier     8192 bytes expected; tile base aligned to 128 bytes
    """
    return "\n".join(_lines(plan))


def _lines(plan: SymbolicPlan) -> Iterator[str]:
    tm = plan.tensor_map
    many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
    head = "unproved" if plan.certificate is None else "admissible"
    yield f"{head:<14}{many} of box {list(tm.box)} {tm.dtype}, swizzle {tm.swizzle}, for all sizes of the guard"
    yield f"  guard       {plan.guard}"
    dims, strides = (", ".join(map(str, entries)) for entries in (tm.dims, tm.strides_bytes))
    steps = f", element strides {list(tm.element_strides)}" if max(tm.element_strides, default=1) > 1 else ""
    yield f"  dims        [{dims}], strides [{strides}] bytes{steps}"
    for index, (issue, coords) in enumerate(zip(plan.issues, coordinates(plan.issues, plan.origin_map), strict=True)):
        if index == SHOWN_ISSUES and len(plan.issues) > SHOWN_ISSUES + 1:
            yield f"  ...         {len(plan.issues) - SHOWN_ISSUES} more"
            break
        yield f"  issue {index:<5} coordinates ({coords}) -> shared byte {issue.smem_offset_bytes}"
    words = "bytes expected" if plan.problem.pattern.direction == "load" else "bytes stored"
    yield f"  barrier     {plan.expect_tx_bytes} {words}; tile base aligned to {plan.smem_align_bytes} bytes"
    yield f"  bounds      {oob_text(plan.oob, plan.problem.pattern.direction)}"
    for case in plan.better:
        words = f"{len(case.issues)} issue{'s' if len(case.issues) > 1 else ''}, {case.oob}"
        yield f"  better      {words}, where {case.guard}"
    for index, patch in enumerate(plan.patch):
        yield f"  {'' if index else 'patch':<12}{patch}"
    if plan.certificate is not None:
        yield f"  proof       {plan.certificate.get('engine')}, for all sizes"
