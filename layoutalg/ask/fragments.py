"""Find the matrix instructions of a target that accept a register layout unchanged, via ``admissible``.

Main statements: instructions with the same operand fragment give the same answer, so one per fragment is asked and the
others are named with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutalg.ask.fact import Fact, said
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import Layout
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.admission import admissible
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_type
from layoutalg.targets.target_model import TargetModel, model_of

SECONDS = 10.0
MOST_PLACES = 2**14
"""Largest register layout asked about, in (register, lane, warp) places."""
OPERANDS = ("A", "B", "D")


def holds_registers(layout: object) -> bool:
    """Return whether a layout maps registers and lanes to coordinates.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> holds_registers(mma_operand("A", (16, 16), (1, 1), 2))
        True
    """
    if not isinstance(layout, Layout):
        return False
    try:
        return {"register", "lane"} <= set(layout.in_dims) and len(layout.out_dims) > 1
    except LayoutError:  # parametric, or not on a box
        return False


def fragments(layout: Any, dtype: str, target: str) -> Iterator[Fact]:
    """Yield the instructions that accept a register layout, or why none does.

    Args:
        layout: (register, lane, warp) to coordinates.
        dtype: Element type, by its own name.
        target: Architecture.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> for fact in fragments(mma_operand("A", (32, 32), (2, 1), 2), "bf16", "sm_80"):
        ...     print(fact.name, "-", fact.lines[0])
        registers - mma.m16n8k8.f32.bf16.A: 4 instructions of tile 16x8
    """
    if not holds_registers(layout) or layout.size > MOST_PLACES:
        return
    model = model_of(target)
    lines, names = [], []
    refused: Refused | None = None
    for consumers in _groups(model, dtype):
        try:
            found = admissible(layout, consumers[0], target, dtype, budget_seconds=clock.left(SECONDS))
        except LayoutError:
            continue
        if isinstance(found, Admitted):
            rest = consumers[1:]
            others = f" and {len(rest)} others" if len(rest) > 1 else "".join(f", {consumer}" for consumer in rest)
            first = str(found.descriptor.tiling).split("\n")[0]
            lines.append(f"{consumers[0]}{others}: {first}")
            names += consumers
        elif isinstance(found, Refused):
            refused = refused or found
    if lines:
        yield said("registers", lines, {"verdict": "admissible", "consumers": names})
    elif refused is not None:
        text = f"no {dtype} matrix instruction accepts them; {refused.consumer}: {refused.reasons[0]}"
        yield said("registers", text, {"verdict": "inadmissible", "because": refused.reasons[0]})


def _groups(model: TargetModel, dtype: str) -> list[list[str]]:
    """The consumers of this element type, grouped by fragment."""
    found: dict[LinearLayout, list[str]] = {}
    arch = model.target.arch
    wide = element_type(dtype).bits
    for instruction in model.instructions:
        family, _, name = instruction.partition(".")
        if family == "mma" and name not in MMA:
            continue  # sparse: needs metadata as well
        for operand in OPERANDS:
            if family == "mma":
                kind = mma_type(name, operand)
                fits = kind == dtype or (kind, dtype) == ("tf32", "f32")
            else:
                shape = (MFMA if family == "mfma" else WMMA)[arch][name]
                fits = wide == (shape.result_bits if operand == "D" else shape.element_bits)
            fragment = model.fragment(instruction, operand) if fits else None
            if isinstance(fragment, LinearLayout):
                found.setdefault(fragment, []).append(f"{instruction}.{operand}")
    if arch == "sm_90a":
        return [["wgmma.D"], ["wgmma.A.registers"], *found.values()]
    return list(found.values())
