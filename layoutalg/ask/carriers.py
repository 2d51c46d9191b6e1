"""Ask which instructions of a target can use a layout as a tile in shared memory, via ``admissible``.

Main statements: consumers that ``targets.target_model`` says the target lacks are named in one line, with the rule.
Consumers that need more than a layout (registers, a kind) are not asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from layoutalg.ask.fact import Fact, said
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.admission import Admission, Refused
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.admission import admissible
from layoutalg.targets.target_model import Absent, model_of

SECONDS = 10.0
"""Time limit per consumer."""
MAX_ACCESSED = 2**16
"""Largest tile, in elements, whose accesses are enumerated."""
ASKED: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "nvidia": (
            ("TMA", "tma"),
            ("wgmma A", "wgmma.A"),
            ("wgmma B", "wgmma.B"),
            ("tcgen05 A", "tcgen05.A"),
            ("tcgen05 B", "tcgen05.B"),
            ("ldmatrix", "ldmatrix.x1"),
            ("ldmatrix.trans", "ldmatrix.x1.trans"),
            ("vectors", "ld.shared.v4.b32"),
            ("cp.async", "cp.async"),
        ),
        "amd": (
            ("TMA", "tma"),
            ("ds_read", "ds_read_b128"),
            ("ds_write", "ds_write_b128"),
            ("LDS fill", "global_load_lds_dwordx4"),
            ("LDS fill", "buffer_load_dword_lds"),
        ),
    }
)
"""Per vendor, (name of the fact, consumer)."""
_MATRICES = ("wgmma", "tcgen05", "ldmatrix")


def carriers(
    layout: Any, extents: tuple[int, ...], dtype: str, target: str, tensor: Tensor | None = None
) -> Iterator[Fact]:
    """Yield each consumer's answer about a layout, then the consumers that the target lacks.

    Args:
        layout: Tile coordinates, outermost first, to element offsets.
        extents: Tile extents.
        dtype: Element type, by its own name.
        target: Architecture.
        tensor: The tensor that the tile is cut from; None for any.

    Example:
        >>> for fact in carriers("(64,64):(64,1)", (64, 64), "bf16", "gfx942"):
        ...     print(fact.name, "-", fact.lines[0])
        ds_read - 8 x ds_read_b128, 256 turns, lanes of operand A of MFMA 16x16, 8 along k each, lane 0 at byte 0 \
(documented)
        ds_write - 8 x ds_write_b128, 64 turns, lanes along dimension 1, lane 0 at byte 0 (documented)
        LDS fill - 32 x buffer_load_dword_lds, from LDS byte 0, lane 0 loads (0, 0) (documented)
        not there - NO_TMA: gfx942 has no tma, which needs compute capability 9.0 or later of NVIDIA (since sm_90)
    """
    model = model_of(target)
    absent: dict[str, Absent] = {}
    told: set[str] = set()
    for name, consumer in ASKED[model.target.vendor]:
        family = consumer.split(".")[0]
        missing = model.consumer(consumer)
        if isinstance(missing, Absent):
            absent.setdefault(name if name == "LDS fill" else family, missing)
            continue
        small = math.prod(extents) <= MAX_ACCESSED or family in ("tma", "wgmma")
        if name in told or not small or (len(extents) != 2 and family in _MATRICES):
            continue
        told.add(name)
        yield _fact(name, _asked(layout, consumer, extents, dtype, target, tensor), tensor)
    lines = [f"{one.rule}: {one.reason}" for name, one in absent.items() if name not in told]
    if lines:
        rules = {name: {"rule": one.rule, "instead": list(one.instead)} for name, one in absent.items()}
        yield said("not there", lines, {name: entry for name, entry in rules.items() if name not in told})


def _asked(
    layout: Any, consumer: str, extents: tuple[int, ...], dtype: str, target: str, tensor: Tensor | None
) -> Admission:
    given: dict[str, Any] = {"tensor": tensor} if consumer == "tma" and tensor is not None else {}
    try:
        return admissible(
            layout, consumer, target, dtype, tile=extents, budget_seconds=clock.left(SECONDS), **given
        )  # fmt: skip
    except LayoutError as error:
        return Unknown(error.diagnostic.because or error.diagnostic.what)


def _fact(name: str, found: Admission, tensor: Tensor | None) -> Fact:
    if isinstance(found, Unknown):
        return said(name, f"not decided: {found.reason}", {"verdict": "unknown", "because": found.reason})
    if isinstance(found, Refused):
        return _refusal(name, found)
    plan = found.descriptor
    graded = "" if found.evidence == "measured" else f" ({found.evidence})"
    text = _summary(plan, tensor) + graded
    if isinstance(plan, AccessPlan):
        data: dict[str, object] = {"instruction": plan.instruction, "turns": plan.turns, "ideal": plan.ideal}
    else:
        data = {"verdict": "admissible", "evidence": found.evidence, "plan": plan.to_json()}
    return said(name, text, data)


def _refusal(name: str, found: Refused) -> Fact:
    """The reasons alone; ``admissible`` also finds repairs, which takes longer."""
    pairs = list(zip(found.rules, found.reasons, strict=True))
    lines = [f"no: {rule}: {reason}" for rule, reason in pairs]
    data = {
        "verdict": "inadmissible", "because": found.reasons[0], "reasons": list(found.reasons),
        "violations": [{"rule": rule, "message": reason} for rule, reason in pairs],
    }  # fmt: skip
    return said(name, lines, data)


def _summary(plan: Any, tensor: Tensor | None) -> str:
    """The plan in one line."""
    if isinstance(plan, TensorMapPlan):
        problem = plan.problem
        source = tensor or Tensor(problem.global_shape, problem.global_strides, problem.dtype)
        many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
        return f"box {list(plan.tensor_map.box)}, swizzle {plan.tensor_map.swizzle}, {many}, from {source}"
    if isinstance(plan, OperandPlan):
        first = plan.tiles[0].descriptor
        return (
            f"{plan.major}-major, leading {first.leading_bytes} B, stride {first.stride_bytes} B, "
            f"swizzle {first.swizzle}, {len(plan.tiles)} instruction tiles, first descriptor "
            f"{plan.tiles[0].encoded:#018x}"
        )
    if isinstance(plan, AccessPlan):
        many = f"{plan.instruction}: {plan.count} access{'' if plan.count == 1 else 'es'}, {plan.lanes}"
        if plan.turns is None:
            return many
        than = "free of conflicts" if plan.turns == plan.ideal else f"{plan.ideal} without conflicts"
        return f"{many}, {plan.turns} turn{'' if plan.turns == 1 else 's'}, {than}"
    return str(plan).split("\n")[0]


__all__ = ["ASKED", "carriers"]
