"""Bank turns of reading or writing a tile in shared memory from the registers of warps.

Main definitions: ``banks``, ``BankReport``, ``BankAccess``.

Main statements: registers may be taken in any order, so an instruction of v elements exists exactly where each register
lies, in every lane alike, at one place of an aligned run of v registers; these runs are then unique. ``ldmatrix`` and
``stmatrix`` move a matrix of eight 16-byte rows where the registers of lane 4 g + q are word q of row g, transposed
(16-bit elements): element g of the rows 2 q and 2 q + 1. Turns are those of ``targets.nvidia.banks.wavefronts`` for the
addresses of each instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.proofs.register_map import CHECK, IntArray, bit_addresses
from layoutalg.targets.banks import Access, nvidia_access
from layoutalg.targets.nvidia.banks import ACCESS_BITS, BANKS, WORD_BYTES, crowd, wavefronts

KINDS = ("load", "store", "ldmatrix", "stmatrix", "ldmatrix.trans", "stmatrix.trans")
SCHEMA = "layoutalg/banks/1"
_ROW_BYTES = 16


@dataclass(frozen=True, slots=True)
class BankAccess(Shown):
    """One instruction of one warp.

    Args:
        instruction: Its name in PTX.
        warp: Number of the warp.
        registers: The registers that it moves, in the order of their addresses.
        addresses_bytes: Byte address of each lane.
        turns: Turns that shared memory needs.
        ideal: Turns where no bank is busier than it must be.
        bank: The busiest bank of the group of lanes that takes most turns.
        lanes: The lanes of that group that touch this bank.
    """

    instruction: str
    warp: int
    registers: tuple[int, ...]
    addresses_bytes: tuple[int, ...]
    turns: int
    ideal: int
    bank: int
    lanes: tuple[int, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def __str__(self) -> str:
        shown = ", ".join(f"{lane}:{self.addresses_bytes[lane]}" for lane in self.lanes[:8])
        more = ", ..." if len(self.lanes) > 8 else ""
        return f"warp {self.warp}, registers {list(self.registers)}: {self.turns} turns for {self.ideal}; bank " + (
            f"{self.bank} is touched by lanes (lane:byte) {shown}{more}"
        )

    def to_json(self) -> dict[str, object]:
        """Return the access as JSON-ready data."""
        lists = {"registers": list(self.registers), "addresses_bytes": list(self.addresses_bytes)}
        counts = {"turns": self.turns, "ideal": self.ideal, "bank": self.bank, "lanes": list(self.lanes)}
        return {"instruction": self.instruction, "warp": self.warp, **lists, **counts}


@dataclass(frozen=True, slots=True)
class BankReport(Shown):
    """What the banks make of an access.

    Args:
        instruction: The instruction, or the widest of several.
        accesses: Number of instructions of all warps.
        turns: Their turns together.
        ideal: Their turns where no bank is busier than it must be.
        worst: The instruction with the most turns above its ideal, the first of equals.
    """

    instruction: str
    accesses: int
    turns: int
    ideal: int
    worst: BankAccess

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    @property
    def conflicts(self) -> int:
        """Turns above the ideal."""
        return self.turns - self.ideal

    @property
    def conflict_free(self) -> bool:
        """Whether there is no turn above the ideal."""
        return not self.conflicts

    def __str__(self) -> str:
        head = f"{self.accesses} x {self.instruction}: {self.turns} turns"
        if self.conflict_free:
            return f"{head}, free of bank conflicts"
        return f"{head} where {self.ideal} would do\nworst  {self.worst}"

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        names = ("instruction", "accesses", "turns", "ideal", "conflicts", "conflict_free")
        return {"schema": SCHEMA, **{name: getattr(self, name) for name in names}, "worst": self.worst.to_json()}


def banks(
    registers: object,
    shared: object = None,
    element_bits: int = 16,
    kind: str = "load",
    *,
    tile: Sequence[int] | None = None,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
) -> BankReport:
    """Return the bank turns of moving registers from or to shared memory, with the widest instruction that is possible.

    Mathematically: element (register, lane, warp) lies at ``shared(registers(register, lane, warp))``; its turns are
    counted for every instruction of every warp.

    Args:
        registers: A layout of any family, or its text: axes ``register``, ``lane`` and ``warp`` (or ``thread``) to tile
            coordinates; a CuTe layout (thread, value) to the flat coordinate of the tile, first dimension fastest; or,
            with ``shared`` None, either of them to element offsets, as ``f2.invert_and_compose`` returns it.
        shared: A layout of any family, or its text: tile coordinates to element offsets, padded ones included.
        element_bits: Bits of an element: 4 to 128, a power of two.
        kind: ``"load"`` or ``"store"``, by the widest vector of up to 128 bits; ``"ldmatrix"``, ``"ldmatrix.trans"``,
            ``"stmatrix"``, ``"stmatrix.trans"``; or the instruction's own name, ``"ld.shared.v2.b32"``.
        tile: Tile extents where neither layout knows them.
        lanes: Names of the axes that count lanes, fastest first; None for ``lane``.
        warps: Names of the axes that count warps, fastest first; None for ``warp``.

    Raises: MalformedError: LA709, LA713, and those of the shared layout.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> fragment = mma_operand("A", (16, 64), (1, 1), 2)
        >>> print(banks(fragment, "(16,64):(64,1)", 16, "ldmatrix"))
        4 x ldmatrix.x4: 128 turns where 16 would do
        worst  warp 0, registers [0, 1, 2, 3, 4, 5, 6, 7]: 32 turns for 4; bank 0 is touched by lanes (lane:byte) \
