"""Universal swizzles: does one XOR serve a whole class of accesses, which XOR is best, and which accesses clash.

Notation: cells are numbered chunk first, then row. A chunk is the 2^k bytes that one lane moves. In units of a chunk
the banks have b bits; f, a linear function of the other bits of a cell (only of the row, if a row is no longer than all
banks), is added to the low q = min(b, chunk bits of a row) bits. K maps a cell to its banks: these q bits and, if rows
are shorter than all banks, the row's own bits. A class is a set of spaces, those touched by the lane groups of its
members.

(1) A swizzle is conflict-free for a class iff K is injective on each of its spaces, i.e. iff the code ``ker K`` meets
each only in 0. Whether such an f exists is decided by fixing its columns one by one, trying every choice
(``synth.swizzles.search.least``). Targets with fewer banks see fewer rows of K. (2) All power-of-two strides: the
spaces are runs of coordinates, so every b consecutive columns of K must be independent, as columns that repeat with
period b are; hence a row of at least b chunk bits always has a swizzle for them. (3) Sub-tiles of 2^i rows and 2^j
chunks, i + j = b, with chunk bits J and row bits I: K is injective iff the submatrix of f with the rows outside J and
the columns I is invertible. Sub-tiles from bit 0 need only the corner minors, which bit reversal satisfies. Sub-tiles
of every phase need all contiguous minors (f superregular; [1 | f] checks an MDS code): over F2 all entries are then 1
and every 2x2 minor is 0, so with two row bits and two chunk bits there is no such swizzle, and ``clash`` names a
minimal set of members that shows it.

References: F. J. MacWilliams and N. J. A. Sloane, The Theory of Error-Correcting Codes, chapter 11, theorem 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground import clock
from layoutalg.proofs.swizzling import SwizzlePlan, TileAccess, instruction_name, serve
from layoutalg.proofs.universal import CHECK, ClassMember, ClassPlan
from layoutalg.synth.swizzles.search import Found, Space, least
from layoutalg.targets.banks import BankModel, bank_model
from layoutalg.targets.registry import asked_targets

CLASSES = ("rows", "columns", "diagonals", "strides", "strides:S", "subtiles", "phases", "operand:N", "ldmatrix")
NODES = 200_000
ELEMENT_BITS = 32
_TEXT = re.compile(r"(rows|columns|diagonals|strides|subtiles|phases|operand|ldmatrix)(?::([0-9]{1,6}))?")


def universal_swizzle(
    rows: int,
    row_bytes: int,
    classes: str | Sequence[str],
    target: str | Sequence[str] = "sm_90a",
    chunk_bytes: int = 16,
    *,
    seconds: float = 5.0,
) -> ClassPlan:
    """Return the XOR swizzle of a tile that serves a class of accesses in the fewest turns.

    Mathematically: among linear functions f, added to the low bits of a cell's number, one that minimises the turns of
    all members on all targets; ``.optimal`` if that is proved.

    Args:
        rows: Rows of the tile, a power of two.
        row_bytes: Bytes of a row, a power of two.
        classes: One or several of ``"rows"`` and ``"columns"`` (lanes along them first), ``"diagonals"`` (row i, chunk
            i ^ k for any k), ``"strides"`` or ``"strides:S"`` (lane i at chunk i s of the tile, all powers of two s up
            to S that fit), ``"subtiles"`` (2^i rows by 2^j chunks, one cell per lane of a group), ``"phases"`` (the
            same with rows and chunks 2^k apart), ``"operand:N"`` (lane modulo N is the row, the rest the chunk),
            ``"ldmatrix"`` (8 rows at any chunk).
        target: The target, or several that one swizzle must serve.
        chunk_bytes: Bytes that a lane loads: 4, 8 or 16.
        seconds: Time limit of the search.

    Example:
        >>> found = universal_swizzle(32, 128, ["operand:32", "operand:16"], ["sm_90a", "gfx942", "gfx950"]).check()
        >>> found.conflict_free, found.optimal, found.turns
        (True, True, 32)
        >>> found = universal_swizzle(8, 128, "phases").check()
        >>> found.conflict_free, found.optimal, len(found.clash)
        (False, True, 7)
    """
    asked = _question(rows, row_bytes, classes, target, chunk_bytes)
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        found = _free(asked, range(len(asked.members)))
        clash: tuple[int, ...] = () if found is not None else _clash(asked)
        found = found or _search(asked)
        columns = _columns(asked, found)
        largest = _largest(asked, columns)
    accesses = tuple(_access(asked, member) for member in asked.members)
    smem = _layout(asked, columns)
    served = tuple(
        serve(access, number, smem, ELEMENT_BITS, name)
        for number, (access, member) in enumerate(zip(accesses, asked.members, strict=True))
        for name in member.targets
    )
    floor = sum(each.ideal for each in served)
    bound, proof = (floor, "the search ran out of time") if found is None else (found.bound, found.proof)
    plan = SwizzlePlan(smem, ELEMENT_BITS, accesses, served, bound, proof, "xor", chunk_bytes=chunk_bytes)
    return ClassPlan(rows, row_bytes, chunk_bytes, columns, asked.low, asked.members, plan, clash, largest)


@dataclass(frozen=True, slots=True)
class _Question:
    row_bits: int
    chunk_bits: int
    chunk_bytes: int
    members: tuple[ClassMember, ...]
    spaces: tuple[tuple[Space, ...], ...]
    bank_bits: int

    @property
    def low(self) -> int:
        """Bits of a cell's number that the swizzle changes: the chunk bits that number banks."""
        return min(self.chunk_bits, self.bank_bits)

    @property
    def total(self) -> int:
        """Bits of a cell's number."""
        return self.chunk_bits + self.row_bits


