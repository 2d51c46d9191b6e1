"""Decide whether an instruction can carry a layout: the answer is the descriptor bits, a reason, or unknown.

``CONSUMERS`` lists the consumers; each names a family, whose finder takes a request. A finder is exact: it admits only
what a checker has proved, refuses only what no descriptor carries, and otherwise says what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, MalformedError, Repair
from layoutalg.ground.lazy import door
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.synth.admission.documents import is_operand_problem, of_document, of_operand_problem, request_document
from layoutalg.synth.admission.repairs import SCHEMA
from layoutalg.synth.admission.request import ALIGN_BYTES, CHECK, TARGET, Finder, Request, of_layout, request_of
from layoutalg.targets.consumers import CONSUMERS, Absent, head_of
from layoutalg.targets.consumers import consumer as consumer_of
from layoutalg.targets.lds_rules import lds_name
from layoutalg.targets.nvidia.accesses import full_name
from layoutalg.targets.registry import lookup

__all__ = ["CONSUMERS", "Admission", "Admitted", "Refused", "Request", "admissible", "asked_again"]

_finder, _ = door(
    __name__,
    {
        f"{__name__}.accesses": "find_access find_copy",
        f"{__name__}.bulk": "find_bulk",
        f"{__name__}.im2col": "find_im2col",
        f"{__name__}.lds": "find_lds",
        f"{__name__}.names": "by_name",
        f"{__name__}.registers": "find_amd find_mma find_warpgroup",
        f"{__name__}.tcgen05": "find_tcgen05",
        f"{__name__}.tma": "find_tma",
        f"{__name__}.wgmma": "find_wgmma",
    },
)
"""The finder of a family of ``CONSUMERS`` by its name; a family loads when it is asked for."""
_OPERAND = re.compile(r"(?:mma|mfma|wmma)\.[ABCD](?::\w+)?|wgmma\.D:\w+")
"""An operand without its instruction: loads and stores that move it."""
_OF_REGISTERS = (
    "mma", "mfma", "wmma", "wgmma.A.registers", "wgmma.D", "tcgen05.D", "tcgen05.ld", "tcgen05.st",
)  # fmt: skip
"""Consumers that take register layouts."""


def admissible(
    layout: object,
    consumer: str,
    target: str = TARGET,
    dtype: object = None,
    *,
    tile: Sequence[int] | None = None,
    align_bytes: int = ALIGN_BYTES,
    seconds: float = PLAN_SECONDS,
    **options: object,
) -> Admission:
    """Decide whether an instruction can carry a layout, and return the descriptor bits or the reason why not.

    Mathematically: admitted exactly if some descriptor d of the target has ``meaning(d) = layout``, as functions.

    Args:
        layout: A layout of any family, its text, or an integer array of element offsets. It maps tile coordinates,
            outermost first, to element offsets in shared memory; ``wgmma.A`` is (M, K), ``wgmma.B`` is (N, K).
        consumer: ``"tma"``, ``"tma.store"``, ``"wgmma.A"``, ``"wgmma.B"``, ``"ldmatrix.x4.trans"``, ...
        target: Architecture.
        dtype: Element type. None: the type stated by the text, ``tensor=`` or the problem, otherwise bf16. A
            contradicting type is an error.
        tile: Tile extents, if the layout does not determine them.
        align_bytes: Alignment of the tile's address in shared memory.
        seconds: Wall-time budget.
        options: Options of the consumer: see ``docs/admission.md``.

    Raises: MalformedError: invalid arguments.

    Example:
        >>> found = admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "wgmma.A")
        >>> bool(found), found.descriptor.base.swizzle, found.certificate.kind
        (True, '128B', 'wgmma-operand')
        >>> print(admissible("(64,64):(72,1)", "wgmma.A").rules)
        ('WGMMA_PITCH', 'WGMMA_MAJOR')
    """
    if not isinstance(consumer, str):
        raise CHECK.malformed("consumer", "must be the name of an instruction", consumer)
    said, consumer = consumer, lds_name(consumer) or full_name(consumer)
    head = head_of(consumer)
    if head is None or _OPERAND.fullmatch(consumer):
        ask: Any = _finder("by_name")
        return ask(admissible, said, layout, target, dtype, tile, align_bytes, seconds, options)  # type: ignore[no-any-return]
    given = clock.checked_seconds(seconds, "seconds")
    asked = request_document(layout)
    if asked is not None:
        layout, dtype, target, tile, align_bytes, options = of_document(asked, consumer)
    if is_operand_problem(layout):
        layout, dtype, tile, align_bytes, options = of_operand_problem(
            layout, consumer, options, dtype, tile, align_bytes
        )
    of_registers = any(f"{consumer}.".startswith(f"{name}.") for name in _OF_REGISTERS)
    try:
        request = request_of(
            layout, consumer, target, dtype, tile, align_bytes, options, of_registers=of_registers
        )  # fmt: skip
        missing = consumer_of(consumer, lookup(request.target))
        if isinstance(missing, Absent):
            return _absent(request, head, missing)
        family = CONSUMERS[head].family
        if of_registers and head == "wgmma":
            family = "warpgroup"
        elif consumer.split(".")[:2] == ["tma", "im2col"]:
            family = "im2col"
        find: Finder = _finder(f"find_{family}")  # type: ignore[assignment]
        with clock.within(given):
            return find(request)
    except MalformedError as error:
        raise of_layout(error) from None
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because or spent.diagnostic.what, (head,))


def asked_again(refused: Refused, repair: Repair) -> tuple[Admission, ...]:
    """Ask again with a repair applied; return one answer per part, or () if the repair has no document.

    Example:
        >>> refused = admissible("(64,64):(65,1)", "ldmatrix.x4", dtype="f16")
        >>> all(all(asked_again(refused, repair)) for repair in refused.repairs)
        True
    """
    held: Any = repair.document
    if held is None:
        return ()
    parts = held.get("parts", [held]) if held.get("schema") == SCHEMA else [held]
    return tuple(admissible(part, part.get("consumer", refused.consumer)) for part in parts)


def _absent(request: Request, head: str, missing: Absent) -> Refused:
    """Refuse because the target has no such instruction; suggest what it has instead."""
    repairs = tuple(Repair(f"use {other}", f"{request.target} has {other} instead") for other in missing.instead)
    evidence = conditions.named(request.target, *CONSUMERS[head].targets)
    return request.refused(Broken(missing.rule, missing.reason, {}, evidence), repairs=lambda: repairs)
