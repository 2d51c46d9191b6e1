"""Paged key-value caches: where each element is, which bytes are contiguous, and who may write.

A cache is a pool of pages; the table of a sequence lists the pages of its tokens: token t is at row t mod P of page
table(t div P). In a page, ``NHD`` is [P, heads, head_dim] and ``HND`` is [heads, P, head_dim], elements contiguous;
pages are ``page_stride`` bytes apart. So address = page * page_stride o table o division by P, plus a strided layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from layoutalg.cute import CuteLayout
from layoutalg.ground import memory
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.picture import Shown
from layoutalg.ground.runnable import Runnable
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.indirect import paging as certified
from layoutalg.proofs.groups import checked_offsets
from layoutalg.proofs.indirect.values import MOST, Compared, Indices, Runs, first_repeat, frozen, index_array
from layoutalg.targets.nvidia.tensormap.limits import MAX_BOX

CHECK = Checker("LA940", "this is not a paged cache")
LAYOUTS = ("NHD", "HND")
ELEMENT_BYTES = (1, 2, 4, 8)
MOST_BYTES = 1 << 46


@dataclass(frozen=True, slots=True, eq=False)
class PageTable(Compared):
    """The pages of a sequence, in order; a page may be there twice (read-shared), but then nothing may be written.

    Args:
        entries: Page numbers.
        pages: Pages of the pool.

    Example:
        >>> PageTable([3, 1], 4).written().entries.tolist()
        [3, 1]
        >>> PageTable([3, 1, 3], 4).written()
        Traceback (most recent call last):
        layoutalg.ground.errors.AdmissibilityError: LA939 a store through a page table with a page twice
          in     page_table[2]
          since  page 3 is also entry 0: two tokens would be written to one place; loads are fine
          at     first=0, second=2, page=3
    """

    entries: Indices
    pages: int

    def __post_init__(self) -> None:
        pages = CHECK.integer(self.pages, "pages", 0, MOST_BYTES)
        object.__setattr__(self, "pages", pages)
        object.__setattr__(self, "entries", index_array(self.entries, "page_table", 0, pages, CHECK))

    @property
    def sharing(self) -> int:
        """The most entries that name one page: 1 if the table is injective, 0 if it is empty."""
        return int(np.unique(self.entries, return_counts=True)[1].max(initial=0))

    def written(self) -> PageTable:
        """Return the table, refused for stores if a page is there twice.

        Raises: AdmissibilityError: LA939, with the first two entries.
        """
        again = first_repeat(self.entries)
        if again is None:
            return self
        first, second = again
        page = int(self.entries[first])
        because = f"page {page} is also entry {first}: two tokens would be written to one place; loads are fine"
        raise AdmissibilityError(
            Diagnostic(
                "LA939", "a store through a page table with a page twice", (f"page_table[{second}]",), because,
                {"first": first, "second": second, "page": page},
            )
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Paged(Compared, Shown, Runnable):
    """A sequence in a paged cache.

    Args:
        page_table: Pages of the sequence in order. Entries behind its last page are not looked at.
        page_size: P, tokens of a page.
        kv_heads: Heads.
        head_dim: Elements of a head of a token.
        element_bytes: 1, 2, 4 or 8.
        kv_layout: ``"NHD"`` or ``"HND"``.
        seq_len: Tokens; by default those of all pages of the table.
        pages: Pages of the pool; by default up to the highest in the table.
        page_stride: Bytes from page to page: a multiple of the element, at least those of a page, which is the default.

    Example:
        >>> cache = Paged([4, 5, 2], 16, 8, 128, 2, "NHD", 40, 8)
        >>> cache.address(17, 3, 5), cache.page_runs, cache.runs(), cache.runs(head=0)[:2]
        (166666, [(4, 2), (2, 1)], [(131072, 65536), (65536, 16384)], [(131072, 256), (133120, 256)])
        >>> Paged([4, 5, 2], 16, 8, 128, 2, "HND", 40, 8).runs(head=1)
        [(135168, 4096), (167936, 4096), (69632, 2048)]
        >>> cache.box_rows(128), cache.box_rows(24)
        (16, 8)
    """

    page_table: Indices
    page_size: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    kv_layout: str = "NHD"
    seq_len: int | None = None
    pages: int | None = None
    page_stride: int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("page_size", "kv_heads", "head_dim"):
            put(self, name, CHECK.integer(getattr(self, name), name, 1, 1 << 31))
        size = CHECK.integer(self.element_bytes, "element_bytes")
        if size not in ELEMENT_BYTES:
            raise CHECK.malformed("element_bytes", "must be 1, 2, 4 or 8", size)
        put(self, "element_bytes", size)
        CHECK.choice(self.kv_layout, "kv_layout", LAYOUTS)
        known = self.pages if self.pages is None else CHECK.integer(self.pages, "pages", 0, MOST_BYTES)
        entries = index_array(self.page_table, "page_table", -(1 << 62), 1 << 62, CHECK)
        most = len(entries) * self.page_size
        tokens = most if self.seq_len is None else CHECK.integer(self.seq_len, "seq_len", 0)
        if tokens > most:
            rule = f"must be at most {most}, as the table has {len(entries)} pages of {self.page_size} tokens"
            raise CHECK.malformed("seq_len", rule, tokens)
        entries = entries[: -(-tokens // self.page_size)]
        found = PageTable(entries, int(entries.max(initial=-1)) + 1 if known is None else known)
        stride = self.page_bytes if self.page_stride is None else CHECK.integer(self.page_stride, "page_stride")
        if stride < self.page_bytes or stride % size:
            rule = f"must be a multiple of {size} bytes, at least the {self.page_bytes} bytes of a page"
            raise CHECK.malformed("page_stride", rule, stride)
        if found.pages * stride > MOST_BYTES:
            raise CHECK.malformed("pages", f"must have at most {MOST_BYTES} bytes in all", found.pages)
        values = {"page_table": found.entries, "seq_len": tokens, "pages": found.pages, "page_stride": stride}
        for name, value in values.items():
            put(self, name, value)

    @property
    def tokens(self) -> int:
        """Tokens of the sequence."""
        return self.seq_len or 0

    @property
    def table(self) -> PageTable:
        """Its pages."""
        return PageTable(self.page_table, self.pages or 0)

    @property
    def row_bytes(self) -> int:
        """Bytes of a head of a token."""
        return self.head_dim * self.element_bytes

    @property
    def page_bytes(self) -> int:
        """Bytes of a page."""
        return self.page_size * self.kv_heads * self.row_bytes

    @property
    def strides(self) -> dict[str, int]:
        """Bytes from page to page, and within a page from token to token, head to head and element to element."""
        row = self.row_bytes
        token, head = (row * self.kv_heads, row) if self.kv_layout == "NHD" else (row, row * self.page_size)
        return {"page": self.page_stride or 0, "token": token, "head": head, "d": self.element_bytes}

    @property
    def page_layout(self) -> CuteLayout:
        """The layout of a page: (token, head, d) to bytes."""
        steps = self.strides
        return CuteLayout((self.page_size, self.kv_heads, self.head_dim), (steps["token"], steps["head"], steps["d"]))

    def address(self, token: Any, head: Any = 0, d: Any = 0) -> Any:
        """Return the byte of an element from the start of the pool; arrays give an array.

        Raises: MalformedError: LA940, with the first coordinate out of range.
        """
        token, head, d = (
            CHECK.coordinate(value, name, extent)
            for value, name, extent in (
                (token, "token", self.tokens), (head, "head", self.kv_heads), (d, "d", self.head_dim),
            )
        )  # fmt: skip
        steps = self.strides
        page = self.page_table[token // self.page_size]
        found = page * steps["page"] + token % self.page_size * steps["token"] + head * steps["head"] + d * steps["d"]
        return int(found) if np.ndim(found) == 0 else found

    @property
    def page_runs(self) -> list[tuple[int, int]]:
        """(page, count) of the longest runs of pages that follow each other in the pool, in token order."""
        pieces = Runs.of(self.page_table, step=1).pieces
        return list(zip(pieces[:, 1].tolist(), pieces[:, 3].tolist(), strict=True))

    def runs(self, head: int | None = None) -> list[tuple[int, int]]:
        """Return (byte, length) of the longest contiguous runs in token order: of one head, or of all heads.

        The bytes of a page are in its own order: all heads of a whole page are one run in both layouts, those of a
        part of an ``HND`` page one run for each head. Runs go on across pages that touch.
        """
        heads, steps = self.kv_heads, self.strides
        rows = np.full(len(self.page_table), self.page_size, dtype=np.int64)
        if len(rows):
            rows[-1] -= len(rows) * self.page_size - self.tokens
        base = self.page_table * steps["page"]
        if head is not None:
            base = base + CHECK.integer(head, "head", 0, heads) * steps["head"]
            together = self.kv_layout == "HND" or heads == 1
            starts, lengths = (base, rows * self.row_bytes) if together else self._rows(base, rows)
        elif self.kv_layout == "NHD":
            starts, lengths = base, rows * steps["token"]
        else:
            memory.reserve("runs", len(base) * heads, 32)
            starts = (base[:, None] + np.arange(heads) * steps["head"]).reshape(-1)
            lengths = np.repeat(rows * self.row_bytes, heads)
        fresh = np.append(True, starts[1:] != starts[:-1] + lengths[:-1])[: len(starts)]
        whole = np.add.reduceat(lengths, np.flatnonzero(fresh)) if len(starts) else lengths
        return list(zip(starts[fresh].tolist(), whole.tolist(), strict=True))

    def _rows(self, base: Indices, rows: Indices) -> tuple[Indices, Indices]:
        """Start and length of every token's row."""
        if self.tokens > MOST:
            raise CHECK.malformed("seq_len", f"must be at most {MOST} to list the runs of a head", self.tokens)
        memory.reserve("runs", self.tokens, 64)
        inside = np.arange(self.tokens) % self.page_size
        starts = np.repeat(base, rows) + inside * self.strides["token"]
        return starts, np.full(self.tokens, self.row_bytes, dtype=np.int64)

    def box_rows(self, cta_rows: int) -> int:
        """Return the most rows of a TMA box that leaves neither a page nor a CTA's rows: divides both, up to 256."""
        common = gcd(self.page_size, CHECK.integer(cta_rows, "cta_rows", 1, 1 << 31))
        return next(rows for rows in range(min(common, MAX_BOX), 0, -1) if common % rows == 0)

    def boxes(self, cta_rows: int, capacity: int | None = None) -> list[tuple[int, int]]:
        """Return (first row in its page, page) of the boxes of the sequence up to a capacity in tokens.

        Boxes past the last token have the page number ``pages``, which no pool has: the copy engine fills them with
        zeros. Rows past the end in the last page have old values; where 0 x NaN matters (V), write zeros over them.
        """
        rows = self.box_rows(cta_rows)
        most = self.tokens if capacity is None else CHECK.integer(capacity, "capacity", self.tokens, MOST)
        first = np.arange(0, most, rows)
        beyond = np.append(self.page_table, self.pages or 0)
        page = beyond[np.where(first < self.tokens, first // self.page_size, len(self.page_table))]
        return list(zip((first % self.page_size).tolist(), page.tolist(), strict=True))

    @property
    def certificate(self) -> Certificate:
        """Proof for this table that distinct elements have distinct bytes, or how many entries share a page."""
        return certified(self)

    def __str__(self) -> str:
        shares = self.table.sharing
        shared = "one entry for each page: may be written" if shares < 2 else f"up to {shares} entries share a page"
        return "\n".join([
            f"paged         {self.tokens} tokens in {len(self.page_table)} of {self.pages} pages of {self.page_size}",
            f"  page        {self.kv_layout}, {self.kv_heads} heads of {self.head_dim} x {self.element_bytes} bytes: "
            f"{self.page_bytes} bytes every {self.page_stride}",
            f"  runs        {len(self.page_runs)} of pages, {len(self.runs())} of bytes",
            f"  sharing     {shared}",
        ])  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return the cache as JSON-ready data."""
        names = [
            "page_size",
            "kv_heads",
            "head_dim",
            "element_bytes",
            "kv_layout",
            "seq_len",
            "pages",
            "page_stride",
            "page_bytes",
        ]
        return {
            "schema": "layoutalg/paged/1", "page_table": self.page_table.tolist(),
            **{name: getattr(self, name) for name in names}, "strides": self.strides,
            "page_runs": [list(run) for run in self.page_runs], "runs": [list(run) for run in self.runs()],
            "sharing": self.table.sharing,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class PagedBatch(Compared, Shown, Runnable):
    """Sequences in one paged cache, their tables in CSR form, as FlashInfer has them.

    Mathematically: the pages of sequence s are entries indptr[s] to indptr[s + 1] - 1 of one table; all are full but
    the last. So a batch is one sequence of whole pages, of which s has the first rows of its own pages.

    Args:
        whole: All pages, in order, as one sequence.
        indptr: Where the pages of each sequence begin in the table, and the end.
        last_page_len: Tokens in the last page of each sequence, 1 to P; not looked at without a page, but below P + 1.

    Raises: MalformedError: LA940, LA869, with the first offending entry.

    Example:
        >>> batch = PagedBatch(Paged([4, 5, 2], 16, 8, 128, 2), [0, 2, 2, 3], [8, 0, 16])
        >>> batch.lengths.tolist(), batch.page_runs, batch.address(2, 3, 5)
        ([24, 0, 16], [(0, 4, 2), (2, 2, 1)], 72960)
    """

    whole: Paged
    indptr: Indices
    last_page_len: Indices

    def __post_init__(self) -> None:
        whole = CHECK.kind(self.whole, Paged, "whole")
        used = len(whole.page_table)
        starts = checked_offsets(index_array(self.indptr, "indptr", 0, used + 1, CHECK), used, "indptr")
        if starts[0] or starts[-1] != used:
            place, bound = (0, 0) if starts[0] else (len(starts) - 1, used)
            raise CHECK.malformed(f"indptr[{place}]", f"must be {bound}", int(starts[place]))
        if whole.tokens != used * whole.page_size:
            raise CHECK.malformed("whole", "must have whole pages: leave its seq_len out", whole.tokens)
        last = index_array(self.last_page_len, "last_page_len", 0, whole.page_size + 1, CHECK)
        if len(last) != len(starts) - 1:
            raise CHECK.malformed("last_page_len", f"must have {len(starts) - 1} entries, one a sequence", len(last))
        wrong = np.flatnonzero((np.diff(starts) > 0) & (last == 0))
        if len(wrong):
            raise CHECK.malformed(f"last_page_len[{wrong[0]}]", "must be at least 1: the sequence has pages", 0)
        object.__setattr__(self, "indptr", frozen(starts))
        object.__setattr__(self, "last_page_len", last)

    @property
    def sequences(self) -> int:
        """Number of sequences."""
        return len(self.last_page_len)

    @property
    def lengths(self) -> Indices:
        """Tokens of each sequence."""
        pages = np.diff(self.indptr)
        return np.where(pages > 0, (pages - 1) * self.whole.page_size + self.last_page_len, 0)

    @property
    def table(self) -> PageTable:
        """The pages of all sequences: one that two of them have may be read, not written."""
        return self.whole.table

    def sequence(self, number: int) -> Paged:
        """Return one sequence.

        Raises: MalformedError: LA940.
        """
        at = CHECK.integer(number, "number", 0, self.sequences)
        return replace(
            self.whole, page_table=self.whole.page_table[self.indptr[at] : self.indptr[at + 1]],
            seq_len=int(self.lengths[at]),
        )  # fmt: skip

    def address(self, sequence: Any, token: Any, head: Any = 0, d: Any = 0) -> Any:
        """Return the byte of an element of a sequence from the start of the pool; arrays give an array.

        Raises: MalformedError: LA940, with the first coordinate out of range.
        """
        longest = int(self.lengths.max(initial=0))
        row, number = np.broadcast_arrays(
            CHECK.coordinate(token, "token", longest), CHECK.coordinate(sequence, "sequence", self.sequences)
        )
        wrong = row >= self.lengths[number]
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            rule = f"must be below the {self.lengths[number[at]]} tokens of sequence {number[at]}"
            raise CHECK.malformed("token", rule, int(row[at]))
        return self.whole.address(self.indptr[number] * self.whole.page_size + row, head, d)

    @property
    def page_runs(self) -> list[tuple[int, int, int]]:
        """(sequence, page, count) of the longest runs of pages of one sequence that follow each other in the pool."""
        owner = np.repeat(np.arange(self.sequences), np.diff(self.indptr))
        entries, pages = self.whole.page_table, (self.whole.pages or 0) + 1
        pieces = Runs.of(entries + owner * pages, step=1).pieces  # no run goes on into the next sequence
        at, count = pieces[:, 0], pieces[:, 3]
        return list(zip(owner[at].tolist(), entries[at].tolist(), count.tolist(), strict=True))

    @property
    def certificate(self) -> Certificate:
        """Proof for these tables that distinct elements have distinct bytes, or how many entries share a page."""
        return certified(self.whole, self)

    def __str__(self) -> str:
        first, *rest = str(self.whole).splitlines()
        longest = int(self.lengths.max(initial=0))
        return "\n".join([
            first.replace(f"{self.whole.tokens} tokens", f"{int(self.lengths.sum())} tokens", 1),
            f"  batch       {self.sequences} sequences of up to {longest} tokens", rest[0], rest[-1],
        ])  # fmt: skip


def fragmentation(lengths: Sequence[int], page_size: int) -> tuple[int, float]:
    """Return the tokens that the last pages of sequences of these lengths leave empty, and their share of all pages.

    Mathematically: sum(ceil(n / P) P - n); below one page for each sequence whatever the lengths.

    Example:
        >>> fragmentation([100, 17, 64], 16)
        (27, 0.12980769230769232)
    """
    found = index_array(lengths, "lengths", 0, MOST_BYTES, CHECK)
    size = CHECK.integer(page_size, "page_size", 1, 1 << 31)
    held = int((-(-found // size)).sum()) * size
    empty = held - int(found.sum())
    return empty, empty / held if held else 0.0
