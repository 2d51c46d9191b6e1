"""Padding plans: a padded tile in shared memory, the accesses it serves, and their bank turns, recounted.

A cell is the row-major number of a tile element. Pitches are element strides, outermost first; the last is 1. Interval
padding inserts ``amount`` elements after every ``interval`` elements of the dense tile.

A plan claims that smaller pitches are worse; ``check`` recounts those too, from the addresses of every instruction and
the target's bank model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import bank_turns
from layoutalg.proofs.rivals import MOST_STARTS, Rivals, intervals, pitches_to
from layoutalg.proofs.served import Elsewhere, Recounted, Served, counted, uncertified
from layoutalg.proofs.swizzling import KINDS, instruction_name
from layoutalg.targets.banks import bank_model
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA920", "invalid argument to padding()")
WRONG = Checker("LA921", "wrong padding plan")
MOST_CELLS = 1 << 18
LIMIT = 1 << 31
FORMS = ("pitches", "interval", "padded_shared", "reordered")


@dataclass(frozen=True, slots=True)
class CellAccess(Record, code="LA920", json="name kind bits instructions"):
    """Instructions that move cells of a tile."""

    name: str  # its name in reports
    kind: str  # ``"load"``, ``"store"``, ``"ldmatrix"``, ``"stmatrix"``; the last two optionally with ``".trans"``
    bits: int  # bits per lane, or per matrix row
    cells: tuple[tuple[int | None, ...], ...]  # per instruction, the first cell of each lane; None for an inactive lane

    def _validate(self) -> None:
        CHECK.choice(self.kind, "kind", KINDS)
        if not self.cells or any(all(cell is None for cell in lanes) for lanes in self.cells):
            raise CHECK.malformed("cells", "must have at least one instruction, each with an active lane", self.name)
        if any(cell is not None and not 0 <= cell < MOST_CELLS for cell in itertools.chain(*self.cells)):
            raise CHECK.malformed("cells", f"must be in [0, {MOST_CELLS})", self.name)
        if len(set(map(len, self.cells))) > 1:
            raise CHECK.malformed("cells", "must have one entry per lane in every instruction", self.name)

    @property
    def instructions(self) -> int:
        """Number of instructions."""
        return len(self.cells)

    @property
    def table(self) -> IntArray:
        """The first cells, int64[instruction, lane]; -1 for an inactive lane."""
        return np.array([[-1 if cell is None else cell for cell in lanes] for lanes in self.cells], dtype=np.int64)

    def instruction(self, target: str) -> str:
        """Return the instruction's name on a target."""
        name, _, trans = self.kind.partition(".")
        if name in ("load", "store"):
            return instruction_name(target, name, self.bits)
        return f"{name}.x{len(self.cells[0]) // 8}{'.' + trans if trans else ''}"

    def __str__(self) -> str:
        return f"{self.name} ({len(self.cells)} {self.kind}{'s' if len(self.cells) > 1 else ''} of {self.bits} bits)"


