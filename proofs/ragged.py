"""Descriptor families for ragged tensors: what they copy, and the proof that each row is copied once.

A ragged tensor is the concatenation of its groups along one dimension. The copies of a group of n rows by tiles of T
rows are a piecewise function from (rule, tile, row of the box) to group rows with parameter n. Each row is copied
exactly once iff this function is injective with image 0 <= row < n; ISL decides both for all n at once. Groups do not
overlap, so the proof for one covers the tensor.

Strategies. All copy whole tiles; they differ in the rest of a group, r rows. ``exact_pool``: one map per power of two
below T; the rest is a sum of smaller boxes. ``overlap_pool``: the same maps; the rest is one box, or two of the same
height that overlap. ``shift_back``: one map; the last tile ends with the group, so some rows are copied twice (groups
of at least T rows). ``auto``: ``shift_back`` for groups of at least T rows, the boxes of ``overlap_pool`` for shorter
ones. ``clip``: one map in which rows behind the group are out of bounds
(``proofs.ragged_clip``). ``descriptors``: one map per group with the group's extent; the engine clips the last tile.
``overfetch``: one map; the last tile also reads rows after the group, to be discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked, Record
from layoutalg.ground.runnable import Runnable
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.piecewise import PiecewiseLayout, PointSet
from layoutalg.proofs.groups import MOST_ROWS, checked_offsets, group_offsets
from layoutalg.proofs.ragged_clip import ClipPlan
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensor import Size
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

CHECK = Checker("LA865", "invalid ragged family")
STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "clip", "descriptors", "overfetch")
MOST_TILE_ROWS = 1 << 22
POOLED = ("auto", "exact_pool", "overlap_pool")
"""Strategies with smaller boxes."""
Plan: TypeAlias = TensorMapPlan | SymbolicPlan | ClipPlan
IntArray: TypeAlias = npt.NDArray[np.int64]


class Piece(NamedTuple):
    """One box of the rest of a group: its height, its first row from the end of the whole tiles, its valid rows."""

    height: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class RaggedRule(Record, code="LA865"):
    """When a map of the family is used, and for which rows.

    Args:
        rows: Box height.
        text: ISL map from (tile, row of the box) to the row of the group; its parameter n is the group's size.
    """

    rows: int
    text: str


@dataclass(frozen=True, slots=True)
class RaggedCopy(Checked, code="LA865"):
    """One tile of one group: its map, its first row in the tensor and in shared memory, and its valid rows.

    Args:
        group: Its number.
        member: The map's position in the family.
        row: First row in the tensor; within the group for a per-group map.
        shared_row: First row in the tile.
        rows: Rows that belong to the group.
    """

    group: int
    member: int
    row: int
    shared_row: int
    rows: int


def _unchecked(row: list[int]) -> RaggedCopy:
    """The copy of a row of a table, whose entries are integers."""
    copy = object.__new__(RaggedCopy)
    put = object.__setattr__
    for name, value in zip(RaggedCopy.__match_args__, row, strict=True):
        put(copy, name, value)
    return copy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RaggedCopies(Sequence[RaggedCopy]):
    """The copies of all groups, in order: a sequence of ``RaggedCopy``, and the columns as arrays.

    Args:
        table: int64[copies, 5]: group, member, row, shared_row, rows.
    """

    table: IntArray

    def __post_init__(self) -> None:
        table: object = self.table
        if not isinstance(table, np.ndarray) or table.dtype != np.int64 or table.ndim != 2 or table.shape[1] != 5:
            raise CHECK.malformed("table", "must be int64[copies, 5]", table)

    @property
    def columns(self) -> dict[str, IntArray]:
        """The columns by the names of ``RaggedCopy``."""
        return dict(zip(RaggedCopy.__match_args__, self.table.T, strict=True))

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, place: int) -> RaggedCopy: ...
    @overload
    def __getitem__(self, place: slice) -> RaggedCopies: ...
    def __getitem__(self, place: int | slice) -> RaggedCopy | RaggedCopies:
        if isinstance(place, slice):
            return RaggedCopies(self.table[place])
        return RaggedCopy(*self.table[place].tolist())

    def __iter__(self) -> Iterator[RaggedCopy]:
        return map(_unchecked, self.table.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RaggedCopies):
            return np.array_equal(self.table, other.table)
        return isinstance(other, (tuple, list)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<RaggedCopies: {len(self)}>"


@dataclass(frozen=True, slots=True)
class OverRead(Record, code="LA865"):
    """What loads read behind a group.

    Args:
        rows: Rows at most.
        bytes: From the group's end to the end of what is read, at most; None if the pitch is symbolic.
        outside_bytes: How many of them may lie behind the tensor: none, because its map ends with it.
    """

    rows: int
    bytes: int | None
    outside_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RaggedFamily(
    Record, Shown, Runnable, code="LA865", schema="layoutalg/ragged-family/1",
    json="strategy axis tile_rows plans rules stated least_rows multiple? rows? groups? sizes? over_read certificate",
):  # fmt: skip
    """Maps that copy all tiles of a ragged tensor.

    For every list of group sizes, ``copies(sizes)`` moves each element of each group once (or as ``stated`` says).

    Args:
        strategy: One of ``STRATEGIES``.
        axis: The ragged dimension.
        tile_rows: T.
        plans: The maps, each proved; with ``descriptors`` one symbolic plan in which n is the group size.
        rules: When each map is used.
        stated: Exceptions to exactly-once coverage; empty if there are none.
        least_rows: Minimum size of a nonempty group.
        certificate: The result from ISL.
        multiple: What divides every group size.
        rows: Rows of the tensor, which the sizes may not exceed; the hardware maximum if they are symbolic.
        groups: The number of groups, if it is known.
        sizes: Their sizes, if they are known.
    """

    strategy: str
    axis: int
    tile_rows: int
    plans: tuple[Plan, ...]
    rules: tuple[RaggedRule, ...]
    stated: str
    least_rows: int
    certificate: dict[str, object] = field(default_factory=dict, hash=False)
    multiple: int = 1
    rows: int = limits.MAX_DIM
    groups: int | None = None
    sizes: tuple[int, ...] = ()

    def _validate(self) -> None:
        CHECK.choice(self.strategy, "strategy", STRATEGIES)
        for name in ("least_rows", "multiple", "rows"):
            CHECK.integer(getattr(self, name), name, 1)
        CHECK.integer(self.tile_rows, "tile_rows", 1, MOST_TILE_ROWS)
        if not self.plans or len(self.rules) < len(self.plans):
            raise CHECK.malformed("rules", "must use every plan", len(self.rules))
        CHECK.integer(self.axis, "axis", 0, min(len(_tensor(plan)[0]) for plan in self.plans))

    @property
    def members(self) -> tuple[Plan, ...]:
        """The maps, the tallest box first: what ``RaggedCopy.member`` counts."""
        return self.plans

    @property
    def heights(self) -> tuple[int, ...]:
        """Rows of each map's box."""
        return tuple(dict.fromkeys(rule.rows for rule in self.rules))

    @property
    def over_read(self) -> OverRead:
        """Rows and bytes that loads read behind a group, at most, and how many of them lie behind the tensor."""
        rows = self.tile_rows - gcd(self.multiple, self.tile_rows) if self.strategy == "overfetch" else 0
        strides, dtype = _tensor(self.plans[0])
        pitch = strides[self.axis]
        if rows and not isinstance(pitch, int):
            return OverRead(rows, None)
        return OverRead(rows, rows * pitch * hardware.element_bytes(dtype) if rows else 0)

    def copies(self, sizes: object = None, *, offsets: object = None) -> RaggedCopies:
        """Return the tiles of these consecutive groups; the other dimensions are tiled as usual.

        Args:
            sizes: Rows of each group; by default those the family was made for.
            offsets: Instead of sizes, where each group starts and the last one ends.

        Raises: MalformedError: LA869, LA865: names the first size or offset that is wrong. BudgetError: LA001, LA002.

        Example:
            >>> import layoutalg as la
            >>> family = la.ragged(la.Tensor((1024, 512)), None, (64, 64), strategy="exact_pool")
            >>> [(copy.row, copy.rows) for copy in family.copies([70, 0, 64])]
            [(0, 64), (64, 4), (68, 2), (70, 64)]
        """
        if sizes is not None and offsets is not None:
            raise CHECK.malformed("offsets", "must be left out where sizes are given", offsets)
        if offsets is not None:
            ends = checked_offsets(offsets, self.rows)
        else:
            ends = group_offsets(self.sizes if sizes is None else sizes, self.rows)
        counts, tile = np.diff(ends), self.tile_rows
        self._checked(counts, "sizes" if offsets is None else "offsets")
        clock.check("the copies of a ragged tensor")
        whole, rest = counts // tile, counts % tile
        first, entries = _tails(self.strategy, tile, self.heights)
        kind = rest + tile * (whole > 0)
        many = whole + first[kind + 1] - first[kind]
        total = int(many.sum(dtype=np.uint64))
        memory.reserve("the copies of a ragged tensor", total, 96)
        group = np.repeat(np.arange(len(counts)), many)
        place = np.arange(total) - np.repeat(np.cumsum(many) - many, many)
        done = whole[group]
        last = np.maximum(place - done, -1)  # the number of a piece of the rest; -1 for a whole tile
        entry = entries[np.where(last < 0, 0, first[kind[group]] + last)]
        start = 0 if self.strategy == "descriptors" else ends[:-1][group]
        table = np.empty((total, 5), dtype=np.int64)
        table[:, 0], table[:, 1] = group, entry[:, 0]
        table[:, 2] = start + np.minimum(place, done) * tile + entry[:, 1]
        table[:, 3:] = entry[:, 2:]
        table.flags.writeable = False
        return RaggedCopies(table)

    def _checked(self, counts: IntArray, argument: str) -> None:
        """Refuse groups that are too short, too long for a map of their own, or no multiple."""
        most = limits.MAX_DIM if self.strategy == "descriptors" else MOST_ROWS
        wrong = ((counts > 0) & (counts < self.least_rows)) | (counts % self.multiple != 0) | (counts > most)
        if self.groups is not None and len(counts) != self.groups:
            raise CHECK.malformed(argument, f"must be those of {self.groups} groups", len(counts))
        if wrong.any():
            place = int(np.argmax(wrong))
            size = int(counts[place])
            rule = f"must be 0 or at least {self.least_rows}" if self.least_rows > 1 else f"must be at most {most}"
            if size % self.multiple:
                rule = f"must be a multiple of {self.multiple}"
            where = f"sizes[{place}]" if argument == "sizes" else f"offsets[{place + 1}] - offsets[{place}]"
            raise CHECK.malformed(where, rule, size)

    def __str__(self) -> str:
        many = f"{len(self.plans)} map{'s' if len(self.plans) > 1 else ''}"
        each = " per group" if self.strategy == "descriptors" else ""
        lines = [
            f"admissible    {many}{each}, tiles of {self.tile_rows} rows of dimension {self.axis}: {self.strategy}"
        ]
        lines += [f"  rows {rule.rows:<7} {rule.text}" for rule in self.rules]
        lines.append(f"  coverage    {self.stated or 'every row of every group exactly once'}")
        if self.least_rows > 1:
            lines.append(f"  groups      empty, or at least {self.least_rows} rows")
        if self.multiple > 1:
            lines.append(f"  sizes       multiples of {self.multiple}")
        if (over := self.over_read).rows:
            amount = f"{over.rows} rows" + (f", {over.bytes} bytes," if over.bytes is not None else "")
            lines.append(f"  over-read   at most {amount} behind a group; none behind the tensor, where its map ends")
        if self.certificate:
            lines.append(f"  proof       by {self.certificate['engine']}, for every group size")
        return "\n".join(lines)


