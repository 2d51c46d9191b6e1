"""Swizzle plans: a shared layout, the accesses it serves, and their bank turns, recounted from addresses.

An access is a linear layout from (register, lane, warp) to tile coordinates. A v-element instruction applies if every
lane has v registers, the same ones in all lanes, in an aligned run of v offsets. Turns are counted from the addresses
of every instruction of every warp; the finders use ranks instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.f2.axes import fields
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import bank_turns
from layoutalg.proofs.rivals import MOST_STARTS, Rivals, cutes, hardware, xor_count, xors
from layoutalg.proofs.served import Elsewhere, Recounted, Served, counted, uncertified
from layoutalg.targets.banks import BankModel, bank_model
from layoutalg.targets.lds_rules import lds_name
from layoutalg.targets.nvidia.accesses import vector_name
from layoutalg.targets.registry import lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA910", "invalid argument to swizzle()")
KINDS = ("load", "store", "ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans")
ROW_BYTES = 16
_VECTORS = {8: "b8", 16: "b16", 32: "b32", 64: "v2.b32", 128: "v4.b32"}


@dataclass(frozen=True, slots=True)
class TileAccess(Record, code="LA910", json="layout kind"):
    """Registers of warps that are loaded from, or stored to, a tile in shared memory.

    Args:
        layout: From (register, lane) and any further axes, which count warps, to tile coordinates.
        kind: ``"load"``, ``"store"``: the widest vectors; a load or store by its name: vectors of its width;
            ``"ldmatrix"``, ``"ldmatrix.trans"``, ``"stmatrix"``, ``"stmatrix.trans"``: matrices of 8 rows of 16 bytes.

    Example:
        >>> rows = LinearLayout.from_bases({"register": [(1,)], "lane": [(2 << b,) for b in range(5)]}, {"tile": 64})
        >>> TileAccess(rows).registers, TileAccess(rows, "store").lanes
        ((1,), (2, 4, 8, 16, 32))
    """

    layout: LinearLayout
    kind: str = "load"

    def _validate(self) -> None:
        if self.kind not in KINDS and not _is_vector(self.kind):
            CHECK.choice(self.kind, "kind", KINDS)
        if not {"register", "lane"} <= set(self.layout.in_dims):
            raise CHECK.malformed("accesses", "must map the axes register and lane", str(self.layout.in_dims))

    @property
    def by_vectors(self) -> bool:
        """Whether loads or stores move it, rather than matrix instructions."""
        return "matrix" not in self.kind

    @property
    def registers(self) -> tuple[int, ...]:
        """Images of the register bits, packed."""
        return self._images("register")

    @property
    def distinct(self) -> tuple[int, ...]:
        """Images of the register bits that are independent of the earlier ones."""
        found: list[int] = []
        for image in self.registers:
            if matrix.rank([*found, image]) > len(found):
                found.append(image)
        return tuple(found)

    @property
    def lanes(self) -> tuple[int, ...]:
        """Images of the lane bits, packed."""
        return self._images("lane")

    @property
    def warps(self) -> tuple[int, ...]:
        """Images of the bits of all other axes, packed."""
        named = [name for name, _ in self.layout.in_axes if name not in ("register", "lane")]
        return tuple(column for name in named for column in self._images(name))

    def _images(self, wanted: str) -> tuple[int, ...]:
        places = {name: (first, bits) for name, first, bits in fields(self.layout.in_axes)}
        first, bits = places.get(wanted, (0, 0))
        return self.layout.columns[first : first + bits]


@dataclass(frozen=True, slots=True)
class SwizzlePlan(
    Recounted,
    code="LA910",
    schema="layoutalg/swizzle/1",
    json="form element_bits smem accesses served turns ideal bound optimal space proof uncertified better cute?",
):
    """A shared layout for several accesses, with their bank turns.

    Args:
        smem: Tile coordinates to element offsets, a bijection.
        element_bits: Bits of an element.
        accesses: The accesses it serves.
        served: Each access on each target.
        bound: Lower bound on the turns of any layout of the form, as proved by the finder.
        proof: Proof of the bound.
        form: The form searched: ``"any"``, ``"tma"``, ``"cute"``, ``"xor"``; ``space`` puts it in words.
        cute: The layout in CuTe notation, tile coordinates to element offsets, if the form has one.
        chunk_bytes: Chunk size of the form ``"xor"``.
        elsewhere: Search for plans of other forms, and paddings, with fewer turns: see ``better``.
    """

    smem: LinearLayout
    element_bits: int
    accesses: tuple[TileAccess, ...]
    served: tuple[Served, ...]
    bound: int
    proof: str
    form: str = "any"
    cute: str = ""
    chunk_bytes: int = 16
    elsewhere: Elsewhere | None = field(default=None, compare=False, repr=False)

    def _validate(self) -> None:
        if self.chunk_bytes < 1 or self.chunk_bytes & (self.chunk_bytes - 1):
            raise CHECK.malformed("chunk_bytes", "must be a power of two", self.chunk_bytes)

    def __str__(self) -> str:
        lines = [f"swizzle       {self.cute or self.smem}"]
        lines += [f"access {each.access:<7}{each}" for each in self.served]
        lines.append(f"turns         {self.turns}, {self.claim}: {self.proof}")
        return "\n".join([*lines, *self.better_lines])

    @property
    def space(self) -> str:
        """The layouts of the form, in words."""
        targets = ", ".join(dict.fromkeys(each.target for each in self.served))
        return {
            "any": "layouts linear over F2",
            "tma": f"boxes and swizzles that TMA writes on {targets}",
            "cute": "Sw<B,M,S> over the row-major or column-major tile",
            "xor": f"XORs of {self.chunk_bytes}-byte chunks with a linear map of the row number",
        }.get(self.form, self.form)

    @property
    def title(self) -> str:
        """The form and the layout in one line."""
        chunks = f" of {self.chunk_bytes}-byte chunks" if self.form == "xor" else ""
        return f"form {self.form}{chunks}: {self.cute or self.smem}"

    @property
    def by_rows(self) -> LinearLayout:
        """The row-major tile, without a swizzle."""
        starts = [range(first, first + bits) for _, first, bits in fields(self.smem.in_axes)]
        order = [bit for places in reversed(starts) for bit in places]
        columns = tuple(1 << order.index(bit) for bit in range(len(order)))
        return LinearLayout(self.smem.in_axes, self.smem.out_axes, columns)

    @property
    def why(self) -> str:
        """Per access, its turns here and in the row-major tile, and the lanes that conflict there."""
        lines = []
        for each in self.served:
            access = self.accesses[each.access]
            moved = f"access {each.access}, {access.kind} of {access.layout} by {each.instruction} of {each.target}"
            said = f"{moved}: {each.turns} turns"
            try:
                name, rows = instructions(access, self.by_rows, self.element_bits, each.target)
            except MalformedError:
                lines.append(f"{said}; in the row-major tile no instruction can move it")
                continue
            model = bank_model(each.target, name)
            worst = max((phase for row in np.concatenate(rows) for phase in model.phases(row)),
                        key=lambda phase: phase.turns - phase.least)  # fmt: skip
            before = sum(model.turns(row) for row in np.concatenate(rows))
            said += f"; in the row-major tile {before} with {name}"
            if worst.turns > worst.least:
                lanes = ", ".join(str(lane) for lane, _ in worst.busy[:8]) + (", ..." if len(worst.busy) > 8 else "")
                said += f": lanes {lanes} need {worst.turns} words of bank {worst.bank}"
            lines.append(said)
        return "\n".join(lines)

    def check(self) -> SwizzlePlan:
        """Return the plan after recounting its turns from the addresses of every instruction.

        Raises: MalformedError: LA911, if a count or the layout differs from the plan.
        """
        wrong = Checker("LA911", "wrong swizzle plan")
        if not self.smem.is_invertible:
            raise wrong.malformed("smem", "must be a bijection", str(self.smem))
        self.recount(wrong)
        return self

    def serve_again(self, each: Served) -> Served:
        """Return an entry of ``served``, recounted from the addresses of its instructions."""
        return serve(self.accesses[each.access], each.access, self.smem, self.element_bits, each.target)

    def certificates(self) -> tuple[Certificate, ...]:
        """Return ``bank-turns`` certificates, one for each access and target.

        Raises: RepresentabilityError: LA436, for a target that was not measured.
        """
        return tuple(
            bank_turns(each.target, each.instruction, np.concatenate(rows).reshape(-1))
            for each in self.served
            for _, rows in [instructions(self.accesses[each.access], self.smem, self.element_bits, each.target)]
        )

    def rivals(self) -> Iterator[Rivals]:
        """Yield every placement if the plan is conflict-free, otherwise the members of its form by instruction."""
        if self.turns == self.ideal:
            moved = []
            for each in self.served:
                model = bank_model(each.target, each.instruction)
                _, rows = instructions(self.accesses[each.access], self.smem, self.element_bits, each.target)
                moved.append((each.target, each.instruction, np.concatenate(rows) // model.access_bytes))
            yield Rivals(tuple(moved), None, self.turns)
            return
        yield from self._members()

    def listable(self) -> None:
        """Return if there are no conflicts, or if the form has few enough members."""
        if self.turns == self.ideal:
            return
        if not self.optimal:
            raise uncertified(f"the proved lower bound is {self.bound} turns, the plan takes {self.turns}")
        if self.form == "any" or len(self.smem.in_axes) < 2:
            raise uncertified("the form has too many layouts to list, and the search leaves no record")
        count = xor_count(self._axes, self._chunk) if self.form == "xor" else len(self._listed())
        if count * self.starts > MOST_STARTS:
            raise uncertified(
                f"{count} layouts x {self.starts} lane addresses exceed a certificate's limit of {MOST_STARTS}"
            )

    @property
    def _axes(self) -> list[tuple[int, int]]:
        return [(first, bits) for _, first, bits in fields(self.smem.in_axes)]

    @property
    def _chunk(self) -> int:
        """Log2 of the elements of a chunk."""
        return (8 * self.chunk_bytes // self.element_bits).bit_length() - 1

    def _listed(self) -> list[tuple[int, ...]]:
        """Return the members of the form, as offsets of tile bits."""
        targets = sorted({each.target for each in self.served})
        members = {
            "xor": lambda: xors(self._axes, self._chunk),
            "cute": lambda: cutes(self._axes),
            "tma": lambda: hardware(self._axes, self.element_bits, targets),
        }[self.form]()
        return list(dict.fromkeys(members))

    def _members(self) -> Iterator[Rivals]:
        """Yield the members of the form, grouped by equal instructions and starting elements."""
        sets: dict[tuple[object, ...], tuple[tuple[tuple[str, str, IntArray], ...], list[object], list[int]]] = {}
        for columns in self._listed():
            smem = LinearLayout(self.smem.in_axes, self.smem.out_axes, columns)
            moved = self._starts(smem)
            if moved is None:
                continue
            key = tuple((name, cells.tobytes()) for _, name, cells in moved)
            _, layouts, turns = sets.setdefault(key, (moved, [], []))
            layouts.append([["xor", [column * self.element_bits // 8 for column in columns], 0]])
            total = 0
            for each in self.served:
                total += serve(self.accesses[each.access], each.access, smem, self.element_bits, each.target).turns
            turns.append(total)
        for moved, layouts, turns in sets.values():
            yield Rivals(moved, tuple(layouts), min(turns), turns.index(min(turns)))

    def _starts(self, smem: LinearLayout) -> tuple[tuple[str, str, IntArray], ...] | None:
        """Return a layout's instructions and the elements their lanes start at; None if an access has none."""
        element = np.argsort(smem.table().reshape(-1))
        found = []
        for each in self.served:
            try:
                name, rows = instructions(self.accesses[each.access], smem, self.element_bits, each.target)
            except MalformedError:
                return None
            found.append((each.target, name, element[np.concatenate(rows) * 8 // self.element_bits]))
        return tuple(found)


def serve(access: TileAccess, number: int, smem: LinearLayout, element_bits: int, target: str) -> Served:
    """Return how an access to a shared layout is served, counted from addresses.

    Raises: MalformedError: LA910, if no instruction can move it. RepresentabilityError: LA712.
    """
    name, rows = instructions(access, smem, element_bits, target)
    return counted(number, target, name, np.concatenate(rows))


def instruction_name(target: str, kind: str, bits: int) -> str:
    """Return the name of the load or store of ``bits`` bits per lane; a kind that is one itself is its name."""
    if kind not in ("load", "store"):
        return kind
    if lookup(target).vendor == "amd":
        return f"ds_{'read' if kind == 'load' else 'write'}_b{bits}"
    return f"{'ld' if kind == 'load' else 'st'}.shared.{_VECTORS[bits]}"


def instruction_bits(instruction: str) -> int:
    """Return the bits per lane of a load or store named by ``instruction_name``.

    Example:
        >>> instruction_bits("st.shared.v4.b32"), instruction_bits("ds_read_b64")
        (128, 64)
    """
    vector, _, bits = instruction.rpartition("b")
    count = vector.rpartition(".v")[2].rstrip(".") if ".v" in vector else "1"
    return int(bits) * int(count)


@lru_cache(maxsize=256)
def widths(target: str, kind: str, element_bits: int) -> tuple[int, ...]:
    """Return the widths, in bits per lane, of the loads or stores with a known bank model, widest first."""
    found = []
    if kind not in ("load", "store"):
        model = _known(target, kind)
        return () if model is None or 8 * model.access_bytes < element_bits else (8 * model.access_bytes,)
    for bits in (128, 64, 32, 16, 8):
        if bits >= element_bits and _known(target, instruction_name(target, kind, bits)):
            found.append(bits)
    return tuple(found)


def _is_vector(kind: object) -> bool:
    return isinstance(kind, str) and (vector_name(kind) == kind or (lds_name(kind) == kind and "2" not in kind[:9]))


def _known(target: str, name: str) -> BankModel | None:
    try:
        return bank_model(target, name)
    except RepresentabilityError:
        return None


def instructions(
    access: TileAccess, smem: LinearLayout, element_bits: int, target: str
) -> tuple[str, Sequence[IntArray]]:
    """Return the widest instruction that can move an access, and each one's byte addresses: int64[warp, lane]."""
    offsets = _offsets(access, smem)
    if access.by_vectors:
        tried = widths(target, access.kind, element_bits)
        for bits in tried:
            starts = _runs(offsets, bits // element_bits)
            if starts is not None:
                rows = [start * element_bits // 8 for start in starts]
                return instruction_name(target, access.kind, bits), rows
        rule = f"must fit a {access.kind} of {target} with a known bank model: {tried} bits"
        raise CHECK.malformed("accesses", rule, str(access.layout))
    return _matrix_instructions(access, offsets, element_bits)


def _offsets(access: TileAccess, smem: LinearLayout) -> IntArray:
    """Return the element offset of every register, duplicates dropped: int64[warp, lane, register]."""
    layout = smem @ access.layout
    names = [name for name, _ in layout.in_axes]
    shape = list(layout.in_dims.values())
    table = layout.table().reshape(shape, order="F")
    rest = [names.index(name) for name in names if name not in ("register", "lane")]
    table = table.transpose(*rest, names.index("lane"), names.index("register"))
    table = table.reshape(-1, layout.in_dims["lane"], layout.in_dims["register"])
    first: dict[bytes, int] = {}
    for register in range(table.shape[2]):
        first.setdefault(table[:, :, register].tobytes(), register)
    return np.asarray(table[:, :, list(first.values())], dtype=np.int64)


def _runs(offsets: IntArray, elements: int) -> list[IntArray] | None:
    """Return the first offsets of aligned runs made of the same registers in every lane; None if there are none."""
    flat = offsets.reshape(-1, offsets.shape[2])
    place = {flat[:, register].tobytes(): register for register in range(flat.shape[1])}
    starts = []
    for register in range(flat.shape[1]):
        column = flat[:, register]
        if (column % elements).any():
            continue
        if any((column + step).tobytes() not in place for step in range(1, elements)):
            return None
        starts.append(offsets[:, :, register])
    return starts if len(starts) * elements == flat.shape[1] else None


def _matrix_instructions(access: TileAccess, offsets: IntArray, element_bits: int) -> tuple[str, Sequence[IntArray]]:
    """Return the matrix instruction, x4 if the matrices are a multiple of four, and the row addresses."""
    name, _, trans = access.kind.partition(".")
    per_word = 32 // element_bits if element_bits <= 32 else 0
    if offsets.shape[1] != 32 or not per_word or (trans and element_bits != 16):
        raise CHECK.malformed("accesses", "must have 32 lanes and elements of at most 32 bits (.trans: 16 bits)",
                              str(access.layout))  # fmt: skip
    starts = []
    for first in range(0, offsets.shape[2], per_word):
        held = offsets[:, :, first : first + per_word]
        if held.shape[2] < per_word:
            raise CHECK.malformed("accesses", "must fill whole 32-bit words", str(access.layout))
        if trans:
            rows = np.stack([held[:, :4, half] for half in range(2)], axis=2).reshape(-1, 8)
            wanted = np.stack([np.tile(rows[:, half::2], (1, 8)) for half in range(2)], axis=2)
            wanted += np.repeat(np.arange(8), 4)[None, :, None]
        else:
            rows = held[:, ::4, 0]
            words = np.repeat(rows, 4, axis=1) + np.tile(np.arange(4) * per_word, 8)
            wanted = words[:, :, None] + np.arange(per_word)
        row_elements = ROW_BYTES * 8 // element_bits
        if (held != wanted).any() or (rows % row_elements).any():
            rule = f"must be {access.kind} fragments in this layout: 8 rows of 16 bytes"
            raise CHECK.malformed("accesses", rule, str(access.layout))
        starts.append(rows * element_bits // 8)
    many = next(many for many in (4, 2, 1) if len(starts) % many == 0)
    joined = [np.concatenate(starts[first : first + many], axis=1) for first in range(0, len(starts), many)]
    return f"{name}.x{many}{'.' + trans if trans else ''}", joined
