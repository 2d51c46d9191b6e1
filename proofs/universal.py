"""Universal swizzles: for a class of accesses, one XOR of the low bits of a chunk number with its other bits.

A tile has 2^r rows of 2^w chunks; a chunk is what one lane moves, and its cell is ``chunk + 2^w row``. The low bits of
a cell are XORed with f of the other bits, f linear over F2 and given by the images of those bits, lowest first. If the
low bits are exactly the chunk bits, chunk c of row y is stored at place ``c ^ f(y)`` of its row.

If no such f is conflict-free, ``clash`` is a minimal set of members that no f serves together: each proper subset has
one.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.swizzling import SwizzlePlan

CHECK = Checker("LA923", "invalid argument to universal_swizzle()")


@dataclass(frozen=True, slots=True)
class ClassMember(Record, code="LA923"):
    """An access of a class: the cell of lane i is the XOR of the images of the bits of i.

    Args:
        name: Its name in reports.
        cells: Per lane bit, its cell: chunk + row * chunks per row.
        targets: The targets it is for.
    """

    name: str
    cells: tuple[int, ...]
    targets: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} on {', '.join(self.targets)}"


@dataclass(frozen=True, slots=True)
class ClassPlan(
    Record,
    Shown,
    code="LA923",
    schema="layoutalg/swizzle-class/1",
    json="rows row_bytes chunk_bytes columns low_bits formula members served=plan.served turns "
    "ideal=plan.ideal bound=plan.bound optimal space proof=plan.proof clash largest uncertified=plan.uncertified",
):
    """One XOR swizzle for all accesses of a class.

    Args:
        rows: Rows of the tile.
        row_bytes: Bytes of a row.
        chunk_bytes: Bytes of a chunk.
        columns: Images under f of the cell bits above the low ones.
        low_bits: Number of low bits.
        members: The accesses.
        plan: The swizzle as a plan, one access per member.
        clash: Numbers of members that no f serves together without conflicts, minimal; empty if the swizzle is
            conflict-free or nothing is proved.
        largest: Numbers of members in a maximal set that one f serves without conflicts.
    """

    rows: int
    row_bytes: int
    chunk_bytes: int
    columns: tuple[int, ...]
    low_bits: int
    members: tuple[ClassMember, ...]
    plan: SwizzlePlan
    clash: tuple[int, ...]
    largest: tuple[int, ...]

    def _validate(self) -> None:
        for value, most in ((self.rows, 1 << 13), (self.row_bytes, 1 << 17), (self.chunk_bytes, 17)):
            if CHECK.integer(value, "rows, row_bytes, chunk_bytes", 1, most) & (value - 1):
                raise CHECK.malformed("rows", "must be a power of two, and so must row_bytes and chunk_bytes", value)
        bits = (self.rows * self.row_bytes // self.chunk_bytes).bit_length() - 1
        if self.low_bits < 0 or len(self.columns) + self.low_bits != bits:
            raise CHECK.malformed("columns", f"must have {bits} entries with low_bits", self.columns)
        if any(not 0 <= column < 1 << self.low_bits for column in self.columns):
            raise CHECK.malformed("columns", f"must have entries of {self.low_bits} bits", self.columns)
        if any(not 0 <= place < len(self.members) for place in (*self.clash, *self.largest)):
            raise CHECK.malformed("clash", f"must be numbers of the {len(self.members)} members", self.clash)

    @property
    def turns(self) -> int:
        """Total turns of all members."""
        return self.plan.turns

    @property
    def conflict_free(self) -> bool:
        """Whether no member has a conflict."""
        return self.plan.conflict_free

    @property
    def space(self) -> str:
        """The layouts that were searched, in words."""
        return f"XORs of the low {self.low_bits} bits of {self.chunk_bytes}-byte chunk numbers with their other bits"

    @property
    def optimal(self) -> bool:
        """Whether no layout of ``space`` takes fewer turns, as proved."""
        return self.plan.optimal

    def place(self, row: int, chunk: int) -> int:
        """Return where a chunk is stored, in chunks from the start of the tile."""
        cell = chunk + row * (self.row_bytes // self.chunk_bytes)
        for bit, column in enumerate(self.columns, self.low_bits):
            cell ^= column if cell >> bit & 1 else 0
        return cell

    @property
    def formula(self) -> str:
        """The place of a chunk in its row as an expression in chunk and row; for long rows, of a cell in the tile."""
        plain = self.row_bytes == self.chunk_bytes << self.low_bits
        first, name, base = ("chunk", "row", 0) if plain else ("cell", "cell", self.low_bits)
        terms = [first]
        left = dict(enumerate(self.columns))
        for shift in sorted(range(-8, 9), key=lambda shift: (abs(shift), shift < 0)):
            fits = [bit for bit, column in left.items() if bit - shift >= 0 and column == 1 << bit - shift]
            if len(fits) > 1 or (fits and shift == 0):
                mask = sum(1 << bit - shift for bit in fits)
                terms.append(f"({_moved(name, base + shift)} & {mask})")
                left = {bit: column for bit, column in left.items() if bit not in fits}
        for bit, column in left.items():
            times = f" * {column}" if column > 1 else ""
            terms += [f"({_moved(name, base + bit)} & 1){times}"] if column else []
        return " ^ ".join(terms)

    def __str__(self) -> str:
        lines = [f"swizzle       {self.formula}", f"tile          {self.rows} rows of {self.row_bytes} bytes"]
        wide = max(14, *(len(member.name) + 2 for member in self.members))
        for each in self.plan.served:
            lines.append(f"{self.members[each.access].name:<{wide}}{each}")
        most = f"the minimum over all {self.space}" if self.optimal else f"all {self.space} take >= {self.plan.bound}"
        lines.append(f"turns         {self.turns}, {most}: {self.plan.proof}")
        if self.clash:
            names = ", ".join(self.members[place].name for place in self.clash)
            lines.append(f"incompatible  {names}")
            lines.append(f"compatible    {', '.join(self.members[place].name for place in self.largest)}")
        return "\n".join(lines)

    def check(self) -> ClassPlan:
        """Return the plan after comparing it with the formula and recounting the turns of every member."""
        wrong = Checker("LA924", "wrong universal swizzle")
        self.plan.check()
        chunks = self.row_bytes // self.chunk_bytes
        inner = self.chunk_bytes * 8 // self.plan.element_bits
        table = self.plan.smem.table().reshape(-1)
        for row in range(self.rows):
            for chunk in range(chunks):
                cell = (chunk + row * chunks) * inner
                wanted = self.place(row, chunk) * inner
                if int(table[cell]) != wanted:
                    raise wrong.malformed("columns", f"must put chunk {chunk} of row {row} where smem does", wanted)
        for member, access in zip(self.members, self.plan.accesses, strict=True):
            if access.lanes != tuple(cell * inner for cell in member.cells):
                raise wrong.malformed("members", "must match the accesses of the plan", member.name)
        return self

    def certificates(self) -> tuple[Certificate, ...]:
        """Return ``bank-turns`` certificates, one for each member and target.

        Raises: RepresentabilityError: LA436, for a target that was not measured.
        """
        return self.plan.certificates()

    def least_certificates(self) -> tuple[Certificate, ...]:
        """Return certificates that nothing in ``space`` takes fewer turns; if conflict-free, that no placement does."""
        return self.plan.least_certificates()

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        names = ("target", "instruction", "turns", "ideal")
        served = [{"member": one.access, **{name: getattr(one, name) for name in names}} for one in self.plan.served]
        return Record.to_json(self) | {"served": served}


def _moved(name: str, shift: int) -> str:
    return name if not shift else f"({name} {'>>' if shift > 0 else '<<'} {abs(shift)})"
