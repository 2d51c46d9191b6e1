"""Decide whether loads or stores move a pattern or an operand between shared memory and registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.swizzling import instruction_name, widths
from layoutalg.synth.admission.request import CHECK, of_layout, request_of
from layoutalg.synth.named_accesses import lacking, name_of, named
from layoutalg.targets.consumers import CONSUMERS, head_of
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of


def by_name(
    ask: Callable[..., Admission],
    consumer: str,
    layout: object,
    target: str,
    dtype: object,
    tile: Sequence[int] | None,
    align_bytes: int,
    seconds: float,
    options: Mapping[str, object],
) -> Admission:
    """Return the widest load or store that moves a named access; other arguments as for ``admissible``.

    Args:
        ask: ``admissible``.
        consumer: The name.

    Raises: MalformedError: LA801, LA990.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> [admissible("(64,64):(72,1)", name, dtype="f16").consumer for name in ("rows:store", "mma.A", "columns")]
        ['st.shared.v4.b32', 'ld.shared.b32', 'ld.shared.b16']
    """
    said = name_of(consumer, "consumer")
    if said is None or said.is_instruction:
        raise CHECK.malformed("consumer", f"must begin with one of {', '.join(CONSUMERS)}", consumer)
    try:
        request = request_of(layout, str(said), target, dtype, tile, align_bytes, options)
        request.only()
        if isinstance(request.layout, LinearLayout) and "lane" in request.layout.in_dims:
            unit, _, side = said.name.partition(".")
            whole = next(
                (f"{name}.{side}" for name in model_of(target).instructions if name.startswith(f"{unit}.")), ""
            )
            rule = f"must be a tile in shared memory, which {said} reads or writes"
            raise CHECK.malformed("layout", f"{rule}; for registers name the instruction, such as {whole}", layout)
        if (missing := lacking(said, target)) is not None:
            evidence = conditions.named(target, *CONSUMERS[head_of(said.name) or ""].targets)
            return request.refused(Broken(missing.rule, missing.reason, {}, evidence))
        registers = named(said, request.extents, request.dtype.bits, target)
    except MalformedError as error:
        raise of_layout(error) from None
    found: Admission | None = None
    how = said.by(request.dtype.bits, target)
    for bits in widths(target, how, request.dtype.bits):
        found = ask(
            layout, instruction_name(target, how, bits), target, dtype, tile=tile, align_bytes=align_bytes,
            seconds=seconds, registers=registers,
        )  # fmt: skip
        if isinstance(found, Admitted):
            return found
    if found is None or lookup(target).vendor == "amd":  # narrower instructions exist, but not in these tables
        verb = "loads" if said.direction == "load" else "stores"
        return Unknown(f"none of the {verb} of {target} that are known here moves {said}", ("lds",))
    return found
