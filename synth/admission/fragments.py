"""Whether mma.sync takes a layout of registers as one of its operands.

Main definitions: ``find``, ``FragmentPlan``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from layoutalg.ground.errors import Repair
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Grade, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.evidence import proved
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.fragments import Mismatch, Tiling, coordinates, tiling
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, MMA, mma_fragment, mma_type
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

_SAME = {"f32": "tf32", "tf32_ftz": "tf32", "i1": "b1"}
"""Types by the name that an operand of mma has for them."""


@dataclass(frozen=True, slots=True)
class FragmentPlan:
    """A layout of registers as operands of one ``mma.sync``.

    Args:
        instruction: Its name in PTX.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.
        tiling: Which registers and which tile each instruction takes: the quotient.
    """

    instruction: str
    operand: str
    tiling: Tiling

    def __post_init__(self) -> None:
        checked_kinds(self, "LA823")

    def __str__(self) -> str:
        return f"{self.operand} of {self.instruction}: {self.tiling}"

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": "layoutalg/fragment-plan/1", "instruction": self.instruction, "operand": self.operand,
            "tiling": self.tiling.to_json(),
        }  # fmt: skip


def find(request: Request) -> Admission:
    """Return which instructions take the registers, or the first place where they are none's.

    Mathematically: admitted exactly if the layout is a tiling of the instruction's fragment, elements of a 32-bit
    register in order: see ``layoutalg.synth.fragments``. Coordinates are (row, k) of A, (k, col) of B, (row, col) else.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> layout = mma_operand("A", (32, 32), (2, 1), 2)
        >>> found = admissible(layout, "mma.m16n8k16.f32.bf16.A")
        >>> print(found.descriptor.tiling.quotient)
        (((0, 0), (1, 0)), ((0, 1), (1, 1)))
        >>> admissible(layout, "mma.m16n8k8.f32.tf32.A", dtype="tf32").rules
        ('FRAGMENT',)
    """
    request.only()
    _, _, rest = request.consumer.partition(".")
    name, _, operand = rest.rpartition(".")
    if name.startswith("sp."):
        return Unknown("fragments and metadata of sparse mma are not recorded here", ("mma.sp",))
    if name not in MMA or operand not in ("A", "B", "C", "D"):
        rule = "must be mma, a dense instruction and A, B, C or D, such as mma.m16n8k16.f32.bf16.A"
        raise CHECK.malformed("consumer", rule, request.consumer)
    if f"mma.{name}" not in model_of(request.target).instructions:
        return _refused(request, "MMA_ARCH", f"{request.target} has no {MMA[name].ptx}")
    kind = mma_type(name, operand)
    allowed = {ELEMENT_BITS[kind], ELEMENT_BITS[MMA[name].operand]}
    given = _SAME.get(request.dtype.name, request.dtype.name)
    other_type = operand in ("A", "B") and given in ELEMENT_BITS and given != kind
    if request.dtype.bits not in allowed or other_type:
        because = f"operand {operand} of {name} has elements of type {kind}, not {request.dtype.name}"
        return _refused(request, "MMA_DTYPE", because, {"dtype": request.dtype.name})
    layout = request.layout
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims) or len(layout.out_dims) != 2:
        because = "the layout does not take register and lane to two coordinates"
        return _refused(request, "REGISTER_AXES", because, {"axes": tuple(getattr(layout, "in_dims", ()))})
    fragment = mma_fragment(name, operand)
    found = tiling(layout, fragment, min(max(1, 32 // ELEMENT_BITS[kind]), fragment.in_dims["register"]))
    if isinstance(found, Mismatch):
        return _refused(request, "FRAGMENT", found.because, found.witness, tuple(_repairs(request, name, operand)))
    asked = coordinates(layout)[0]
    statement = {"f": document(_flat(found.table(fragment), asked)), "g": document(_flat(asked, asked))}
    seal = proved("equality", statement, [{"by": "table"}], f"{request.consumer} takes the registers")
    grade: Grade = "measured" if lookup(request.target).measured else "documented"
    plan = FragmentPlan(MMA[name].ptx, operand, found)
    return Admitted(request.consumer, request.target, request.dtype.name, plan, seal, grade)


def _flat(table: IntArray, like: IntArray) -> IntArray:
    """Return coordinates as one number each."""
    return np.asarray(table[..., 0] + (int(like[..., 0].max()) + 1) * table[..., 1], dtype=np.int64).reshape(-1)


def _repairs(request: Request, name: str, operand: str) -> Iterator[Repair]:
    """Yield other instructions with the same types that take the registers, and the other operand."""
    made = MMA[name]
    for other, shape in MMA.items():
        same = (shape.operand, shape.operand_b, shape.result) == (made.operand, made.operand_b, made.result)
        for side in "ABD" if same else "":
            consumer = f"mma.{other}.{side}"
            if (other, side) == (name, operand) or mma_type(other, side) != mma_type(name, operand):
                continue
            fragment = mma_fragment(other, side)
            word = min(max(1, 32 // ELEMENT_BITS[mma_type(other, side)]), fragment.in_dims["register"])
            if isinstance(tiling(request.layout, fragment, word), Tiling):
                yield Repair("take another instruction", consumer)
                return


def _refused(
    request: Request,
    rule: str,
    reason: str,
    witness: Mapping[str, object] | None = None,
    repairs: tuple[Repair, ...] = (),
) -> Refused:
    name = request.dtype.name
    return Refused(request.consumer, request.target, name, (rule,), (reason,), witness or {}, repairs, None)
