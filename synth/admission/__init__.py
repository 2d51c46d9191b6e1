"""Decide whether an instruction can carry a layout: the answer is the descriptor bits, a reason, or unknown.

Each consumer's file defines ``find(request)``; ``CONSUMERS`` lists them. A finder is exact: it admits only what a
checker has proved, refuses only what no descriptor carries, and otherwise says what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.document import Reader, load_json
from layoutalg.ground.errors import BudgetError, MalformedError, Repair
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.synth.admission import amd, bulk, copies, fragments, im2col, matrices, refusals, tcgen05, tma, wgmma
from layoutalg.synth.admission.repairs import SCHEMA
from layoutalg.synth.admission.request import ALIGN_BYTES, CHECK, TARGET, Finder, Request, of_layout, request_of
from layoutalg.targets.nvidia.accesses import full_name
from layoutalg.targets.target_model import Absent, model_of

__all__ = ["CONSUMERS", "Admission", "Admitted", "Refused", "Request", "admissible", "asked_again"]

CONSUMERS: Mapping[str, Finder] = MappingProxyType(
    {
        "tma": tma.find,
        "tma.im2col": im2col.find,
        "bulk": bulk.find,
        "wgmma": wgmma.find,
        **dict.fromkeys(("ldmatrix", "stmatrix", "ld.shared", "st.shared"), matrices.find),
        "mma": fragments.find,
        "cp.async": copies.find,
        **dict.fromkeys(("mfma", "wmma"), amd.find_matrix),
        **dict.fromkeys((*amd.ACCESSES, *amd.UNDOCUMENTED), amd.find_access),
        "tcgen05": tcgen05.find,
        **dict.fromkeys(("tcgen05.D", "tcgen05.ld", "tcgen05.st"), tcgen05.find_held),
    }
)
"""Finders by prefix of the consumer's name; the longest matching prefix wins."""
_OF_REGISTERS = ("mma", "mfma", "wmma", "tcgen05.D", "tcgen05.ld", "tcgen05.st")
"""Consumers that take register layouts."""


def admissible(
    layout: object,
    consumer: str,
    target: str = TARGET,
    dtype: object = None,
    *,
    tile: Sequence[int] | None = None,
    align_bytes: int = ALIGN_BYTES,
    budget_seconds: float = PLAN_SECONDS,
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
        budget_seconds: Wall-time budget.
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
    consumer = full_name(consumer)
    words = consumer.split(".")
    heads = (".".join(words[:many]) for many in range(len(words), 0, -1))
    head = next((head for head in heads if head in CONSUMERS), None)
    if head is None:
        raise CHECK.malformed("consumer", f"must begin with one of {', '.join(CONSUMERS)}", consumer)
    given = clock.checked_seconds(budget_seconds, "budget_seconds")
    asked = _asked(layout)
    if asked is not None:
        layout, dtype, target, tile, align_bytes, options = _stated(asked, consumer)
    if wgmma.is_problem(layout):
        layout, dtype, tile, align_bytes, options = wgmma.stated(layout, consumer, options, dtype, tile, align_bytes)
    of_registers = head in _OF_REGISTERS or consumer in wgmma.OF_REGISTERS
    try:
        request = request_of(
            layout, consumer, target, dtype, tile, align_bytes, options, of_registers=of_registers
        )  # fmt: skip
        missing = model_of(request.target).consumer(consumer)
        if isinstance(missing, Absent):
            return refusals.absent(request, head, _absent(request, missing))
        with clock.within(given):
            answer = CONSUMERS[head](request)
            return refusals.certified(request, head, answer) if isinstance(answer, Refused) else answer
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


def _asked(layout: object) -> Mapping[str, Any] | None:
    """Return the request document, if one was given instead of a layout."""
    if isinstance(layout, str) and layout.lstrip().startswith("{") and f'"{SCHEMA}"' in layout:
        layout = load_json(layout)
    return layout if isinstance(layout, Mapping) and layout.get("schema") == SCHEMA else None


def _stated(
    document: Mapping[str, Any], consumer: str
) -> tuple[object, object, str, Sequence[int], int, dict[str, object]]:
    """Return the arguments that a request document states."""
    reader = Reader(dict(document))
    reader.keys(("schema", "layout", "consumer", "target", "dtype", "tile", "align_bytes"), ("options",))
    if reader.get("consumer").text() != consumer:
        raise CHECK.malformed("consumer", f"must be {document['consumer']}, as in the document", consumer)
    options = document.get("options", {})
    if not isinstance(options, Mapping):
        reader.get("options").fail("must be an object")
    tile = [part.integer(1) for part in reader.get("tile").items()]
    layout = document["layout"]
    return (
        np.asarray(layout) if isinstance(layout, list) else reader.get("layout").text(), reader.get("dtype").text(),
        reader.get("target").text(), tile, reader.get("align_bytes").integer(1), dict(options),
    )  # fmt: skip


def _absent(request: Request, missing: Absent) -> Refused:
    """Refuse because the target has no such instruction; suggest what it has instead."""
    name, arch = request.dtype.name, request.target
    repairs = tuple(Repair(f"use {other}", f"{arch} has {other} instead") for other in missing.instead)
    return Refused(request.consumer, arch, name, (missing.rule,), (missing.reason,), {}, repairs)
