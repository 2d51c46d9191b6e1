"""The names of accesses to shared memory: one reader for every call and the command line.

A name is a memory instruction (``ldmatrix.x4.trans``, ``ld.shared.v4.b32``, ``ds_read_b128``, or what PTX and newer
assemblers of AMD call it), an operand of a matrix instruction that ordinary loads or stores move (``mma.A`` is M x K,
``mma.B`` N x K, ``mma.D`` M x N; ``mfma`` and ``wmma`` likewise; ``wgmma.D``), also of one instruction
(``mma.m16n8k8.f64.f64.A``, ``mfma.v_mfma_f32_32x32x8_f16.D``), or a pattern: ``rows`` and ``columns`` give every lane
16 bytes along a row or a column, neighbouring lanes along it; ``rows:4`` and ``columns:4`` give it 4 elements of a row,
neighbouring lanes along the row or down the column. ``:store`` or ``:load`` may follow.

One warp or wave moves the whole tile. Matrix instructions without a count move four matrices; vectors without a type
are of 32-bit words. Loads and stores move rows, but reads of LDS take the lanes of operand A of the target's matrix
instructions where its blocks divide the tile.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, Repair, shown
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.swizzling import instruction_name
from layoutalg.targets.consumers import CONSUMERS, Absent, consumer
from layoutalg.targets.layouts.amd import WMMA_VERSIONS, mfma_accumulator, operand_block, wmma_accumulator
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand, wgmma_accumulator
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, MMA, mma_type
from layoutalg.targets.lds_rules import lds_name
from layoutalg.targets.nvidia.accesses import FORMS, SHORT, available, full_name, short_name
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

CHECK = Checker("LA990", "invalid name of an access")
PATTERNS = ("rows", "columns", "diagonals", "antidiagonals")
OPERANDS = (*(f"{unit}.{side}" for unit in ("mma", "mfma", "wmma") for side in "ABCD"), "wgmma.D")
"""Operands in registers that ordinary loads and stores move."""
NAMES = ("rows", "columns", *SHORT, *OPERANDS)
"""Names without a width; instructions of a given width are names, too."""
_NEAR = tuple(dict.fromkeys((
    *PATTERNS, *OPERANDS, *SHORT, *FORMS, *CONSUMERS,
    *(f"ds_{verb}_b{bits}" for verb in ("read", "write") for bits in (8, 16, 32, 64, 96, 128)),
)))  # fmt: skip
_OPERAND = re.compile(r"(mma|mfma|wmma)\.([\w.]+)\.([ABCD])")
_TABLES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"mma": {"": MMA}, "mfma": MFMA, "wmma": WMMA}
_WORD = re.compile(r"(?:(load|store)\s+)?([A-Za-z_](?:[\w.]|::)*|along\s+\d{1,2})((?::[\w.]+)*)")
_INSTEAD = {"operand": "mma.A or ldmatrix", "chunk": "rows", "vector": "rows:4 or ld.shared.v4", "column": "columns"}
_ENGINES = ("tma", "bulk", "wgmma", "tcgen05", "mma", "mfma", "wmma")


@dataclass(frozen=True, slots=True)
class Named:
    """An access that was named."""

    name: str  # its full name: ``ldmatrix.x4``, ``ld.shared.v4.b32``, ``mma.A``, ``rows``, ``along 0``
    kind: str  # ``"load"``, ``"store"``, ``""`` if the name does not say; or the instruction, by its full name
    each: int = 0  # elements of each lane; 0 if the name does not say

    def __str__(self) -> str:
        if self.is_instruction:
            return short_name(self.name)
        return f"{self.kind} {self.name}".strip() + (f":{self.each}" if self.each else "")

    @property
    def is_instruction(self) -> bool:
        """Whether the name is that of an instruction."""
        return self.kind == self.name

    @property
    def is_operand(self) -> bool:
        """Whether it is an operand of a matrix instruction."""
        return self.name in OPERANDS or _instruction(self.name) is not None

    @property
    def is_matrix(self) -> bool:
        """Whether it is ldmatrix or stmatrix."""
        return self.is_instruction and "matrix" in self.name

    @property
    def direction(self) -> str:
        """``"load"`` (the default) or ``"store"``."""
        return "store" if self.kind.startswith(("st", "ds_write", "cp.async")) else "load"

    @property
    def move(self) -> str:
        """The kind, ``"load"`` by default, matrix instructions without their count."""
        return re.sub(r"\.x[124]", "", self.name) if self.is_matrix else self.kind or "load"

    def by(self, element_bits: int, target: str, otherwise: str = "load") -> str:
        """Return what moves it: ``move`` with the direction ``otherwise`` if the name has none, or one width exactly.

        Example:
            >>> [name_of(each).by(16, "sm_90a") for each in ("rows", "rows:4:store", "ldmatrix.x2")]
            ['load', 'st.shared.v2.b32', 'ldmatrix']
        """
        if not self.each:
            return self.move if self.kind else otherwise
        wide = self.each * element_bits
        if wide not in (8, 16, 32, 64, 128):
            raise CHECK.malformed("access", f"must have vectors of 1 to 16 bytes for {self}", f"{wide} bits")
        return instruction_name(target, self.kind or otherwise, wide)

    @property
    def bits(self) -> int:
        """Bits of each lane of an instruction other than a matrix instruction; otherwise 0."""
        if not self.is_instruction or self.is_matrix:
            return 0
        return FORMS[self.name].unit_bits if self.name in FORMS else int(re.findall(r"\d+", self.name)[-1])


def read_name(value: object) -> Named | None:
    """Return the access that a text names, or None.

    Example:
        >>> read_name("ldmatrix"), read_name("st.shared.v2.b32").direction, read_name("(4,8):(1,4)")
        (Named(name='ldmatrix.x4', kind='ldmatrix.x4', each=0), 'store', None)
        >>> read_name("store rows:4") == read_name("rows:4:store"), read_name("mma.D").kind
        (True, '')
    """
    found = _word(value)
    if found is None:
        return None
    name, parts = full_name(re.sub(r"\s+", " ", found[2])), [part for part in found[3].split(":") if part]
    said = [part for part in (found[1], *parts) if part in ("load", "store")]
    counts = [int(part) for part in parts if part.isdecimal()]
    if len(said) > 1 or len(counts) > 1 or len(said) + len(counts) != len(parts) + (found[1] is not None):
        return None
    if not counts and (name in OPERANDS or _instruction(name)):
        return Named(name, "".join(said))
    if name in PATTERNS or name.startswith("along "):
        return Named(name, "".join(said), counts[0] if counts else 0)
    instruction = lds_name(name) or (name if name in FORMS else None)
    if instruction is None or counts or said:
        return None
    return Named(instruction, instruction)


def _instruction(name: str) -> tuple[str, str, str] | None:
    """Return the unit, the instruction and the operand that a name has; None for other names."""
    found = _OPERAND.fullmatch(name)
    if found is None or not any(found[2] in table for table in _TABLES[found[1]].values()):
        return None
    return found[1], found[2], found[3]


def is_name(value: object) -> bool:
    """Whether a value is the name of an access.

    Example:
        >>> is_name("ldmatrix.x4"), is_name("rows"), is_name("(4,8):(1,4)")
        (True, True, False)
    """
    return read_name(value) is not None


def name_of(value: object, argument: str = "access") -> Named | None:
    """Return the access that a text names; None for anything that is not a word, such as a layout.

    Raises: MalformedError: LA990: A word that names no access; the message lists near names.

    Example:
        >>> name_of("(4,8):(1,4)") is None
        True
        >>> name_of("ldmatrx.x4")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA990 invalid name of an access
          in     access
          since  nothing is called 'ldmatrx.x4'; near: ldmatrix.x4, ldmatrix.x2, ldmatrix.x1, ldmatrix. Names are \
