"""``la.routing`` and ``la.paged``: runtime indices with their lists, proofs and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

from layoutalg.codegen.kernels.indirect import IndirectKernel
from layoutalg.codegen.kernels.inspector import routing_kernels
from layoutalg.codegen.kernels.routed import SUMS, permute_kernel, unpermute_kernel
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.indirect.pages import CHECK, Paged, PagedBatch
from layoutalg.proofs.indirect.routing import Routing
from layoutalg.proofs.indirect.values import index_array


@dataclass(frozen=True, eq=False)
class RoutedRows(Routing):
    """A routing with its kernels."""

    def kernels(
        self, columns: int | None = None, dtype: object = "bf16", *, index_dtype: object = "s32", target: str = "sm_90a"
    ) -> dict[str, IndirectKernel]:
        """Return the kernels for this many ids: ``count`` (beyond 1,024) and ``sort``; with columns also the rows'.

        ``permute`` places tokens by ``inverse``, ``unpermute`` adds their rows up with weights; both on the rows of
        ``order``. Texts do not depend on the ids, those of
        rows only on whether tokens are few.

        Args:
            columns: Elements of a row.
            dtype: Type of the elements; there is ``unpermute`` for ``"bf16"``, ``"f16"`` and ``"f32"``.
            index_dtype: Type of the ids, ``"s32"`` or ``"s64"``.
            target: The target.

        Raises: MalformedError: LA945, LA340. InfeasibleError: LA948.
        """
        count = self.topk_ids.size
        made = routing_kernels(
            count, self.experts, self.block, local=self.local, index_dtype=index_dtype, target=target
        )
        found = dict(zip(("sort",) if len(made) == 1 else ("count", "sort"), made, strict=True))
        if columns is None:
            return found
        kind, k = element_type(dtype), max(1, self.k)
        found["permute"] = permute_kernel(self.tokens, k, count, columns * kind.bits // 8, target=target)
        if kind.name in SUMS:
            found["unpermute"] = unpermute_kernel(self.tokens, k, count, columns, kind.name, target)
        return found


def routing(topk_ids: object, experts: int, block: int = 64, local: tuple[int, int] | None = None) -> RoutedRows:
    """Return where every row goes when tokens are routed to experts, as ``moe_align_block_size`` means it.

    Args:
        topk_ids: Experts of each token: integers [tokens, k], or [tokens] for k = 1. Each must be in [0, experts); -1
            is refused too, as ``local`` says which rows to leave out.
        experts: Number of experts.
        block: Rows of a tile, to which each expert's rows are padded.
        local: (first, last): only these experts, both included, are on this rank. Rows of others are left out: they
            are not in ``order``, their count is 0 and their ``inverse`` -1. Experts keep their numbers; the weights of
            expert e of this rank are at e - first.

    Raises: MalformedError: LA938, with the first offending index.

    Example:
        >>> found = routing([[2, 0], [0, 2], [2, 1]], experts=4, block=2)
        >>> found.padded_order.tolist(), found.block_experts.tolist()
        ([1, 2, 5, 6, 0, 3, 4, 6], [0, 1, 2, 2])
        >>> list(found.kernels(columns=128)), bool(found.certificate.check())
        (['sort', 'permute', 'unpermute'], True)
        >>> routing([[2, 0], [0, 4]], experts=4)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA938 these tokens cannot be routed
          in     topk_ids[1, 1]
          since  must be in [0, 4), not 4
    """
    ids: Any = topk_ids
    return RoutedRows(ids, experts, block, local)


@overload
def paged(
    page_table: object, page_size: int, kv_heads: int, head_dim: int, element_bytes: int, kv_layout: str = ...,
    seq_len: int | None = ..., pages: int | None = ..., page_stride: int | None = ...,
) -> Paged: ...  # fmt: skip


@overload
def paged(
    page_table: object, page_size: int, kv_heads: int, head_dim: int, element_bytes: int, kv_layout: str = ...,
    seq_len: None = ..., pages: int | None = ..., page_stride: int | None = ..., *, indptr: object,
    last_page_len: object,
) -> PagedBatch: ...  # fmt: skip


def paged(
    page_table: object,
    page_size: int,
    kv_heads: int,
    head_dim: int,
    element_bytes: int,
    kv_layout: str = "NHD",
    seq_len: int | None = None,
    pages: int | None = None,
    page_stride: int | None = None,
    *,
    indptr: object = None,
    last_page_len: object = None,
) -> Paged | PagedBatch:
    """Return a sequence in a paged cache, or a batch of them: addresses, runs, boxes, and who may write.

    Args:
        page_table: Pages of the sequence, in order; entries behind its last page are not looked at. Of a batch, those
            of all sequences, one behind the other.
        page_size: Tokens of a page.
        kv_heads: Heads.
        head_dim: Elements of a head.
        element_bytes: Bytes of an element: 1, 2, 4 or 8.
        kv_layout: ``"NHD"``: a page is [page_size, kv_heads, head_dim]; ``"HND"``: [kv_heads, page_size, head_dim].
        seq_len: Tokens of the sequence; by default those of all its pages. Not of a batch.
        pages: Pages of the pool; by default up to the highest page of the table.
        page_stride: **Bytes** from page to page; by default those of a page, more if layers or K and V alternate.
        indptr: Of a batch: where the pages of each sequence begin in the table, and the end, as FlashInfer's
            ``kv_indptr``.
        last_page_len: Of a batch: tokens in the last page of each sequence, as ``kv_last_page_len``.

    Raises: MalformedError: LA940, LA869, with the first offending entry.

    Example:
        >>> cache = paged([4, 5, 2], 16, 8, 128, 2, "HND", seq_len=40, pages=8)
        >>> cache.address(17, 3, 5), cache.page_runs, cache.runs(head=1)
        (176394, [(4, 2), (2, 1)], [(135168, 4096), (167936, 4096), (69632, 2048)])
        >>> paged([4, 9], 16, 8, 128, 2, pages=8)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA940 this is not a paged cache
          in     page_table[1]
          since  must be in [0, 8), not 9
        >>> batch = paged([4, 5, 2], 16, 8, 128, 2, indptr=[0, 2, 3], last_page_len=[8, 16])
        >>> batch.lengths.tolist(), batch.page_runs, batch.kernel().blocks
        ([24, 16], [(0, 4, 2), (1, 2, 1)], 64)
    """
    table: Any = page_table
    geometry = (page_size, kv_heads, head_dim, element_bytes, kv_layout)
    if indptr is None and last_page_len is None:
        return Paged(table, *geometry, seq_len, pages, page_stride)
    if indptr is None or last_page_len is None:
        raise CHECK.malformed("indptr", "must be given with last_page_len: both are of a batch", indptr)
    if seq_len is not None:
        raise CHECK.malformed("seq_len", "must be left out: indptr and last_page_len give the lengths", seq_len)
    entries = index_array(table, "page_table", -(1 << 62), 1 << 62, CHECK)
    starts = index_array(indptr, "indptr", 0, len(entries) + 1, CHECK)
    whole = Paged(entries[: int(starts.max(initial=0))], *geometry, None, pages, page_stride)
    last: Any = last_page_len
    return PagedBatch(whole, starts, last)
