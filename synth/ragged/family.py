"""Copy ragged tensors, consecutive groups of rows of any sizes, by a family of descriptors.

Each map is planned and proved as for a dense tensor; which map copies which rows is proved by ISL with the group's size
as a parameter. A smaller box starts inside the tile: the start must be 128-byte aligned, and because the swizzle is a
function of absolute addresses (measured), its rows land where the tile expects them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack

from layoutalg.ground.conditions import divisible
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.groups import MOST_ROWS, group_offsets
from layoutalg.proofs.ragged import (
    CHECK,
    STRATEGIES,
    Plan,
    RaggedFamily,
    heights_of,
    overlaps,
    prove_coverage,
    rules_of,
)
from layoutalg.proofs.ragged_clip import FORMS, TALL, ClipPlan
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.symbolic.checker import guard_implies_quickly
from layoutalg.proofs.symbolic.plan import SymbolicPlan, evaluated
from layoutalg.proofs.symbolic.problem import SymbolicProblem
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.problem import SCHEMA, Filling, Reading
from layoutalg.synth.symbolic.call import tensormap
from layoutalg.synth.symbolic.planner import synthesize_symbolic
from layoutalg.synth.tensormap.planner import synthesize_tensormap
from layoutalg.synth.tensormap.refusal import InadmissibleError
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits
from layoutalg.targets.probes import clip_probe

SIZE = "n"


class FamilyOptions(Filling, Reading, total=False):
    """Options of the maps of a family."""


class RaggedOptions(FamilyOptions, total=False):
    """Options of ``ragged``: those of its maps, and the form of clipped ones."""

    form: str


_TWICE = "some rows of a group are copied twice, with equal values: by the last tile, or by boxes that overlap"
_BEHIND = "the last tile of a group also reads rows after the group"


def ragged(
    tensor: object,
    groups: int | str | Sequence[int] | None,
    tile: Sequence[int],
    smem: object = None,
    strategy: str = "auto",
    *,
    axis: int = 0,
    direction: str = "load",
    target: str = "sm_90a",
    multiple: int = 1,
    **options: Unpack[RaggedOptions],
) -> RaggedFamily:
    """Return the proved family of maps that copies tiles of every group of a ragged tensor.

    Mathematically: the groups are consecutive intervals of ``axis``, of any sizes; tiles start at the first row of
    each. For all sizes, every element of every group is copied exactly once, or as ``.stated`` says.

    Args:
        tensor: The whole tensor; sizes may be symbolic.
        groups: The number of groups, or their sizes, which ``copies()`` then takes by default; None or a name if even
            the number is known only at run time. The family holds for all sizes in any case.
        tile: Tile extents, outermost dimension first.
        smem: As for ``layoutalg.tensormap``.
        strategy: How the rest of a group behind its whole tiles is copied. ``"auto"``: groups of at least a tile as
            ``"shift_back"``, shorter ones by smaller boxes; where no map of these exists, by ``"clip"`` or
            ``"descriptors"``. ``"exact_pool"``, ``"overlap_pool"``, ``"shift_back"`` (groups of at least a tile),
            ``"clip"``, ``"descriptors"``, ``"overfetch"`` (loads): see ``proofs.ragged``.
        axis: The ragged dimension.
        direction: ``"load"`` or ``"store"``; stores may write rows twice with equal values, except by ``"exact_pool"``,
            ``"clip"`` and ``"descriptors"``.
        target: Architecture.
        multiple: What divides every group size, so that fewer maps and rests are needed.
        options: ``swizzle`` and ``axes`` as for ``layoutalg.tensormap``, ``base_elem_offset``, ``oob_fill``,
            ``oob_required``; ``form`` of clipped maps (``proofs.ragged_clip``).

    Raises: InadmissibleError: no such family exists. MalformedError: LA865, LA869. BudgetError: its coverage was not
        proved.

    Example:
        >>> smem = "Sw<3,3,3> o 0 o (128,64):(64,1)"
        >>> family = ragged(Tensor(("R", 512)), None, (128, 64), smem)
        >>> len(family.members), [(copy.row, copy.rows) for copy in family.copies([300, 3])]
        (8, [(0, 128), (128, 128), (172, 128), (300, 2), (301, 2)])

    Source: Triton's ragged descriptors, arXiv 2508.16584 (pools of boxes), CUTLASS's grouped kernels (a map per group).
    """
    many, sizes = _groups(groups)
    CHECK.choice(strategy, "strategy", STRATEGIES)
    first, *rest = ("auto", "clip", "descriptors") if strategy == "auto" else (strategy,)
    CHECK.options(options, RaggedOptions.__annotations__, ragged)
    given: Any = {"axis": axis, "direction": direction, "target": target, "multiple": multiple, **options}
    try:
        family = synthesize_ragged(tensor, tile, smem, strategy=first, **given)
    except InadmissibleError as error:
        family = _instead(error, rest, lambda each: synthesize_ragged(tensor, tile, smem, strategy=each, **given))
    found = replace(family, groups=many, sizes=sizes)
    if sizes:
        found.copies()  # refuses sizes that do not fit
    return found


def _instead(
    refused: InadmissibleError, strategies: Sequence[str], find: Callable[[str], RaggedFamily]
) -> RaggedFamily:
    """The family of the first further strategy that has one; otherwise the refusal of the first."""
    for each in strategies:
        with suppress(InadmissibleError):
            return find(each)
    raise refused


def _groups(groups: object) -> tuple[int | None, tuple[int, ...]]:
    """The number of groups and their sizes, as far as they are known."""
    if groups is None or (isinstance(groups, str) and groups.isidentifier()):
        return None, ()
    if isinstance(groups, str) or not hasattr(groups, "__len__"):
        return CHECK.integer(
            groups, "groups", 1, 1 << 31, "must be a number of groups, their sizes, a name or None"
        ), ()
    ends = group_offsets(groups)
    return len(ends) - 1, tuple((ends[1:] - ends[:-1]).tolist())


def synthesize_ragged(
    tensor: object,
    tile: Sequence[int],
    smem: object = None,
    *,
    strategy: str = "descriptors",
    axis: int = 0,
    direction: str = "load",
    target: str = "sm_90a",
    multiple: int = 1,
    form: str = "",
    **options: Unpack[FamilyOptions],
) -> RaggedFamily:
    """Return the family of exactly this strategy; arguments as for ``ragged``, which also says more of groups.

    Raises: InadmissibleError: no such family exists. BudgetError: its coverage was not proved.

    Example:
        >>> smem = "Sw<3,3,3> o 0 o (128,64):(64,1)"
        >>> family = synthesize_ragged(Tensor(("R", 512)), (128, 64), smem, strategy="shift_back")
        >>> len(family.plans), family.least_rows, [copy.row for copy in family.copies([300, 128])]
        (1, 128, [0, 128, 172, 300])
    """
    source = tensor_of(tensor, smem, named=True)
    CHECK.choice(strategy, "strategy", STRATEGIES)
    place = CHECK.integer(axis, "axis", 0, len(source.shape))
    if place == len(source.shape) - 1 and len(source.shape) > 1:
        raise CHECK.malformed(
            "axis", "must not be the innermost dimension, along which copies start 16-byte aligned", axis
        )
    extents = CHECK.vector(tile, "tile", len(source.shape))
    CHECK.integer(multiple, "multiple", 1, limits.MAX_DIM + 1)
    CHECK.choice(form, "form", ("", *FORMS))
    CHECK.options(options, FamilyOptions.__annotations__, synthesize_ragged)
    if SIZE in source.names:
        raise CHECK.malformed("tensor", f"must not use the name {SIZE}, reserved for group sizes", str(source))
    asked: dict[str, Any] = {**options, "target": target, "direction": direction}
    if direction == "store" and strategy == "overfetch":
        raise _refused(source, "STORE", "a store would overwrite rows after the group")
    heights = heights_of(strategy, extents[place], multiple)
    if strategy == "descriptors":
        plans: tuple[Plan, ...] = (_per_group(source, extents, smem, place, asked),)
    elif strategy == "clip":
        plans = (_clipped(source, extents, smem, place, form, asked),)
    else:
        plans = tuple(_whole(source, extents, smem, place, rows, asked) for rows in (extents[place], *heights))
    for plan in plans:
        if plan.oob != "exact":
            raise _refused(
                source, "OOB_CLASS", f"a map of the family has out-of-bounds class {plan.oob}; exact is required"
            )
    rests = extents[place] > 1 and multiple % extents[place] != 0
    stated = _BEHIND if strategy == "overfetch" and rests else ""
    if overlaps(strategy, extents[place], multiple):
        stated = _TWICE
    known = source.shape[place]
    rows = known if isinstance(known, int) else MOST_ROWS if strategy == "descriptors" else limits.MAX_DIM
    family = RaggedFamily(
        strategy, place, extents[place], plans, rules_of(strategy, extents[place], heights), stated,
        extents[place] if strategy == "shift_back" else 1, multiple=multiple, rows=rows,
    )  # fmt: skip
    verdict = prove_coverage(family)
    if not isinstance(verdict, Proved):
        raise BudgetError(
            Diagnostic("LA866", "the coverage of a ragged family was not proved", (str(source),), str(verdict))
        )
    return replace(family, certificate=dict(verdict.certificate))


def _clipped(
    source: Tensor, tile: tuple[int, ...], smem: object, axis: int, form: str, options: dict[str, Any]
) -> Plan:
    """The map of the whole tensor in which rows behind a group are out of bounds; only where that was probed."""
    form = form or "read_write"
    asked, target, size = f"{form} {options['direction']}", options["target"], hardware.element_bytes(source.dtype)
    probe = clip_probe(target)
    if probe is None or asked not in probe.forms or size not in probe.element_bytes:
        shown = "no probe has run" if probe is None else f"the probe showed {', '.join(probe.forms)}"
        text = (
            f"{target}, {asked} of {size}-byte elements: that addresses wrap at 2^64 is documented nowhere, and {shown}"
        )
        raise _refused(source, "PROBE", text)
    plan = _whole(source, tile, smem, axis, tile[axis], options)
    if not isinstance(plan, TensorMapPlan):
        raise _refused(source, "PROBE", "sizes must be numbers: a clipped map has the pitch in two fields")
    if source.shape[axis] > TALL:
        raise _refused(source, "DIM_RANGE", f"a clipped map has at most {TALL} rows, not {source.shape[axis]}")
    if plan.tensor_map.rank + 2 - (form == "write_only") > limits.MAX_RANK:
        raise _refused(source, "RANK", f"the map has {plan.tensor_map.rank} dimensions, a clipped one more than 5")
    return ClipPlan.of(plan, axis, form)


def _per_group(source: Tensor, tile: tuple[int, ...], smem: object, axis: int, options: dict[str, Any]) -> Plan:
    """The map of one group: the group's size is the extent of the ragged dimension, its first row the base."""
    shape = tuple(SIZE if dim == axis else extent for dim, extent in enumerate(source.shape))
    align = min(source.base_align_bytes, limits.GLOBAL_ALIGN_BYTES)  # a group starts at a whole number of pitches
    plan = tensormap(Tensor(shape, source.strides, source.dtype, align, source.assume), tile, smem, **options)
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
    document |= {name: value for name, value in options.items() if name in Filling.__annotations__}
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
