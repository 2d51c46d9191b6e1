"""Descriptor families for ragged tensors: what they copy, and the proof that each row is copied once.

A ragged tensor is the concatenation of its groups along one dimension. The copies of a group of n rows by tiles of T
rows are a piecewise function from (rule, tile, row of the box) to group rows with parameter n. Each row is copied
exactly once iff this function is injective with image 0 <= row < n; ISL decides both for all n at once. Groups do not
overlap, so the proof for one covers the tensor.

Strategies. ``descriptors``: one map per group with the group's extent; the engine clips the last tile. ``boxes``: one
map per power of two up to T, each over the whole tensor; the last tile is a sum of smaller boxes. ``back``: one map;
the last tile ends with the group, so some rows are copied twice (groups of at least T rows). ``overfetch``: one map;
the last tile also reads rows after the group, to be discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutalg.ground import clock, memory
from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked, Record
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.piecewise import PiecewiseLayout, PointSet
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.targets.nvidia.tensormap import limits

CHECK = Checker("LA865", "invalid ragged family")
STRATEGIES = ("descriptors", "boxes", "back", "overfetch")
Plan: TypeAlias = TensorMapPlan | SymbolicPlan


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


@dataclass(frozen=True, slots=True)
class RaggedFamily(Record, Shown, code="LA865", schema="layoutalg/ragged-family/1"):
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
    """

    strategy: str
    axis: int
    tile_rows: int
    plans: tuple[Plan, ...]
    rules: tuple[RaggedRule, ...]
    stated: str
    least_rows: int
    certificate: dict[str, object] = field(default_factory=dict, hash=False)

    def _validate(self) -> None:
        CHECK.choice(self.strategy, "strategy", STRATEGIES)
        if not self.plans or len(self.rules) < len(self.plans) or self.tile_rows < 1 or self.least_rows < 1:
            raise CHECK.malformed("rules", "must use every plan", len(self.rules))

    def copies(self, sizes: Sequence[int]) -> tuple[RaggedCopy, ...]:
        """Return the tiles of these consecutive groups; the other dimensions are tiled as usual.

        Raises: MalformedError: LA865, also if the sizes exceed the tensor's rows. BudgetError: LA001, LA002.

        Example:
            >>> import layoutalg as la
            >>> from layoutalg.synth import synthesize_ragged
            >>> family = synthesize_ragged(la.Tensor((1024, 512)), (64, 64), strategy="boxes")
            >>> [(copy.row, copy.rows) for copy in family.copies([70, 0, 64])]
            [(0, 64), (64, 4), (68, 2), (70, 64)]
        """
        rows, start, counts = self._rows(), 0, []
        for group, size in enumerate(CHECK.vector(sizes, "sizes", low=0)):
            clock.check("the copies of a ragged tensor")
            counts.append(size)
            if 0 < size < self.least_rows:
                raise CHECK.malformed(f"sizes[{group}]", f"must be 0 or at least {self.least_rows}", size)
            start = counts[-1] if self.strategy == "descriptors" else start + counts[-1]
            if start > rows:
                raise CHECK.malformed(f"sizes[{group}]", f"must end within the {rows} rows of the tensor", size)
        most = sum(size // self.tile_rows + self.tile_rows.bit_length() for size in counts)
        memory.reserve("the copies of a ragged tensor", most, 128)
        found: list[RaggedCopy] = []
        start = 0
        for group, size in enumerate(counts):
            clock.check("the copies of a ragged tensor")
            found += self._group(group, start, size)
            start += size
        return tuple(found)

    def _rows(self) -> int:
        """Rows of the tensor; the hardware maximum if they are symbolic or each group has its own map."""
        problem = self.plans[0].problem
        if self.strategy == "descriptors" or not isinstance(problem, TensorMapProblem):
            return limits.MAX_DIM
        return problem.global_shape[self.axis]

    def _group(self, group: int, start: int, size: int) -> list[RaggedCopy]:
        tile, first = self.tile_rows, 0 if self.strategy == "descriptors" else start
        whole, rest = divmod(size, tile)
        found = [RaggedCopy(group, 0, first + k * tile, 0, tile) for k in range(whole)]
        if not rest:
            return found
        if self.strategy == "back":
            return [*found, RaggedCopy(group, 0, first + size - tile, 0, tile)]
        if self.strategy != "boxes":
            return [*found, RaggedCopy(group, 0, first + whole * tile, 0, rest)]
        done = 0
        for member, plan_rows in enumerate(rule.rows for rule in self.rules[1:]):
            if rest & plan_rows:
                found.append(RaggedCopy(group, member + 1, first + whole * tile + done, done, plan_rows))
                done += plan_rows
        return found

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
        if self.certificate:
            lines.append(f"  proof       by {self.certificate['engine']}, for every group size")
        return "\n".join(lines)


def rules_of(strategy: str, tile_rows: int, heights: Sequence[int] = ()) -> tuple[RaggedRule, ...]:
    """Return the rules of a strategy.

    Args:
        strategy: One of ``STRATEGIES``.
        tile_rows: T.
        heights: Heights of the smaller boxes, descending powers of two; for ``boxes``.

    Example:
        >>> for rule in rules_of("back", 64):
        ...     print(rule.rows, rule.text)
        64 [n] -> { [k, j] -> [64k + j] : 0 <= k and 0 <= j < 64 and 64k + 64 <= n }
        64 [n] -> { [k, j] -> [n - 64 + j] : 0 <= k and 0 <= j < 64 and 64k < n < 64k + 64 }
    """
    t = tile_rows
    box = f"0 <= k and 0 <= j < {t}"
    rules = [RaggedRule(t, f"[n] -> {{ [k, j] -> [{t}k + j] : {box} and {t}k + {t} <= n }}")]
    last = f"{t}k < n < {t}k + {t}"
    if strategy == "back":
        rules.append(RaggedRule(t, f"[n] -> {{ [k, j] -> [n - {t} + j] : {box} and {last} }}"))
    elif strategy == "overfetch":
        rules.append(RaggedRule(t, f"[n] -> {{ [k, j] -> [{t}k + j] : {box} and {last} }}"))
    elif strategy == "descriptors":
        rules.append(RaggedRule(t, f"[n] -> {{ [k, j] -> [{t}k + j] : {box} and {last} and {t}k + j < n }}"))
    for h in heights:
        rest = f"n - {t}k"
        start = f"{t}k + {2 * h}*floor(({rest})/{2 * h})"
        has = f"{h} <= ({rest}) - {2 * h}*floor(({rest})/{2 * h})"
        rules.append(
            RaggedRule(h, f"[n] -> {{ [k, j] -> [{start} + j] : 0 <= k and 0 <= j < {h} and {last} and {has} }}")
        )
    return tuple(rules)


def prove_coverage(family: RaggedFamily) -> Verdict:
    """Decide for every group size whether each row is copied exactly once, or as stated.

    Returns:
        ``Proved``; or ``Refuted`` with a group size and a row that is missed, copied twice or foreign without being
        stated.
    """
    least = f"n >= {family.least_rows}"
    clipped = family.strategy == "overfetch"
    pieces = []
    for place, rule in enumerate(family.rules):
        mapped = rule.text.split("{", 1)[1].rsplit("}", 1)[0].replace("[k, j]", f"[{place}, k, j]", 1)
        pieces.append(f"{mapped} and {least}")
    text = f"[n] -> {{ {'; '.join(pieces)} }}"
    copied = PiecewiseLayout(text, ("row",), f"[n] -> {{ : {least} }}")
    group = PointSet(f"[n] -> {{ [row] : 0 <= row < n and {least} }}")
    image = copied.image
    missed = group.subtract(image).sample()
    if missed is not None:
        return Refuted("isl", {"what": "a row is not copied", "at": missed})
    foreign = image.subtract(group).sample()
    if foreign is not None and not clipped:
        return Refuted("isl", {"what": "a foreign row is copied", "at": foreign})
    twice = copied.collision()
    if twice is not None and family.strategy != "back":
        return Refuted("isl", {"what": "a row is copied twice", "at": twice})
    if bool(family.stated) != (foreign is not None or twice is not None):
        return Refuted("isl", {"what": "wrong claim", "field": "stated", "got": family.stated})
    claim = family.stated or "every row of a group of n rows is copied exactly once"
    return Proved("isl", {"claim": claim, "engine": "isl", "copies": text, "least_rows": family.least_rows})
