"""Tokens routed to experts: where every row goes, which tiles a grouped product has, what a kernel may launch.

Notation: the *flattened ids* are topk_ids read row by row: entry p belongs to token p // k. Experts are numbered as in
topk_ids everywhere, also with ``local``; n is the number of flattened ids and the sentinel of padded lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.indirect import routing as certified
from layoutalg.proofs.groups import group_offsets, tile_bound
from layoutalg.proofs.indirect.values import MOST, Compared, Indices, Labels, Runs, frozen, index_array

CHECK = Checker("LA938", "these tokens cannot be routed")
MOST_EXPERTS = 1 << 16
MOST_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Routing(Compared, Shown):
    """Rows sorted by expert, each expert's rows padded to whole blocks: what ``moe_align_block_size`` means.

    With ``local = (first, last)`` only experts first to last, both included, are on this rank: rows of others are left
    out of every list (their inverse is -1, their count 0); numbers of experts stay those of ``topk_ids``.

    Args:
        topk_ids: Experts of each token: [tokens, k], or [tokens] for k = 1. Numbers outside [0, experts) are refused,
            -1 as well.
        experts: Number of experts.
        block: Rows of a tile.
        local: First and last expert of this rank; None: all.

    Example:
        >>> found = Routing([[2, 0], [0, 2], [2, 1]], experts=4, block=2)
        >>> found.counts.tolist(), found.offsets.tolist(), found.order.tolist(), found.inverse.tolist()
        ([2, 1, 3, 0], [0, 2, 3, 6, 6], [1, 2, 5, 0, 3, 4], [3, 0, 1, 4, 5, 2])
        >>> found.padded_offsets.tolist(), found.padded_order.tolist(), found.block_experts.tolist()
        ([0, 2, 4, 8, 8], [1, 2, 5, 6, 0, 3, 4, 6], [0, 1, 2, 2])
        >>> found.tiles, found.tile_bound, found.source_runs
        ([(0, 0, 2), (1, 2, 1), (2, 3, 2), (2, 5, 1)], 5, [(0, 2, 0), (2, 1, 1), (0, 3, 2)])
        >>> here = Routing([[2, 0], [0, 2], [2, 1]], experts=4, block=2, local=(1, 2))
        >>> here.counts.tolist(), here.order.tolist(), here.inverse.tolist(), here.padded_order.tolist()
        ([0, 1, 3, 0], [5, 0, 3, 4], [1, -1, -1, 2, 3, 0], [5, 6, 0, 3, 4, 6])
    """

    topk_ids: Indices
    experts: int
    block: int
    local: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        experts = CHECK.integer(self.experts, "experts", 1, MOST_EXPERTS + 1)
        block = CHECK.integer(self.block, "block", 1, MOST_BLOCK + 1)
        if self.local is not None:
            first, last = CHECK.vector(self.local, "local", 2)
            if not 0 <= first <= last < experts:
                rule = f"must be the first and the last expert of this rank, both in [0, {experts})"
                raise CHECK.malformed("local", rule, (first, last))
            object.__setattr__(self, "local", (first, last))
        object.__setattr__(self, "experts", experts)
        object.__setattr__(self, "block", block)
        found = index_array(self.topk_ids, "topk_ids", 0, experts, CHECK, (1, 2))
        if found.size + experts * block > MOST:
            raise CHECK.malformed("block", f"must give at most {MOST} padded rows", block)
        object.__setattr__(self, "topk_ids", found)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.topk_ids.shape[0])

    @property
    def k(self) -> int:
        """Experts of each token."""
        return int(self.topk_ids.shape[1]) if self.topk_ids.ndim == 2 else 1

    @property
    def own(self) -> tuple[int, int]:
        """First and last expert of this rank."""
        return (0, self.experts - 1) if self.local is None else self.local

    @cached_property
    def labels(self) -> Labels:
        """The expert of each flattened id; -1 where another rank has it."""
        flat, (first, last) = self.topk_ids.reshape(-1), self.own
        return Labels(np.where((flat >= first) & (flat <= last), flat, -1), self.experts)

    @cached_property
    def counts(self) -> Indices:
        """Rows of each expert: ``experts`` numbers."""
        return frozen(self.labels.counts)

    @cached_property
    def offsets(self) -> Indices:
        """First row of each expert in ``order``, and the end: ``experts + 1`` numbers."""
        return frozen(self.labels.offsets)

    @cached_property
    def order(self) -> Indices:
        """Flattened ids sorted by expert; of one expert, as they come."""
        return frozen(self.labels.order)

    @cached_property
    def inverse(self) -> Indices:
        """Row in ``order`` of each flattened id; -1 where another rank has it."""
        return frozen(self.labels.inverse)

    @cached_property
    def padded_offsets(self) -> Indices:
        """First row of each expert once rows are padded to blocks, and the end: multiples of ``block``."""
        padded = -(-self.counts // self.block) * self.block
        return frozen(group_offsets(padded, argument="padded counts"))

    @cached_property
    def padded_order(self) -> Indices:
        """``order`` with each expert's rows padded by the sentinel n to whole blocks."""
        found = np.full(int(self.padded_offsets[-1]), self.topk_ids.size, dtype=np.int64)
        shift = np.repeat(self.padded_offsets[:-1] - self.offsets[:-1], self.counts)
        found[np.arange(len(self.order)) + shift] = self.order
        return frozen(found)

    @cached_property
    def block_experts(self) -> Indices:
        """The expert of each block of ``padded_order``."""
        return frozen(np.repeat(np.arange(self.experts), np.diff(self.padded_offsets) // self.block))

    @property
    def tiles(self) -> list[tuple[int, int, int]]:
        """(expert, first row in ``order``, rows) of each tile; only the last of an expert has less than ``block``."""
        number = np.arange(len(self.block_experts)) - self.padded_offsets[self.block_experts] // self.block
        first = self.offsets[self.block_experts] + number * self.block
        rows = np.minimum(self.block, self.offsets[self.block_experts + 1] - first)
        return list(zip(self.block_experts.tolist(), first.tolist(), rows.tolist(), strict=True))

    @property
    def tile_bound(self) -> int:
        """Most tiles that n ids to the experts of this rank can have: a grid that needs no count from the device."""
        first, last = self.own
        return tile_bound(int(self.topk_ids.size), last - first + 1, self.block)

    @property
    def runs(self) -> Runs:
        """The tokens of ``order`` in the longest runs t, t + 1, ... to one expert: what ``runs_kernel`` copies."""
        tokens = self.order // max(1, self.k)
        spread = tokens + self._experts * (self.tokens + 1)  # no run goes on into the next expert
        pieces = Runs.of(spread, step=1).pieces.copy()
        pieces[:, 1] = tokens[pieces[:, 0]]
        return Runs(pieces)

    @property
    def _experts(self) -> Indices:
        """The expert of each row of ``order``."""
        return np.repeat(np.arange(self.experts), self.counts)

    @property
    def source_runs(self) -> list[tuple[int, int, int]]:
        """(token, length, expert) of ``runs``, in the order of rows."""
        place, token, _, length = self.runs.pieces.T
        return list(zip(token.tolist(), length.tolist(), self._experts[place].tolist(), strict=True))

    @property
    def certificate(self) -> Certificate:
        """Proof for these ids that the order is the stable one, the padding that of blocks, and no row is lost."""
        return certified(self)

    def __str__(self) -> str:
        first, last = self.own
        used = int(np.count_nonzero(self.counts))
        padded = int(self.padded_offsets[-1])
        return "\n".join([
            f"routing       {self.tokens} tokens x {self.k} to experts {first} to {last} of {self.experts}",
            f"  rows        {len(self.order)} for {used} experts, at most {int(self.counts.max())} for one",
            f"  padded      {padded} rows in {padded // self.block} blocks of {self.block}; at most {self.tile_bound}",
            f"  runs        {len(self.source_runs)} of consecutive tokens",
        ])  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return the lists as JSON-ready data."""
        names = ["counts", "offsets", "order", "inverse", "padded_offsets", "padded_order", "block_experts"]
        return {
            "schema": "layoutalg/routing/1", "tokens": self.tokens, "k": self.k, "experts": self.experts,
            "block": self.block, "local": None if self.local is None else list(self.local),
            **{name: getattr(self, name).tolist() for name in names},
            "tiles": [list(tile) for tile in self.tiles], "tile_bound": self.tile_bound,
            "source_runs": [list(run) for run in self.source_runs],
        }  # fmt: skip
