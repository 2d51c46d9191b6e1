"""Decide whether mma.sync, dense or sparse, accepts a register layout as an operand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.layout import Layout
from layoutalg.proofs.admission import Admission, Admitted, Grade, Refused
from layoutalg.proofs.certify.banks import document
from layoutalg.proofs.certify.evidence import proved
from layoutalg.synth.admission.repairs import ranked_consumers
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.fragments import Mismatch, Tiling, coordinates, tiling
from layoutalg.targets.layouts.nvidia_instructions import (
    ELEMENT_BITS,
    MMA,
    MMA_SP,
    MmaInstruction,
    SparseMma,
    mma_fragment,
    mma_sp_fragment,
    mma_sp_metadata,
    mma_sp_selectors,
    mma_sp_type,
    mma_type,
    variant_of,
)
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

_SAME = {"f32": "tf32", "tf32_ftz": "tf32", "i1": "b1"}
"""Type names as mma operands spell them."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    """A dense or sparse instruction; ``variant`` is empty for dense ones."""

    variant: str
    name: str

    @property
    def table(self) -> Mapping[str, MmaInstruction | SparseMma]:
        """The table that lists this instruction."""
        return MMA_SP if self.variant else MMA

    @property
    def full(self) -> str:
        """Its name in the target models."""
        return ".".join(filter(None, ("mma", self.variant, self.name)))

    @property
    def ptx(self) -> str:
        """Its name in PTX."""
        return MMA_SP[self.name].ptx(self.variant) if self.variant else MMA[self.name].ptx

    def type(self, operand: str) -> str:
        """Element type of an operand."""
        return (mma_sp_type if self.variant else mma_type)(self.name, operand)

    def fragment(self, operand: str) -> LinearLayout:
        """The fragment: (register, lane) to operand coordinates."""
        return (mma_sp_fragment if self.variant else mma_fragment)(self.name, operand)

    def word(self, operand: str) -> int:
        """Elements per 32-bit register."""
        return min(max(1, 32 // ELEMENT_BITS[self.type(operand)]), self.fragment(operand).in_dims["register"])


@dataclass(frozen=True, slots=True)
class FragmentPlan:
    """A register layout divided into operands of one ``mma.sync``.

    Args:
        instruction: Its name in PTX.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.
        tiling: The registers and the tile of each instruction: the quotient.
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
    """Divide the registers among instructions, or return the first place where that fails.

    Mathematically: admitted exactly if the layout is a tiling of the instruction's fragment with the elements of each
    32-bit register in order: see ``layoutalg.synth.fragments``. Coordinates are (row, k) for A, (k, col) for B, (row,
    col) for C and D, and (row, stored element of the row) for A of ``mma.sp``, which has two options: ``selector``,
    and ``metadata``, int[32, 8, 2]: the row and group that each nibble of each lane's metadata word describes. It must
    agree with what the instruction reads.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> layout = mma_operand("A", (32, 32), (2, 1), 2)
        >>> found = admissible(layout, "mma.m16n8k16.f32.bf16.A")
        >>> print(found.descriptor.tiling.quotient)
        (((0, 0), (1, 0)), ((0, 1), (1, 1)))
        >>> admissible(layout, "mma.m16n8k8.f32.tf32.A", dtype="tf32").rules
        ('FRAGMENT',)
        >>> admissible(layout, "mma.sp.m16n8k32.f32.bf16.A").descriptor.instruction
        'mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32'
    """
    _, _, rest = request.consumer.partition(".")
    name, _, operand = rest.rpartition(".")
    variant, short = variant_of(name)
    made = _Instruction(variant, short or name)
    if made.name not in made.table or operand not in ("A", "B", "C", "D"):
        rule = "must be mma or mma.sp, an instruction and A, B, C or D, such as mma.m16n8k16.f32.bf16.A"
        raise CHECK.malformed("consumer", rule, request.consumer)
    request.only(*(("metadata", "selector") if variant and operand == "A" else ()))
    if made.full not in model_of(request.target).instructions:
        return _refused(request, "MMA_ARCH", f"{request.target} has no {made.ptx}")
    kind = made.type(operand)
    allowed = {ELEMENT_BITS[kind], ELEMENT_BITS[made.table[made.name].operand]}
    given = _SAME.get(request.dtype.name, request.dtype.name)
    other_type = operand in ("A", "B") and given in ELEMENT_BITS and given not in _alike(kind)
    if request.dtype.bits not in allowed or other_type:
        because = f"operand {operand} of {name} must be {kind}, got {request.dtype.name}"
        return _refused(request, "MMA_DTYPE", because, {"dtype": request.dtype.name})
    layout = request.layout
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(layout.in_dims) or len(layout.out_dims) != 2:
        because = "the layout must map (register, lane) to two coordinates"
        return _refused(request, "REGISTER_AXES", because, {"axes": tuple(getattr(layout, "in_dims", ()))})
    if variant and operand == "A" and (told := _metadata(request, made)) is not None:
        return told
    fragment = made.fragment(operand)
    found = tiling(layout, fragment, made.word(operand))
    if isinstance(found, Mismatch):
        return _refused(request, "FRAGMENT", found.because, found.witness).deferred(
            repairs=lambda: ranked_consumers(request, find, _others(made, operand))
        )
    asked = coordinates(layout)[0]
    statement = {"f": document(_flat(found.table(fragment), asked)), "g": document(_flat(asked, asked))}
    seal = proved("equality", statement, [{"by": "table"}], f"{request.consumer} accepts the registers")
    grade: Grade = "measured" if lookup(request.target).measured else "documented"
    plan = FragmentPlan(made.ptx, operand, found)
    return Admitted(request.consumer, request.target, request.dtype.name, plan, seal, grade)