def _spaces(member: ClassMember, models: dict[str, BankModel], chunk_bytes: int) -> tuple[Space, ...]:
    """Return the spaces touched by the lane groups of a member on each of its targets."""
    spaces = []
    for name in member.targets:
        model = models[name]
        images = [matrix.apply(member.cells, step) for step in model.space]
        # lanes share cells: the tile has one or two cells, and all groups touch the same ones
        joined = any(1 << bit in model.joins and not cell for bit, cell in enumerate(member.cells))
        mask = (1 << _bank_bits(model, chunk_bytes)) - 1
        spaces.append(Space(matrix.image_basis(images), mask, len(model.groups) >> joined, 0))
    return tuple(spaces)


def _bank_bits(model: BankModel, chunk_bytes: int) -> int:
    return (model.banks * 4 // chunk_bytes).bit_length() - 1


def _question(rows: object, row_bytes: object, classes: object, target: object, chunk_bytes: object) -> _Question:
    size = CHECK.integer(chunk_bytes, "chunk_bytes")
    if size not in (4, 8, 16):
        raise CHECK.malformed("chunk_bytes", "must be 4, 8 or 16", size)
    row_bits = _log(CHECK.integer(rows, "rows", 1, 1 << 12), "rows")
    chunk_bits = _log(CHECK.integer(row_bytes, "row_bytes", size, 1 << 16), "row_bytes") - _log(size, "chunk_bytes")
    asked = (classes,) if isinstance(classes, str) else classes
    if not isinstance(asked, list | tuple) or not asked:
        raise CHECK.malformed("classes", "must be a class or a list of classes", classes)
    named = asked_targets(CHECK, target)
    models = {name: bank_model(name, instruction_name(name, "load", 8 * size)) for name in named}
    by_lanes: dict[int, list[str]] = {}
    for name, model in models.items():
        by_lanes.setdefault(model.lanes.bit_length() - 1, []).append(name)
    members: dict[tuple[tuple[int, ...], tuple[str, ...]], ClassMember] = {}
    for each in asked:
        match = _TEXT.fullmatch(each) if isinstance(each, str) else None
        if match is None:
            raise CHECK.malformed("classes", f"must be among {', '.join(CLASSES)}", each)
        for lane_bits, names in by_lanes.items():
            group_bits = max(len(models[name].space) for name in names)
            listed = _members(match[1], match[2], (row_bits, chunk_bits), lane_bits, group_bits)
            for said, cells in listed:
                member = ClassMember(said, cells, tuple(names))
                members.setdefault((cells, member.targets), member)
    spaces = tuple(_spaces(member, models, size) for member in members.values())
    bank_bits = max(_bank_bits(model, size) for model in models.values())
    return _Question(row_bits, chunk_bits, size, tuple(members.values()), spaces, bank_bits)


def _log(value: int, argument: str) -> int:
    if value & (value - 1):
        raise CHECK.malformed(argument, "must be a power of two", value)
    return value.bit_length() - 1


def _members(
    name: str, number: str | None, bits: tuple[int, int], lanes: int, group: int
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the accesses of a class as the cells of the lane bits; bits beyond the tile repeat it (cell 0)."""
    row_bits, chunk_bits = bits
    chunk = [1 << bit for bit in range(chunk_bits)]
    row = [1 << chunk_bits + bit for bit in range(row_bits)]

    def filled(*parts: Sequence[int]) -> tuple[int, ...]:
        found = [cell for part in parts for cell in part][:lanes]
        return (*found, *[0] * (lanes - len(found)))

    if number is not None and name not in ("strides", "operand"):
        raise CHECK.malformed("classes", "must have a number only after strides and operand", f"{name}:{number}")
    if name == "rows":
        return [("rows", filled(chunk, row))]
    if name == "columns":
        return [("columns", filled(row, chunk))]
    if name == "diagonals":
        both = [chunk[bit] ^ row[bit] for bit in range(min(row_bits, chunk_bits))]
        return [("diagonals", filled(both, row[len(both) :], chunk))]
    if name in ("operand", "ldmatrix"):
        many = _log(int(number or 8), "classes")
        if many > row_bits or (name == "operand" and number is None):
            raise CHECK.malformed("classes", f"must name at most {1 << row_bits} rows", f"{name}:{number}")
        said = "ldmatrix" if name == "ldmatrix" else f"operand:{number}"
        return [(said, filled(row[:many], chunk, row[many:]))]
    if name == "strides":
        most = int(number) if number else 1 << row_bits + chunk_bits
        cells = [*chunk, *row]
        fits = range(max(0, row_bits + chunk_bits - group) + 1)
        return [(f"stride {1 << at}", filled(cells[at:])) for at in fits if 1 << at <= most]
    return _subtiles(chunk, row, group, name == "phases", filled)


def _subtiles(
    chunk: list[int], row: list[int], group: int, phases: bool, filled: Callable[..., tuple[int, ...]]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the sub-tiles with one cell per lane of a group, from bit 0 or of every phase."""
    found = []
    for tall in range(group + 1):
        wide = group - tall
        if tall > len(row) or wide > len(chunk):
            continue
        for down in range(len(row) - tall + 1) if phases and tall else (0,):
            for along in range(len(chunk) - wide + 1) if phases and wide else (0,):
                inside = [*chunk[along : along + wide], *row[down : down + tall]]
                rest = [cell for cell in (*chunk, *row) if cell not in inside]
                said = f"{1 << tall} x {1 << wide}"
                said += f" by {1 << down} x {1 << along}" if phases else ""
                found.append((said, filled(inside, rest)))
    return found


def _choices(asked: _Question) -> Callable[[int, int], Sequence[int]]:
    """Return the columns of K to try for a bit of a cell's number, the likely ones first."""
    likely = [_likely(bit, asked.low) for bit in range(max(1, asked.low))]

    def choices(at: int, _: int) -> Sequence[int]:
        own = 1 << at if at < asked.bank_bits else 0  # the row's own bank bit, if rows are shorter than all banks
        return [own | value for value in likely[(at - asked.low) % len(likely)]]

    return choices


def _search(asked: _Question) -> Found | None:
    """Return the columns of K with the fewest turns of all members."""
    alone = _ideal(asked, range(len(asked.members)), alone=True)
    if alone is not None and alone.columns:
        return replace(alone, proof="every member takes as few turns as it would alone")
    spaces = [space for each in asked.spaces for space in each]
    floor = sum(space.weight << _kernel(asked, space) for space in spaces)
    found = least(spaces, [1 << bit for bit in range(asked.low)], asked.total, _choices(asked), NODES)
    return found and replace(found, bound=max(found.bound, floor))


def _kernel(asked: _Question, space: Space) -> int:
    """Return the dimension of a space's kernel that no f avoids, because the row's own bank bits are fixed."""
    own = matrix.rank([vector >> asked.low << asked.low & space.mask for vector in space.basis])
    return max(0, len(space.basis) - own - (space.mask & (1 << asked.low) - 1).bit_count())


def _ideal(asked: _Question, chosen: Sequence[int], alone: bool = False) -> Found | None:
    """Return columns of K without conflicts for any member (() if there are none); None if time ran out.

    With ``alone``, a member may have the conflicts it has alone.
    """
    every = [space for place in chosen for space in asked.spaces[place]]
    if alone:
        every = [replace(space, kernel=_kernel(asked, space)) for space in every]
    known, floor = [1 << bit for bit in range(asked.low)], sum(space.least for space in every)
    found = least(list(dict.fromkeys(every)), known, asked.total, _choices(asked), NODES, ideal=True)
    return found and replace(found, turns=floor, bound=floor)


def _likely(bit: int, seen: int) -> list[int]:
    """Return all values of a column, likely ones first: the bit's own place, then the other unit vectors."""
    own = 1 << bit if seen else 0
    return sorted(range(1 << seen), key=lambda value: (value != own, value.bit_count() != 1, value.bit_count(), value))


def _columns(asked: _Question, found: Found | None) -> tuple[int, ...]:
    if found is None:
        return (0,) * (asked.total - asked.low)
    mask = (1 << asked.low) - 1
    return tuple(column & mask for column in found.columns[asked.low :])


def _free(asked: _Question, chosen: Sequence[int]) -> Found | None:
    """Return a function that serves these members without conflict; None if none was found."""
    found = _ideal(asked, chosen)
    return found if found is not None and found.columns else None


def _clash(asked: _Question) -> tuple[int, ...]:
    """Return a minimal set of members that cannot be served together."""
    core = list(range(len(asked.members)))
    found = _ideal(asked, core)
    if found is None or found.columns:
        return ()
    for place in tuple(core):
        fewer = [other for other in core if other != place]
        found = _ideal(asked, fewer)
        if found is None:
            return ()
        core = core if found.columns else fewer
    return tuple(core)


def _largest(asked: _Question, columns: Sequence[int]) -> tuple[int, ...]:
    """Return a maximal set of members served by one function, grown from those that the best one serves."""
    whole = _bank_map(asked, columns)
    chosen = [
        place for place, spaces in enumerate(asked.spaces) if all(space.turns(whole) == space.least for space in spaces)
    ]
    for place in range(len(asked.members)):
        if place not in chosen and _free(asked, [*chosen, place]):
            chosen.append(place)
    return tuple(sorted(chosen))


def _bank_map(asked: _Question, columns: Sequence[int]) -> list[int]:
    mask = (1 << asked.bank_bits) - 1
    cells = [1 << bit for bit in range(asked.low)]
    cells += [column | 1 << asked.low + bit for bit, column in enumerate(columns)]
    return [cell & mask for cell in cells]


def _layout(asked: _Question, columns: Sequence[int]) -> LinearLayout:
    """Return the swizzle as a layout of 32-bit elements: cell to offset."""
    inner = _log(asked.chunk_bytes * 8 // ELEMENT_BITS, "chunk_bytes")
    wide = inner + asked.low
    bases = {
        "cell": [
            *[(1 << bit,) for bit in range(wide)],
            *[((column << inner) | 1 << wide + bit,) for bit, column in enumerate(columns)],
        ]
    }
    return LinearLayout.from_bases(bases, {"offset": 1 << inner + asked.total})


def _access(asked: _Question, member: ClassMember) -> TileAccess:
    inner = _log(asked.chunk_bytes * 8 // ELEMENT_BITS, "chunk_bytes")
    bases = {"register": [(1 << bit,) for bit in range(inner)], "lane": [(cell << inner,) for cell in member.cells]}
    return TileAccess(LinearLayout.from_bases(bases, {"cell": 1 << inner + asked.total}))
