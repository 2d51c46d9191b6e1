"""TensorMap plans, of one size and symbolic, as text, for ``str(plan)`` and the command line.

o0, o1, ... is the tile origin, outermost dimension first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutalg.proofs.symbolic.plan import SymbolicPlan
    from layoutalg.proofs.tensormap.plan import Issue, OriginTerm, TensorMapPlan

SHOWN_ISSUES = 8
"""Issues printed before the rest is only counted."""
OOB_TEXT = {
    "exact": "exact: out-of-bounds elements are {}",
    "weak": "weak: out-of-bounds elements are {} if the tile origin is in bounds",
    "lost": "lost: tiles over the edge may move foreign elements",
}
"""The out-of-bounds classes in words."""


def plan_text(plan: TensorMapPlan) -> str:
    """Return a plan as lines of about 100 characters at most.

    The first word is ``admissible`` for a plan with a certificate, otherwise ``unproved``.

    Example:
        >>> import layoutalg as la
        >>> plan = la.tensormap(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        >>> print("\\n".join(plan_text(plan).split("\\n")[:5]))
        admissible    1 issue of box [64, 64] bf16, swizzle 128B
          dims        [512, 1024], strides [1024] bytes
          issue 0     coordinates (o1, o0) -> shared byte 0
          barrier     8192 bytes expected; tile base aligned to 1024 bytes
          bounds      exact: out-of-bounds elements are filled
    """
    kind = "" if plan.tensor_map.interleave == "NONE" else f", interleave {plan.tensor_map.interleave}"
    lines = [_head(plan, kind), *_copies(plan, plan.direction)]
    if plan.undocumented:
        broken = ", ".join(plan.undocumented)
        lines.append(f"  measured    breaks documented rules ({broken}) that the measured chip accepts")
    if plan.certificate is not None:
        elements, engine = plan.certificate.get("elements"), plan.certificate.get("engine")
        lines.append(f"  proof       {elements} elements at every tile origin, by {engine}")
    for index in range(0, len(plan.hex), 64):
        lines.append(f"  {'' if index else 'bytes':<12}{plan.hex[index : index + 64]}")
    return "\n".join(lines)


def _head(plan: TensorMapPlan | SymbolicPlan, more: str) -> str:
    tm, word = plan.tensor_map, "unproved" if plan.certificate is None else "admissible"
    return f"{word:<14}{_many(plan)} of box {list(tm.box)} {tm.dtype}, swizzle {tm.swizzle}{more}"


def _many(plan: TensorMapPlan | SymbolicPlan) -> str:
    return f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"


def _copies(plan: TensorMapPlan | SymbolicPlan, direction: str) -> Iterator[str]:
    """Yield the map, the issues, what the barrier expects and the out-of-bounds class."""
    tm = plan.tensor_map
    dims, strides = (", ".join(map(str, entries)) for entries in (tm.dims, tm.strides_bytes))
    steps = f", element strides {list(tm.element_strides)}" if max(tm.element_strides, default=1) > 1 else ""
    yield f"  dims        [{dims}], strides [{strides}] bytes{steps}"
    yield from _issues(plan)
    head, expected = ("barrier", "bytes expected") if direction == "load" else ("store", "bytes")
    yield f"  {head:<12}{plan.expect_tx_bytes} {expected}; tile base aligned to {plan.smem_align_bytes} bytes"
    yield f"  bounds      {oob_text(plan.oob, direction)}"


def _issues(plan: TensorMapPlan | SymbolicPlan) -> Iterator[str]:
    starts = coordinates(plan.issues, plan.origin_map)
    for index, (issue, coords) in enumerate(zip(plan.issues, starts, strict=True)):
        if index == SHOWN_ISSUES and len(plan.issues) > SHOWN_ISSUES + 1:
            yield f"  ...         {len(plan.issues) - SHOWN_ISSUES} more"
            break
        yield f"  issue {index:<5} coordinates ({coords}) -> shared byte {issue.smem_offset_bytes}"


def symbolic_text(plan: SymbolicPlan) -> str:
    """Return a plan as lines; the first word is ``admissible`` with a certificate, otherwise ``unproved``.

    Example:
        >>> import layoutalg as la
        >>> plan = la.tensormap(la.Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
        >>> print("\\n".join(symbolic_text(plan).split("\\n")[:5]))
        admissible    1 issue of box [64, 64] bf16, swizzle NONE, for all sizes of the guard
          guard       K % 8 == 0, 1 <= K <= 2**31, 1 <= M <= 2**31
          dims        [K, M], strides [2*K] bytes
          issue 0     coordinates (o1, o0) -> shared byte 0
          barrier     8192 bytes expected; tile base aligned to 128 bytes
    """
    lines = [_head(plan, ", for all sizes of the guard"), f"  guard       {plan.guard}"]
    lines += _copies(plan, plan.problem.pattern.direction)
    lines += [f"  better      {_many(case)}, {case.oob}, where {case.guard}" for case in plan.better]
    lines += [f"  {'' if index else 'patch':<12}{patch}" for index, patch in enumerate(plan.patch)]
    if plan.certificate is not None:
        lines.append(f"  proof       {plan.certificate.get('engine')}, for all sizes")
    return "\n".join(lines)


def oob_text(oob: str, direction: str) -> str:
    """Return an out-of-bounds class in words."""
    return OOB_TEXT[oob].format("filled" if direction == "load" else "not written")


def coordinates(issues: Sequence[Issue], origin_map: Sequence[Sequence[OriginTerm]]) -> Iterator[str]:
    """Yield the coordinates of each issue as an expression of the tile origin."""
    for issue in issues:
        words = []
        for constant, terms in zip(issue.coords, origin_map, strict=True):
            parts = [
                {1: "", -1: "-"}.get(top, f"{top}*") + f"o{dim}" + ("" if bottom == 1 else f"/{bottom}")
                for dim, top, bottom in terms
            ]
            if constant or not parts:
                parts.append(str(constant))
            words.append(" + ".join(parts).replace("+ -", "- "))
        yield ", ".join(words)