def _metadata(request: Request, made: _Instruction) -> Refused | None:
    """Compare the metadata layout, if given, with the one that the instruction reads."""
    selector = CHECK.integer(request.options.get("selector", 0), "selector", 0)
    many = mma_sp_selectors(made.name)
    if selector >= many:
        speak = {4: "one lane of each four supplies", 2: "two lanes of each four supply", 1: "all lanes supply"}[many]
        because = f"{made.name} has {many} selector{'s' * (many > 1)}: {speak} metadata"
        return _refused(request, "MMA_SELECTOR", because, {"selector": selector})
    if "metadata" not in request.options:
        return None
    wanted = mma_sp_metadata(made.name, selector)
    given = np.asarray(request.options["metadata"])
    if given.shape != wanted.shape or given.dtype.kind not in "iu":
        rule = "must be integers [lane, nibble, 2]: the row and group that each nibble describes"
        raise CHECK.malformed("metadata", rule, given.shape)
    wrong = np.argwhere((wanted[..., 0] >= 0) & (given != wanted).any(axis=-1))
    if not len(wrong):
        return None
    lane, nibble = (int(part) for part in wrong[0])
    holds, needs = (tuple(int(part) for part in table[lane, nibble]) for table in (given, wanted))
    witness = {"lane": lane, "nibble": nibble, "holds": holds, "needs": needs}
    described = "no row" if holds[0] < 0 else f"row {holds[0]}, group {holds[1]}"
    because = f"nibble {nibble} of lane {lane} describes {described}; expected row {needs[0]}, group {needs[1]}"
    return _refused(request, "MMA_METADATA", because, witness)


def _alike(kind: str) -> tuple[str, ...]:
    """Interchangeable types: 4-bit integers, signed or not."""
    return ("s4", "u4") if kind in ("s4", "u4") else (kind,)


def _flat(table: IntArray, like: IntArray) -> IntArray:
    """Flatten each coordinate to one number."""
    return np.asarray(table[..., 0] + (int(like[..., 0].max()) + 1) * table[..., 1], dtype=np.int64).reshape(-1)


def _others(made: _Instruction, operand: str) -> dict[str, tuple[str, str]]:
    """Other instructions with the same types, and other operands of the same element type."""
    mine = made.table[made.name]
    found = {}
    for name, shape in made.table.items():
        other = _Instruction(made.variant, name)
        same = (shape.operand, shape.operand_b, shape.result) == (mine.operand, mine.operand_b, mine.result)
        for side in "ABD" if same else "":
            if (name, side) != (made.name, operand) and other.type(side) == made.type(operand):
                found[f"{other.full}.{side}"] = "take another instruction", f"{other.full}.{side}"
    return found


def _refused(
    request: Request,
    rule: str,
    reason: str,
    witness: Mapping[str, object] | None = None,
) -> Refused:
    name = request.dtype.name
    return Refused(request.consumer, request.target, name, (rule,), (reason,), witness or {})