memory instructions (ldmatrix, ld.shared.v4, ds_read_b128), operands (mma.A, mfma.B, mma.D), rows and columns
    """
    found = read_name(value)
    if found is None and (word := _word(value)):
        raise _unknown(word[0], word[2], argument)
    return found


def _word(value: object) -> re.Match[str] | None:
    """Return the match of a text that looks like a name: words and colons, but no brackets."""
    return _WORD.fullmatch(re.sub(r"\s*:\s*", ":", value.strip())) if isinstance(value, str) else None


def _unknown(text: str, head: str, argument: str) -> MalformedError:
    """Return the error for a word that names no access of shared memory by lanes."""
    near = difflib.get_close_matches(full_name(head), _NEAR, 4, 0.6)
    near = [name for name in near if read_name(name) is not None] or near
    if head in _INSTEAD:
        because = f"nothing is called {shown(text)}; use {_INSTEAD[head]}"
    elif head.startswith(("ld.global", "st.global", "ldg", "global_", "buffer_")) and "lds" not in head:
        because = f"{head} moves global memory, which has sectors in place of banks: ask layoutalg.transactions"
    elif read_name(head) is not None:
        because = f"{shown(text)} says more than {head}; only :load, :store or elements per lane (rows:4) may follow"
    elif (forms := [name for name in FORMS if name.startswith(f"{head}.")]) and head in CONSUMERS:
        because = f"{head} has several widths: name one of {', '.join(forms)}"
    elif head.startswith(_ENGINES) and head.partition(".")[0] in CONSUMERS:
        because = f"lanes do not move what {head} reads or writes: ask layoutalg.admissible(layout, {shown(head)})"
    else:
        listed = f"; near: {', '.join(near)}" if near else ""
        because = (
            f"nothing is called {shown(text)}{listed}. Names are memory instructions (ldmatrix, ld.shared.v4, "
            "ds_read_b128), operands (mma.A, mfma.B, mma.D), rows and columns"
        )
    return MalformedError(Diagnostic("LA990", "invalid name of an access", (argument,), because))


def require(access: Named, targets: Iterable[str], argument: str = "access") -> None:
    """Raise if a target has no such instruction (LA991).

    Example:
        >>> require(Named("ldmatrix.x4", "ldmatrix.x4"), ["sm_90a", "gfx942"])
        Traceback (most recent call last):
        layoutalg.ground.errors.AdmissibilityError: LA991 the target has no such instruction
          in     access
          since  gfx942 has no ldmatrix, which needs sm_75 or later
          try    use ds_read_b32: gfx942 has ds_read_b32 instead
          try    use ds_read_b64: gfx942 has ds_read_b64 instead
          try    use ds_read_b96: gfx942 has ds_read_b96 instead
          try    use ds_read_b128: gfx942 has ds_read_b128 instead
    """
    for target in targets:
        missing = lacking(access, target)
        if missing is not None:
            repairs = tuple(Repair(f"use {other}", f"{target} has {other} instead") for other in missing.instead)
            what = "the target has no such instruction"
            raise AdmissibilityError(Diagnostic("LA991", what, (argument,), missing.reason, repairs=repairs))


def lacking(access: Named, target: str) -> Absent | None:
    """Return why a target does not have the instruction or the operand; None if it has, or if nobody says."""
    if not access.is_instruction and not access.is_operand:
        return None
    if (made := _instruction(access.name)) and ".".join(made[:2]) not in (known := model_of(target).instructions):
        alike = [each for each in known if each.startswith(f"{made[0]}.") and each.endswith(made[1][-4:])]
        near = difflib.get_close_matches(".".join(made[:2]), alike, 4, 0)
        source = CONSUMERS[made[0]].source
        return Absent("MATRIX_INSTRUCTION", f"{target} has no {made[1]}", tuple(f"{n}.{made[2]}" for n in near), source)
    row, form = lookup(target), FORMS.get(access.name)
    missing = consumer(
        "ds_read_b64" if access.name.startswith("ds_") and "_tr" not in access.name else access.name, row
    )
    if isinstance(missing, Absent):
        return missing
    if form is not None and available(form, target) is False:
        return Absent("ACCESS_ARCH", f"{target} has no {form.name}", (), CONSUMERS["ldmatrix"].source)
    return None


def countable(access: Named, argument: str = "access") -> None:
    """Raise for instructions whose turns are not counted for whole tiles (LA990): pairs, copies, narrow matrices.

    Example:
        >>> countable(Named("cp.async.cg.16", "cp.async.cg.16"))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA990 invalid name of an access
          in     access
          since  the bank turns of cp.async.cg.16 are not known; layoutalg.admissible says whether it moves a tile
    """
    paired, narrow = re.match(r"ds_(read|write)2", access.name), access.is_matrix and "b8" in access.name
    if access.is_instruction and (paired or narrow or "async" in access.name):
        because = f"the bank turns of {access.name} are not known; layoutalg.admissible says whether it moves a tile"
        if paired:
            because = f"{access.name} moves pairs of vectors: give the registers as a layout to layoutalg.banks"
        raise MalformedError(Diagnostic("LA990", "invalid name of an access", (argument,), because))


def lanes_text(access: Named, element_bits: int, target: str, tile: Sequence[int] = ()) -> str:
    """Return in words which elements each lane of a named access moves.

    Example:
        >>> lanes_text(name_of("ldmatrix"), 16, "sm_90a")
        '8 lanes per 8 x 16-byte matrix, each at the start of a row; matrices go down the rows first'
        >>> lanes_text(name_of("columns:2"), 16, "sm_90a")
        'neighbouring lanes down a column, 2 elements of a row each'
    """
    if access.is_matrix:
        first = "along" if access.name.endswith("trans") else "down"
        return f"8 lanes per 8 x 16-byte matrix, each at the start of a row; matrices go {first} the rows first"
    if access.is_operand:
        unit, _, side = access.name.partition(".")
        who = {"mma": "one warp", "wgmma": "four warps"}.get(unit, "one wave")
        whose = {"mma": "mma.sync"}.get(unit, unit) + _candidates(unit, side, element_bits, target)
        if made := _instruction(access.name):
            _, whose, side = made
        return f"the lanes of {who} as in operand {side} of {whose}"
    if access.is_instruction and (block := read_block(access, tile, element_bits, target)) is not None:
        return f"the lanes of one wave as in operand A of {block[1]}"
    each = access.bits // element_bits or access.each
    if access.name == "columns" and each:
        return f"neighbouring lanes down a column, {each} elements of a row each"
    along = "column" if access.name == "columns" else "row"
    return f"neighbouring lanes along a {along}, {each or max(1, 128 // element_bits)} elements each"


def _candidates(unit: str, side: str, element_bits: int, target: str) -> str:
    """Return the instructions of 16 x 16 results that have such an operand, in words; they share its lanes."""
    known = _TABLES.get(unit, {}).get(target, {})
    names = [
        name for name, shape in known.items()
        if (shape.m, shape.n, shape.matrices) == (16, 16, 1)
        and element_bits == (shape.element_bits if side in "AB" else shape.result_bits)
    ]  # fmt: skip
    return f" ({', '.join(names)})" if names else ""


def named(access: Named, tile: tuple[int, ...], element_bits: int, target: str = "sm_90a") -> LinearLayout:
    """Return the register layout of a named access: (register, lane) to tile coordinates.

    Args:
        access: The name.
        tile: The two extents, powers of two, outermost first.
        element_bits: Bits of an element.
        target: The target.

    Raises: MalformedError: LA990. AdmissibilityError: LA991.

    Example:
        >>> print(named(name_of("ldmatrix"), (16, 16), 16))
        F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> row:16, col:16]
        >>> print(named(name_of("mma.B"), (8, 16), 16))
        F2[register=(0,1)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> row:8, col:16]
    """
    name = access.name
    require(access, [target])
    if len(tile) != 2 or any(extent < 1 or extent & (extent - 1) for extent in tile):
        raise CHECK.malformed("tile", f"must have two extents, powers of two, for {name}", tile)
    lanes = lookup(target).lanes
    wave = lanes.bit_length() - 1
    rows = [(1 << bit, 0) for bit in range(tile[0].bit_length() - 1)]
    columns = [(0, 1 << bit) for bit in range(tile[1].bit_length() - 1)]
    wide = max(0, (128 // element_bits).bit_length() - 1)
    warps: Sequence[tuple[int, ...]] = ()
    held: Sequence[tuple[int, ...]]
    rest: Sequence[tuple[int, ...]]
    if access.is_operand:
        held, rest, warps = _operand(name, tile, element_bits, target)
    elif access.is_matrix:
        word = 1 if name.endswith("trans") else max(0, (32 // element_bits).bit_length() - 1)
        if len(rows) < 3 or len(columns) < wide or element_bits > 32:
            rule = f"must have at least 8 rows of 16 bytes for {name}, elements of at most 32 bits"
            raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")
        first, second = (rows[:3], columns[:wide]) if name.endswith("trans") else (columns[:wide], rows[:3])
        held, rest = first[:word], [*first[word:], *second, *rows[3:], *columns[wide:]]
    elif (block := read_block(access, tile, element_bits, target)) is not None:
        held, rest = _blocks(block[0], tile)
    elif name in ("diagonals", "antidiagonals") or name.startswith("along"):
        raise CHECK.malformed("access", "must be linear over F2 here: only padding takes this pattern", name)
    else:
        each = _elements(access, tile, element_bits)
        inner, outer = (rows, columns) if name == "columns" else (columns, rows)
        if each is None:
            held, rest = inner[:wide], inner[wide:] + outer
        elif name == "columns":
            held, rest = columns[:each], rows + columns[each:]
        else:
            held, rest = columns[:each], columns[each:] + rows
    if len(rest) < wave:
        raise CHECK.malformed("tile", f"must have {1 << len(held)} elements for each of {lanes} lanes", tile)
    bases = {"register": [*held, *rest[wave:]], "lane": rest[:wave]} | ({"warp": warps} if warps else {})
    return LinearLayout.from_bases(bases, {"row": tile[0], "col": tile[1]})


def _elements(access: Named, tile: tuple[int, ...], element_bits: int) -> int | None:
    """Return log2 of the elements of a row that each lane moves; None if the name leaves that open."""
    if access.bits and access.bits < element_bits:
        raise CHECK.malformed("element_bits", f"must be at most the {access.bits} bits of {access.name}", element_bits)
    each = access.bits // element_bits if access.bits else access.each
    if not each:
        return None
    if each & (each - 1) or tile[1] % each:
        rule = f"must be a power of two that divides rows of {tile[1]} for {access.name}"
        raise CHECK.malformed("access", rule, f"{each} elements per lane")
    return each.bit_length() - 1


def read_block(access: Named, tile: Sequence[int], element_bits: int, target: str) -> tuple[LinearLayout, str] | None:
    """Return the block of operand A with whose lanes LDS is read, and its instruction; None for other accesses."""
    reads = access.name.startswith("ds_read_b") and "_tr" not in access.name
    if not reads or len(tile) != 2 or access.bits < element_bits or access.bits % element_bits:
        return None
    return operand_block(target, element_bits, access.bits // element_bits, (tile[0], tile[1]))


def _blocks(block: LinearLayout, tile: tuple[int, ...]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Repeat a block over a tile, along k first: the images of the register bits of a vector, then of all others."""
    bases, (high, deep) = block.bases, tuple(block.out_dims.values())
    more = [(0, step) for step in _doubled(deep, tile[1])] + [(step, 0) for step in _doubled(high, tile[0])]
    return [], [*bases["lane"], *bases["register"], *more]