@dataclass(frozen=True, slots=True)
class PaddingPlan(
    Recounted,
    code="LA920",
    schema="layoutalg/padding-plan/1",
    json="shape element_bits form pitches interval amount order padding_bytes accesses served turns ideal plain bound "
    "optimal space proof uncertified better",
):
    """A padded tile and the accesses it serves, with their bank turns.

    Args:
        shape: Extents, outermost first.
        element_bits: Bits of an element.
        form: ``"pitches"``, ``"interval"``, ``"padded_shared"`` or ``"reordered"``.
        pitches: Element strides, outermost first; those of the dense tile for interval padding.
        interval: Elements between paddings; 0 for pitches.
        amount: Elements of one padding.
        order: Positions of the row-number bits, lowest first; empty if rows stay in order.
        accesses: The accesses it serves.
        served: Each access on each target.
        plain: Turns without padding; None if an access would be misaligned.
        bound: Lower bound on the turns of any padding of the form, as proved by the finder.
        proof: Proof of the bound.
        elsewhere: Search for plans of other forms, and swizzles, with fewer turns: see ``better``.
    """

    shape: tuple[int, ...]
    element_bits: int
    form: str
    pitches: tuple[int, ...]
    interval: int
    amount: int
    order: tuple[int, ...]
    accesses: tuple[CellAccess, ...]
    served: tuple[Served, ...]
    plain: int | None
    bound: int
    proof: str
    elsewhere: Elsewhere | None = field(default=None, compare=False, repr=False)

    def _validate(self) -> None:
        if self.form not in FORMS or len(self.pitches) != len(self.shape) or min(self.shape, default=0) < 1:
            raise CHECK.malformed("form", f"must be one of {', '.join(FORMS)}, with a pitch per extent", self.form)
        if prod(self.shape) > MOST_CELLS:
            raise CHECK.malformed("shape", f"must have at most {MOST_CELLS} elements", self.shape)
        for value in (*self.pitches, self.interval, self.amount):
            CHECK.integer(value, "pitches, interval and amount", 0, LIMIT)
        CHECK.integer(self.element_bits, "element_bits", 8, 129)
        for access in self.accesses:
            if access.table.max() >= prod(self.shape):
                raise CHECK.malformed("accesses", f"must have cells below {prod(self.shape)}", access.name)
        rows = prod(self.shape[:-1])
        if self.order and (rows != 1 << len(self.order) or sorted(self.order) != list(range(len(self.order)))):
            raise CHECK.malformed("order", f"must permute the bits of {rows} rows", self.order)

    @property
    def pitches_bytes(self) -> tuple[int, ...]:
        """The pitches in bytes."""
        return tuple(pitch * self.element_bits // 8 for pitch in self.pitches)

    @property
    def elements(self) -> int:
        """Span of the tile in elements, padding included."""
        return int(self.offsets().max()) + 1

    @property
    def padding_bytes(self) -> int:
        """Padding bytes up to the last element."""
        return (self.elements - prod(self.shape)) * self.element_bits // 8

    def offsets(self) -> IntArray:
        """Return the element offset of every cell."""
        return offsets_of(self.shape, self.pitches, self.interval, self.amount, self.order)

    def offset(self, *coordinates: int) -> int:
        """Return the element offset at tile coordinates, outermost first."""
        inside = len(coordinates) == len(self.shape) and all(
            0 <= at < extent for at, extent in zip(coordinates, self.shape, strict=True)
        )
        if not inside:
            raise CHECK.malformed("coordinates", f"must be inside {self.shape}", coordinates)
        return int(self.offsets()[np.ravel_multi_index(coordinates, self.shape)])

    def padded_shared(self) -> PaddedShared:
        """Return the layout as Triton's padded shared layout.

        Raises: MalformedError: LA700: an extent, the interval or the amount is not a power of two. LA920: the form is
            ``"pitches"``.
        """
        if self.form == "pitches" or len(self.shape) != 2:
            raise CHECK.malformed("form", "must be interval padding of a two-dimensional tile", self.form)
        pairs = [(self.interval, self.amount)] if self.amount else [(prod(self.shape), 1)]
        rows, columns = self.shape
        placed = {place: bit for bit, place in enumerate(self.order or range((rows - 1).bit_length()))}
        bases = [(0, 1 << bit) for bit in range((columns - 1).bit_length())]
        bases += [(1 << placed[place], 0) for place in range(len(placed))]
        return padded_shared(self.shape, pairs, offset_bases=bases)

    def addresses(self, access: int) -> tuple[tuple[int | None, ...], ...]:
        """Return the byte address of every lane of every instruction of an access."""
        return _addresses(self.accesses[access], self.offsets(), self.element_bits)

    def __str__(self) -> str:
        lines = [f"padding       {self._said()}: {self.padding_bytes} bytes"]
        names = [self.accesses[each.access].name for each in self.served]
        wide = max(14, *(len(name) + 2 for name in names))
        lines += [f"{name:<{wide}}{each}" for name, each in zip(names, self.served, strict=True)]
        before = "misaligned" if self.plain is None else f"{self.plain} turns"
        lines.append(f"turns         {self.turns}, {self.claim}: {self.proof}; {before} without padding")
        return "\n".join([*lines, *self.better_lines])

    @property
    def space(self) -> str:
        """The paddings of the form, in words."""
        return {
            "pitches": "pitches",
            "interval": "paddings of whole words after every 2^k elements",
            "padded_shared": "paddings of 2^j elements after every 2^k",
            "reordered": "paddings of 2^j elements after every 2^k with row bits permuted",
        }[self.form]

    @property
    def title(self) -> str:
        """The form and the padding in one line."""
        return f"padding of form {self.form}: {self._said()}"

    def _said(self) -> str:
        size = self.element_bits
        tile = " x ".join(map(str, self.shape))
        if self.form == "pitches":
            pitches = ", ".join(f"{pitch} ({pitch * size // 8} bytes)" for pitch in self.pitches[:-1]) or "none"
            return f"{tile} of {size} bits, pitches {pitches}"
        rows = f", row bits moved to {list(self.order)}" if self.order else ""
        return f"{tile} of {size} bits, {self.amount} elements after every {self.interval}{rows}"

    def lesser(self) -> Iterator[tuple[int, ...]]:
        """Yield the pitches that this plan claims are worse: all smaller ones if only one pitch is free."""
        free = [place for place, extent in enumerate(self.shape[:-1]) if extent > 1]
        if self.form != "pitches" or len(free) > 1:
            return
        for pitch in range(prod(self.shape[free[0] + 1 :]), self.pitches[free[0]]) if free else ():
            found = [0] * len(self.shape)
            for place in reversed(range(len(self.shape))):
                inner = found[place + 1] * self.shape[place + 1] if place + 1 < len(self.shape) else 1
                found[place] = pitch if place == free[0] else inner
            yield tuple(found)

    def check(self) -> PaddingPlan:
        """Return the plan after recounting its turns, and those of smaller pitches, from all addresses.

        Raises: MalformedError: LA921, if a count or the layout differs from the plan.
        """
        offsets = self.offsets()
        if len(np.unique(offsets)) < len(offsets) or offsets.min() < 0:
            raise WRONG.malformed("pitches", "must map elements to distinct offsets", self._said())
        self.recount(WRONG)
        for pitches in self.lesser():
            clock.check("a check of smaller pitches")
            turns = self._turns(pitches)
            if turns is not None and turns <= self.turns:
                raise WRONG.malformed("pitches", f"must be minimal; {pitches} take {turns} turns", self.pitches)
        return self

    def serve_again(self, each: Served) -> Served:
        """Return an entry of ``served``, recounted from the addresses of its instructions."""
        return serve(self.accesses[each.access], each.access, self.offsets(), self.element_bits, each.target)

    def _turns(self, pitches: tuple[int, ...]) -> int | None:
        """Return the turns of other pitches; None if an access is misaligned."""
        offsets = offsets_of(self.shape, pitches, 0, 0, ())
        total = 0
        for each in self.served:
            access = self.accesses[each.access]
            if _misaligned(access, offsets, self.element_bits):
                return None
            total += serve(access, each.access, offsets, self.element_bits, each.target).turns
        return total

    def certificates(self) -> tuple[Certificate, ...]:
        """Return ``bank-turns`` certificates, one for each access and target.

        Instructions with inactive lanes are skipped: a certificate has the address of every lane.

        Raises: RepresentabilityError: LA436, for a target that was not measured.
        """
        found = []
        for each in self.served:
            whole = [lanes for lanes in self.addresses(each.access) if None not in lanes]
            if whole:
                found.append(bank_turns(each.target, each.instruction, np.array(whole, dtype=np.int64).reshape(-1)))
        return tuple(found)

    def rivals(self) -> Iterator[Rivals]:
        """Yield the paddings up to this one; if it has conflicts, all of one period."""
        size = self.element_bits // 8
        moved = [(each.target, each.instruction, self.accesses[each.access].table) for each in self.served]
        listed = list(self._listed())
        first = next(place for place, (own, _) in enumerate(listed) if own)
        layouts: tuple[object, ...] = tuple([*stages, ["affine", [[size]], [0]]] for _, stages in listed)
        yield Rivals(tuple(moved), layouts, self.turns, first)

    def listable(self) -> None:
        """Return if this is optimal and there are few enough paddings to compare it with."""
        if not self.optimal:
            raise uncertified(f"the proved lower bound is {self.bound} turns, the plan takes {self.turns}")
        most = MOST_STARTS // self.starts
        for place, _ in enumerate(self._listed()):
            if place >= most:
                raise uncertified(
                    f"over {most} paddings x {self.starts} lane addresses exceed a certificate's limit of {MOST_STARTS}"
                )

    def _listed(self) -> Iterator[tuple[bool, list[object]]]:
        """Yield the form's paddings in order: whether it is this one, and the stages from cell to offset."""
        for own, stages in self._all():
            yield own, stages
            if own and self.conflict_free:
                return

    def _all(self) -> Iterator[tuple[bool, list[object]]]:
        """Yield the form's paddings of one period, in order."""
        banks = max(bank_model(each.target, each.instruction).banks for each in self.served)
        period = -(-8 * (4 * banks + 3) // self.element_bits)
        if self.form == "pitches":
            free = [place for place, extent in enumerate(self.shape[:-1]) if extent > 1]
            last = list(self.pitches)
            if not self.conflict_free and len(free) > 1:
                raise uncertified("with several free dimensions one period has too many pitches to list")
            if not self.conflict_free and free:
                last[free[0]] = prod(self.shape[free[0] + 1 :]) + period
                for outer in reversed(range(free[0])):
                    last[outer] = last[outer + 1] * self.shape[outer + 1]
            for each in pitches_to(self.shape, last):
                split, affine = list(self.shape[::-1]), list(each[::-1])
                yield each == self.pitches, [["split", split], ["affine", [affine], [0]]]
            return
        bits, columns = (prod(self.shape[:-1]) - 1).bit_length(), self.shape[-1]
        orders = list(itertools.permutations(range(bits))) if self.form == "reordered" else [()]
        for interval, amount in intervals(prod(self.shape), self.form, self.element_bits, period):
            for order in orders:
                rows: list[object] = [["split", [columns, *[2] * bits]]] if order else []
                rows += [["affine", [[1, *(columns << place for place in order)]], [0]]] if order else []
                own = (interval, amount, order) == (self.interval, self.amount, self.order)
                yield own, [*rows, ["split", [interval, 1]], ["affine", [[1, interval + amount]], [0]]]


def offsets_of(
    shape: Sequence[int], pitches: Sequence[int], interval: int, amount: int, order: Sequence[int]
) -> IntArray:
    """Return the element offset of every cell of a padded tile."""
    cells = np.arange(prod(shape), dtype=np.int64)
    if not interval:
        where = np.unravel_index(cells, tuple(shape))
        return sum((at * pitch for at, pitch in zip(where, pitches, strict=True)), start=np.zeros_like(cells))
    if order:
        rows, column = np.divmod(cells, shape[-1])
        placed = sum(((rows >> bit & 1) << place for bit, place in enumerate(order)), start=np.zeros_like(rows))
        cells = placed * shape[-1] + column
    return cells + amount * (cells // interval)


def serve(access: CellAccess, number: int, offsets: IntArray, element_bits: int, target: str) -> Served:
    """Return how an access is served with cells at these offsets, counted from addresses.

    Raises: MalformedError: LA709: misaligned. RepresentabilityError: LA712.
    """
    cells = access.table
    places = np.where(cells < 0, 0, offsets[cells] * element_bits // 8)
    return counted(number, target, access.instruction(target), places, cells >= 0)


def _addresses(access: CellAccess, offsets: IntArray, element_bits: int) -> tuple[tuple[int | None, ...], ...]:
    places = (offsets * element_bits // 8).tolist()
    return tuple(tuple(None if cell is None else places[cell] for cell in lanes) for lanes in access.cells)


def _misaligned(access: CellAccess, offsets: IntArray, element_bits: int) -> bool:
    grain = 32 if access.bits == 96 else access.bits
    return bool((offsets[access.table[access.table >= 0]] * element_bits % grain).any())
