"""Copy ragged tensors, consecutive groups of rows of any sizes, by a family of descriptors.

Each map is planned and proved as for a dense tensor; which map copies which rows is proved by ISL with the group's size
as a parameter. A smaller box starts inside the tile: the start must be 128-byte aligned, and because the swizzle is a
function of absolute addresses (measured), its rows land where the tile expects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutalg.ground.conditions import divisible
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.ragged import CHECK, STRATEGIES, Plan, RaggedFamily, prove_coverage, rules_of
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.symbolic.checker import guard_implies_quickly
from layoutalg.proofs.symbolic.plan import SymbolicPlan, evaluated
from layoutalg.proofs.symbolic.problem import SymbolicProblem
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap.problem import SCHEMA
from layoutalg.synth.symbolic.call import tensormap
from layoutalg.synth.symbolic.planner import synthesize_symbolic
from layoutalg.synth.tensormap.planner import synthesize_tensormap
from layoutalg.synth.tensormap.refusal import InadmissibleError
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

SIZE = "n"
_OPTIONS = ("base_elem_offset", "oob_fill", "oob_required")
_STATED = {
    "back": "the last tile of a group ends with it: some rows of the previous tile are copied twice, with equal values",
    "overfetch": "the last tile of a group also reads rows after the group",
}


def synthesize_ragged(
    tensor: object,
    tile: Sequence[int],
    smem: object = None,
    *,
    strategy: str = "descriptors",
    axis: int = 0,
    direction: str = "load",
    target: str = "sm_90a",
    **options: Any,
) -> RaggedFamily:
    """Return the proved family of maps that copies tiles of every group of a ragged tensor.

    Mathematically: the groups are consecutive intervals of ``axis``, of any sizes; tiles start at the first row of
    each. For all sizes, every element of every group is copied exactly once, or as ``.stated`` says.

    Args:
        tensor: The whole tensor; sizes may be symbolic.
        tile: Tile extents, outermost dimension first.
        smem: As for ``layoutalg.tensormap``.
        strategy: ``"descriptors"``, ``"boxes"``, ``"back"`` or ``"overfetch"``; see ``proofs.ragged``.
        axis: The ragged dimension.
        direction: ``"load"`` or ``"store"``; stores support ``"descriptors"``, ``"boxes"``, and ``"back"`` if equal
            values may be written twice.
        target: Architecture.
        options: ``swizzle`` and ``axes`` as for ``layoutalg.tensormap``, ``base_elem_offset``, ``oob_fill``,
            ``oob_required``.

    Raises: InadmissibleError: no such family exists. BudgetError: its coverage was not proved.

    Example:
        >>> smem = "Sw<3,3,3> o 0 o (128,64):(64,1)"
        >>> family = synthesize_ragged(Tensor(("R", 512)), (128, 64), smem, strategy="back")
        >>> len(family.plans), family.least_rows, [copy.row for copy in family.copies([300, 128])]
        (1, 128, [0, 128, 172, 300])

    Source: Triton's ragged descriptors, arXiv 2508.16584 (pools of boxes), CUTLASS's grouped kernels (a map per group).
    """
    source = tensor_of(tensor, smem, named=True)
    CHECK.choice(strategy, "strategy", STRATEGIES)
    place = CHECK.integer(axis, "axis", 0, len(source.shape))
    if place == len(source.shape) - 1 and len(source.shape) > 1:
        raise CHECK.malformed(
            "axis", "must not be the innermost dimension, along which copies start 16-byte aligned", axis
        )
    extents = CHECK.vector(tile, "tile", len(source.shape))
    if not options.keys() <= {*_OPTIONS, "swizzle", "axes"}:
        raise CHECK.malformed("options", f"may be swizzle, axes, {', '.join(_OPTIONS)}", sorted(options))
    if SIZE in source.names:
        raise CHECK.malformed("tensor", f"must not use the name {SIZE}, reserved for group sizes", str(source))
    options |= {"target": target, "direction": direction}
    if direction == "store" and strategy == "overfetch":
        raise _refused(source, "STORE", "a store would overwrite rows after the group")
    if strategy == "descriptors":
        plans: tuple[Plan, ...] = (_per_group(source, extents, smem, place, options),)
        heights: list[int] = []
    else:
        heights = _heights(extents[place]) if strategy == "boxes" else []
        plans = tuple(_whole(source, extents, smem, place, rows, options) for rows in (extents[place], *heights))
    for plan in plans:
        if plan.oob != "exact":
            raise _refused(
                source, "OOB_CLASS", f"a map of the family has out-of-bounds class {plan.oob}; exact is required"
            )
    rules = rules_of(strategy, extents[place], heights)
    least = extents[place] if strategy == "back" else 1
    stated = "" if extents[place] == 1 else _STATED.get(strategy, "")
    family = RaggedFamily(strategy, place, extents[place], plans, rules, stated, least)
    verdict = prove_coverage(family)
    if not isinstance(verdict, Proved):
        raise BudgetError(
            Diagnostic("LA866", "the coverage of a ragged family was not proved", (str(source),), str(verdict))
        )
    return replace(family, certificate=dict(verdict.certificate))


def _heights(rows: int) -> list[int]:
    """The powers of two below the rows of a tile, decreasing."""
    return [1 << bit for bit in reversed(range((rows - 1).bit_length()))]


def _per_group(source: Tensor, tile: tuple[int, ...], smem: object, axis: int, options: dict[str, Any]) -> Plan:
    """The map of one group: the group's size is the extent of the ragged dimension, its first row the base."""
    shape = tuple(SIZE if dim == axis else extent for dim, extent in enumerate(source.shape))
    align = min(source.base_align_bytes, limits.GLOBAL_ALIGN_BYTES)  # a group starts at a whole number of pitches
    plan: Plan = tensormap(Tensor(shape, source.strides, source.dtype, align, source.assume), tile, smem, **options)
    (pitch,) = evaluated((source.strides[axis],))
    needed = divisible(pitch * hardware.element_bytes(source.dtype), limits.GLOBAL_ALIGN_BYTES)
    if not isinstance(plan, SymbolicPlan) or not guard_implies_quickly(plan.guard, (needed,)):
        raise _refused(source, "BASE_ALIGN", f"groups start at multiples of the pitch, but {needed} is not known")
    return plan