def _doubled(first: int, end: int) -> Iterable[int]:
    while first < end:
        yield first
        first *= 2


def _operand(
    name: str, tile: tuple[int, ...], element_bits: int, target: str
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the images of the register bits of a vector, of those of lanes and other registers, and of warps."""
    unit, _, side = name.partition(".")
    if unit == "mma" and len(side) == 1 and element_bits == 64:
        name = f"mma.m8n8k4.f64.f64.{side}"  # the other shapes of f64 repeat its fragment
    if made := _instruction(name):
        return *_blocks(_whole(made, tile, element_bits, target), tile), []
    if unit == "mma":
        return [], _fragment(name, tile, element_bits), []
    if unit == "wgmma":
        _least(name, tile, (64, 8), element_bits)
        bases = wgmma_accumulator(tile, n=min(256, tile[1])).bases
        return [], [*bases["lane"], *bases["register"]], list(bases["warp"])
    if side in "CD":
        _least(name, tile, (16, 16), element_bits)
        found = (
            mfma_accumulator(tile, (16, 16), (1, 1)) if unit == "mfma"
            else wmma_accumulator(tile, WMMA_VERSIONS[target], [])
        )  # fmt: skip
        return [], [*found.bases["lane"], *found.bases["register"]], []
    runs = [run for run in (128 // element_bits, 64 // element_bits, 32 // element_bits) if run]
    blocks = (operand_block(target, element_bits, run, (tile[0], tile[1])) for run in runs)
    block = next((block for block in blocks if block is not None), None)
    if block is None:
        rule = f"must divide into blocks of {name} on {target}, at least 16 rows of 16 elements of a type it has"
        raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")
    return *_blocks(block[0], tile), []


def _whole(made: tuple[str, str, str], tile: tuple[int, ...], element_bits: int, target: str) -> LinearLayout:
    """Return the fragment of an operand of an instruction as (register, lane) to the coordinates of a tile."""
    unit, name, side = made
    fragment = model_of(target).fragment(f"{unit}.{name}", side)
    if isinstance(fragment, Unknown) or any(size > 1 for size in [*fragment.out_dims.values()][2:]):
        raise CHECK.malformed("access", "must be an instruction of one product, whose fragments are known", name)
    if unit == "mma":
        bits = ELEMENT_BITS[mma_type(name, side)]
    else:
        shape = _TABLES[unit][target][name]
        bits = shape.element_bits if side in "AB" else shape.result_bits
    turn = -1 if side == "B" else 1
    high, deep = [*fragment.out_dims.values()][:2][::turn]
    if element_bits != bits or tile[0] % high or tile[1] % deep:
        rule = f"must divide into {high} x {deep} for {unit}.{name}.{side}, elements of {bits} bits"
        raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")
    bases = {axis: [image[:2][::turn] for image in fragment.bases[axis]] for axis in ("register", "lane")}
    return LinearLayout.from_bases(bases, {"row": high, "col": deep})


def _least(name: str, tile: tuple[int, ...], wanted: tuple[int, int], element_bits: int) -> None:
    if tile[0] < wanted[0] or tile[1] < wanted[1] or element_bits > 32:
        rule = f"must be at least {wanted[0]} x {wanted[1]} for {name}, elements of 8 to 32 bits"
        raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")


def _fragment(name: str, tile: tuple[int, ...], element_bits: int) -> list[tuple[int, ...]]:
    """Return the images of the bits of the lanes, then of the registers, of an operand of mma.sync."""
    if name[-1] in "CD":
        _least(name, tile, (16, 8), element_bits)
        bases = mma_accumulator(tile, (1, 1)).bases
    else:
        _least(name, tile, (8 if name == "mma.B" else 16, 8 * max(1, 32 // element_bits)), element_bits)
        shape = tile if name == "mma.A" else tile[::-1]
        bases = mma_operand(name[-1], shape, (1, 1), max(1, 32 // element_bits)).bases
    turned = -1 if name == "mma.B" else 1
    return [image[::turned] for axis in ("lane", "register") for image in bases[axis]]