def _tensor(plan: Plan) -> tuple[tuple[Size, ...], str]:
    """Element strides and type of a plan's tensor."""
    if isinstance(plan, SymbolicPlan):
        return plan.problem.tensor.strides, plan.problem.tensor.dtype
    return plan.problem.global_strides, plan.problem.dtype


def tail(strategy: str, tile_rows: int, rest: int, whole: bool) -> tuple[Piece, ...]:
    """Return the boxes of a group's last ``rest`` rows, fewer than a tile.

    Args:
        strategy: One of ``STRATEGIES``.
        tile_rows: T.
        rest: Rows behind the whole tiles.
        whole: Whether there are whole tiles before them.

    Example:
        >>> [tail(strategy, 64, 13, True) for strategy in ("overlap_pool", "shift_back", "overfetch")]
        [(Piece(height=8, first=0, rows=8), Piece(height=8, first=5, rows=8)), \
(Piece(height=64, first=-51, rows=64),), (Piece(height=64, first=0, rows=13),)]
    """
    if rest == 0:
        return ()
    if strategy in ("shift_back", "auto") and whole:
        return (Piece(tile_rows, rest - tile_rows, tile_rows),)
    if strategy == "exact_pool":
        heights = [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]
        return tuple([Piece(height, rest & -2 * height, height) for height in heights])
    if strategy in ("shift_back", "auto", "overlap_pool"):
        height = 1 << (rest.bit_length() - 1)
        pieces = (Piece(height, 0, height), Piece(height, rest - height, height))
        return pieces if rest > height else pieces[:1]
    return (Piece(tile_rows, 0, rest),)