0:0, 1:128, 2:256, 3:384, 4:512, 5:640, 6:768, 7:896
        >>> print(banks(fragment, "Sw<3,3,3> o 0 o (16,64):(64,1)", 16, "ldmatrix"))
        4 x ldmatrix.x4: 16 turns, free of bank conflicts

    Source: ``targets.nvidia.banks``, measured on an H200.
    """
    bits = CHECK.integer(element_bits, "element_bits")
    if bits not in (4, 8, 16, 32, 64, 128):
        raise CHECK.malformed("element_bits", "must be a power of two from 4 to 128", bits)
    access = _kind(kind)
    addresses = bit_addresses(registers, shared, bits, tile, lanes, warps)
    names, columns = _distinct(addresses)
    if access is None or not access.kind.endswith("matrix"):
        moved = _vectors(names, columns, bits, access, kind)
    else:
        moved = _matrices(names, columns, bits, access)
    return _report(moved)


def _kind(kind: object) -> Access | None:
    """Return the instruction that is asked for; None for loads and stores of any width."""
    if kind in ("load", "store"):
        return None
    if isinstance(kind, str) and kind in KINDS:
        return nvidia_access(kind.replace("matrix", "matrix.x4"))
    if not isinstance(kind, str) or "." not in kind:
        raise CHECK.malformed("kind", f"must be one of {', '.join(KINDS)}, or an instruction's name", kind)
    return nvidia_access(kind)


def _distinct(addresses: IntArray) -> tuple[list[int], list[IntArray]]:
    """Return the registers that hold different elements in some lane, each with its addresses [warp, lane]."""
    seen: dict[bytes, int] = {}
    for register in range(addresses.shape[2]):
        seen.setdefault(np.ascontiguousarray(addresses[:, :, register]).tobytes(), register)
    names = list(seen.values())
    return names, [addresses[:, :, register] for register in names]


def _vectors(
    names: list[int], columns: list[IntArray], bits: int, access: Access | None, kind: str
) -> list[tuple[str, str, int, tuple[int, ...], IntArray]]:
    """Return the loads or stores: kind, name, bits, registers, byte addresses [warp, lane]."""
    direction = access.kind if access is not None else kind
    wanted = ACCESS_BITS[::-1] if access is None else (access.bits,)
    for width in wanted:
        if width < bits:
            break
        runs = _runs(columns, bits, width)
        if runs is not None:
            name = _load_name(direction, width, bits)
            return [(direction, name, width, tuple(names[i] for i in run), columns[run[0]] // 8) for run in runs]
    rule = f"must fill vectors of {access.bits} bits in every lane" if access else "must be whole aligned bytes"
    raise CHECK.malformed("registers", rule, f"{len(names)} registers of {bits} bits at {_first(columns)}")


def _first(columns: list[IntArray]) -> str:
    return "bits " + ", ".join(str(int(column[0, 0])) for column in columns[:4]) + " of lane 0"


def _load_name(kind: str, width: int, bits: int) -> str:
    part = min(width, max(bits, 32), 64)
    vector = f".v{width // part}" if width > part else ""
    return f"{'ld' if kind == 'load' else 'st'}.shared{vector}.b{part}"


def _runs(columns: list[IntArray], bits: int, width: int) -> list[list[int]] | None:
    """Return the registers as aligned runs of ``width`` bits that every lane has; None where there are none."""
    place = {np.ascontiguousarray(column).tobytes(): index for index, column in enumerate(columns)}
    runs = []
    for index, column in enumerate(columns):
        if (column % width).any():
            continue
        run = [place.get(np.ascontiguousarray(column + step).tobytes(), -1) for step in range(0, width, bits)]
        if -1 in run:
            return None
        runs.append([index, *run[1:]])
    return runs if len(runs) * (width // bits) == len(columns) else None


def _matrices(
    names: list[int], columns: list[IntArray], bits: int, access: Access
) -> list[tuple[str, str, int, tuple[int, ...], IntArray]]:
    """Return the matrix instructions, x4 as long as four matrices are left."""
    if bits not in (8, 16, 32) or (access.transposed and bits != 16):
        rule = "must be 16 for a transposed matrix, else 8, 16 or 32"
        raise CHECK.malformed("element_bits", rule, bits)
    found = _transposed(names, columns) if access.transposed else _straight(names, columns, bits)
    moved = []
    start, trans = 0, ".trans" if access.transposed else ""
    while start < len(found):
        count = next(n for n in (4, 2, 1) if n <= min(access.matrices, len(found) - start))
        part = found[start : start + count]
        rows = np.concatenate([row for _, row in part], axis=1)
        registers = tuple(register for held, _ in part for register in held)
        moved.append((access.kind, f"{access.kind}.x{count}{trans}", 128, registers, rows))
        start += count
    return moved


def _straight(names: list[int], columns: list[IntArray], bits: int) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return per matrix its registers and its row addresses [warp, 8]: lane 4 g + q holds word q of row g."""
    runs = _runs(columns, bits, 32)
    if runs is None:
        rule = "must hold whole words of shared memory in every lane"
        raise CHECK.malformed("registers", rule, f"{len(names)} registers of {bits} bits at {_first(columns)}")
    found = []
    for run in runs:
        words = columns[run[0]] // 8
        rows = words[:, ::4]
        wanted = np.repeat(rows, 4, axis=1) + np.tile(np.arange(0, _ROW_BYTES, 4), 8)
        _same(words, wanted, names[run[0]])
        _aligned(rows, names[run[0]])
        found.append((tuple(names[i] for i in run), rows))
    return found