def _whole(source: Tensor, tile: tuple[int, ...], smem: object, axis: int, rows: int, options: dict[str, Any]) -> Plan:
    """The map of the whole tensor with a box of ``rows`` rows that may start at any row."""
    size = hardware.element_bytes(source.dtype)
    shared = shared_tile(smem, tile, size, options.get("swizzle"), axes=options.get("axes"))
    modes = [tuple(digit for digit in digits if digit[0] > 1) or ((1, 1),) for digits in shared.modes]
    if rows != tile[axis]:
        if len(modes[axis]) != 1:
            raise _refused(
                source, "SMEM_DENSE", "the rows of the tile have no single stride, so it has no smaller boxes"
            )
        pitch = modes[axis][0][1] * size
        if rows * pitch % limits.SMEM_DESTINATION_ALIGN_BYTES:
            text = (
                f"a box of {rows} rows of {pitch} bytes is not a multiple of 128 bytes, so the next start is misaligned"
            )
            raise _refused(source, "SMEM_ALIGN", text)
        modes[axis] = ((rows, modes[axis][0][1]),)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "arch": options["target"],
        "direction": options["direction"],
        "global": {
            "shape": list(source.shape),
            "stride": list(source.strides),
            "dtype": source.dtype,
            "base_align_bytes": source.base_align_bytes,
        },
        "tile": [rows if dim == axis else extent for dim, extent in enumerate(tile)],
        "smem": {"modes": [[list(digit) for digit in digits] for digits in modes], "swizzle": shared.swizzle},
        "origin_multiple": [1 if dim == axis else extent for dim, extent in enumerate(tile)],
    }
    document |= {name: value for name, value in options.items() if name in _OPTIONS}
    plan: Plan
    if source.names:
        plan = synthesize_symbolic(SymbolicProblem.from_json(document | {"assume": list(source.assume)}))
    else:
        plan = synthesize_tensormap(document)
    if plan.tensor_map.swizzle != shared.swizzle:  # a single row is the same under every swizzle
        text = f"a box of {rows} rows needs swizzle {plan.tensor_map.swizzle}, but the tile has {shared.swizzle}"
        raise _refused(source, "SWIZZLE_PHASE", text)
    return plan


def _refused(source: Tensor, rule: str, text: str) -> InadmissibleError:
    diagnostic = Diagnostic(
        "LA400", "no family of TensorMaps carries this ragged tensor", (str(source),), f"{rule}: {text}"
    )
    return InadmissibleError(diagnostic, (Violation(rule, text, "tensor"),), ())