@lru_cache(maxsize=32)
def _tails(strategy: str, tile_rows: int, heights: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The boxes of every rest, without and with whole tiles before it: where each begins, and (member, row from the end
    of the whole tiles, row in the tile, rows). Entry 0 is a whole tile.
    """
    first, entries = [1], [(0, 0, 0, tile_rows)]
    for whole in (False, True):
        for rest in range(tile_rows):
            for piece in tail(strategy, tile_rows, rest, whole):
                if piece.height in heights:  # others belong to sizes that are no multiples, or too short
                    shared = max(piece.first, 0)
                    entries.append((heights.index(piece.height), piece.first, shared, piece.rows))
            first.append(len(entries))
    return np.asarray(first, dtype=np.int64), np.asarray(entries, dtype=np.int64)


def heights_of(strategy: str, tile_rows: int, multiple: int = 1) -> tuple[int, ...]:
    """Return the heights of the smaller boxes that the rests of all sizes need, tallest first.

    Example:
        >>> heights_of("exact_pool", 64), heights_of("auto", 64, 16), heights_of("shift_back", 64)
        ((32, 16, 8, 4, 2, 1), (32, 16), ())
    """
    if strategy not in POOLED:
        return ()
    rests = range(gcd(multiple, tile_rows), tile_rows, gcd(multiple, tile_rows))
    found = {piece.height for rest in rests for piece in tail(strategy, tile_rows, rest, False)}
    return tuple(sorted(found - {tile_rows}, reverse=True))


def overlaps(strategy: str, tile_rows: int, multiple: int = 1) -> bool:
    """Return whether some row is copied twice for some size."""
    step = gcd(multiple, tile_rows)
    return any(
        sum([piece.rows for piece in tail(strategy, tile_rows, rest, whole)]) > rest
        for rest in range(step, tile_rows, step)
        for whole in (False, True)
    )


def rules_of(strategy: str, tile_rows: int, heights: Sequence[int] = ()) -> tuple[RaggedRule, ...]:
    """Return the rules of a strategy.

    Args:
        strategy: One of ``STRATEGIES``.
        tile_rows: T.
        heights: Heights of the smaller boxes, descending powers of two.

    Example:
        >>> for rule in rules_of("shift_back", 64):
        ...     print(rule.rows, rule.text)
        64 [n] -> { [k, j] -> [64k + j] : 0 <= k and 0 <= j < 64 and 64k + 64 <= n }
        64 [n] -> { [k, j] -> [n - 64 + j] : 0 <= k and 0 <= j < 64 and 64k < n < 64k + 64 }
    """
    t = tile_rows

    def rule(rows: int, start: str, where: str) -> RaggedRule:
        return RaggedRule(rows, f"[n] -> {{ [k, j] -> [{start} + j] : 0 <= k and 0 <= j < {rows} and {where} }}")

    rules = [rule(t, f"{t}k", f"{t}k + {t} <= n")]
    last, short = f"{t}k < n < {t}k + {t}", "k = 0"
    if strategy in ("shift_back", "auto"):
        rules.append(rule(t, f"n - {t}", f"{last}{' and 1 <= k' if strategy == 'auto' else ''}"))
    elif strategy == "overfetch":
        rules.append(rule(t, f"{t}k", last))
    elif strategy in ("descriptors", "clip"):
        rules.append(rule(t, f"{t}k", f"{last} and {t}k + j < n"))
    rest = f"n - {t}k"
    for h in heights:
        if strategy == "exact_pool":
            above = f"{2 * h}*floor(({rest})/{2 * h})"
            rules.append(rule(h, f"{t}k + {above}", f"{last} and {h} <= ({rest}) - {above}"))
            continue
        where = f"{last} and {short}" if strategy == "auto" else last
        rules.append(rule(h, f"{t}k", f"{where} and {h} <= {rest} < {2 * h}"))
        rules.append(rule(h, f"n - {h}", f"{where} and {h} < {rest} < {2 * h}"))
    return tuple(rules)


def prove_coverage(family: RaggedFamily) -> Verdict:
    """Decide for every group size whether each row is copied exactly once, or as stated.

    Returns:
        ``Proved``; or ``Refuted`` with a group size and a row that is missed, copied twice or foreign without being
        stated.
    """
    sizes = f"n >= {family.least_rows}"
    if family.multiple > 1:
        sizes += f" and n mod {family.multiple} = 0"
    pieces = []
    for place, rule in enumerate(family.rules):
        mapped = rule.text.split("{", 1)[1].rsplit("}", 1)[0].replace("[k, j]", f"[{place}, k, j]", 1)
        pieces.append(f"{mapped} and {sizes}")
    text = f"[n] -> {{ {'; '.join(pieces)} }}"
    copied = PiecewiseLayout(text, ("row",), f"[n] -> {{ : {sizes} }}")
    group = PointSet(f"[n] -> {{ [row] : 0 <= row < n and {sizes} }}")
    image = copied.image
    missed = group.subtract(image).sample()
    if missed is not None:
        return Refuted("isl", {"what": "a row is not copied", "at": missed})
    foreign = image.subtract(group).sample()
    if foreign is not None and family.strategy != "overfetch":
        return Refuted("isl", {"what": "a foreign row is copied", "at": foreign})
    twice = copied.collision()
    if twice is not None and family.strategy not in ("auto", "overlap_pool", "shift_back"):
        return Refuted("isl", {"what": "a row is copied twice", "at": twice})
    if bool(family.stated) != (foreign is not None or twice is not None):
        return Refuted("isl", {"what": "wrong claim", "field": "stated", "got": family.stated})
    claim = family.stated or "every row of a group of n rows is copied exactly once"
    certificate: dict[str, Any] = {
        "claim": claim, "engine": "isl", "copies": text, "least_rows": family.least_rows,
    }  # fmt: skip
    return Proved("isl", certificate | ({"multiple": family.multiple} if family.multiple > 1 else {}))