def _transposed(names: list[int], columns: list[IntArray]) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return the same where lane 4 g + q holds element g of the rows 2 q and 2 q + 1."""
    if len(columns) % 2:
        raise CHECK.malformed("registers", "must be pairs of 16-bit elements", f"{len(columns)} registers")
    found: list[tuple[tuple[int, ...], IntArray]] = []
    for first in range(0, len(columns), 2):
        pair = [columns[first] // 8, columns[first + 1] // 8]
        rows = np.stack([half[:, :4] for half in pair], axis=2).reshape(-1, 8)
        for place, half in enumerate(pair):
            wanted = np.tile(rows[:, place::2], (1, 8)) + np.repeat(np.arange(0, _ROW_BYTES, 2), 4)
            _same(half, wanted, names[first + place])
        _aligned(rows, names[first])
        found.append(((names[first], names[first + 1]), rows))
    return found


def _same(found: IntArray, wanted: IntArray, register: int) -> None:
    wrong = np.argwhere(found != wanted)
    if len(wrong):
        warp, lane = (int(x) for x in wrong[0])
        hint = f"; a matrix would have byte {int(wanted[warp, lane])} there"
        where = f"byte {int(found[warp, lane])} in register {register} of lane {lane}, warp {warp}"
        raise CHECK.malformed("registers", "must be the fragment of an 8 x 8 matrix with rows of 16 bytes", where, hint)


def _aligned(rows: IntArray, register: int) -> None:
    wrong = np.argwhere(rows % _ROW_BYTES != 0)
    if len(wrong):
        warp, row = (int(x) for x in wrong[0])
        where = f"byte {int(rows[warp, row])} for row {row} of the matrix in register {register}, warp {warp}"
        raise CHECK.malformed("shared", "must have the rows of a matrix at multiples of 16 bytes", where)


def _report(moved: list[tuple[str, str, int, tuple[int, ...], IntArray]]) -> BankReport:
    turns = ideal = accesses = 0
    worst: tuple[int, BankAccess] | None = None
    for kind, name, width, registers, addresses in moved:
        for warp, lanes in enumerate(addresses.tolist()):
            taken, least, bank, busy = _counted(lanes, width, kind)
            turns, ideal, accesses = turns + taken, ideal + least, accesses + 1
            if worst is None or taken - least > worst[0]:
                found = BankAccess(name, warp, registers, tuple(lanes), taken, least, bank, busy)
                worst = taken - least, found
    if worst is None:
        raise CHECK.malformed("registers", "must hold at least one element", 0)
    return BankReport(moved[0][1], accesses, turns, ideal, worst[1])


def _counted(lanes: list[int], width: int, kind: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Return the turns of an access, the least turns of its groups, its busiest bank and the lanes that touch it."""
    groups = crowd(lanes, width, kind)
    taken = wavefronts(lanes, width, kind)
    most: tuple[int, int, tuple[int, ...]] = (0, 0, ())
    least = 0
    for group in groups:
        words: dict[int, list[int]] = {}
        for lane in group:
            for word in range(max(1, width // 8 // WORD_BYTES)):
                words.setdefault(lanes[lane] // WORD_BYTES + word, []).append(lane)
        least += -(-len(words) // BANKS)
        by_bank: dict[int, list[int]] = {}
        for word in words:
            by_bank.setdefault(word % BANKS, []).append(word)
        bank = min(by_bank, key=lambda bank: (-len(by_bank[bank]), bank))
        if len(by_bank[bank]) > most[0]:
            busy = tuple(sorted({lane for word in by_bank[bank] for lane in words[word]}))
            most = len(by_bank[bank]), bank, busy
    return taken, least, most[1], most[2]
