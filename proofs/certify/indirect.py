"""Certificates of runtime indices at given data: tokens routed to experts, page tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved

if TYPE_CHECKING:
    from layoutalg.proofs.indirect.pages import Paged, PagedBatch
    from layoutalg.proofs.indirect.routing import Routing


def routing(routed: Routing) -> Certificate:
    """Return the certificate that every row of this rank is sorted once, stably, and padded to blocks.

    Raises: BudgetError: LA428: too many rows to check.

    Example:
        >>> from layoutalg.proofs.indirect import Routing
        >>> print(routing(Routing([[2, 0], [0, 2]], 4, 2)).check().certificate["claim"])
        4 of 4 rows sorted by expert, once each, in 2 blocks of 2
    """
    first, last = routed.own
    names = ("order", "offsets", "padded_offsets", "padded_order", "block_experts")
    lists = {name: getattr(routed, name).tolist() for name in names}
    statement = {
        "ids": routed.topk_ids.reshape(-1).tolist(), "experts": routed.experts, "block": routed.block,
        "first": first, "last": last, **lists,
    }  # fmt: skip
    return proved("routing", statement, [{}], "routing")


def paging(paged: Paged, batch: PagedBatch | None = None) -> Certificate:
    """Return the certificate of the bytes of a paged sequence: distinct, or how many entries share a page.

    Args:
        paged: The sequence.
        batch: The sequences that its pages belong to, if they are several.

    Raises: BudgetError: LA428: too many pages to check.

    Example:
        >>> from layoutalg.proofs.indirect import Paged
        >>> print(paging(Paged([3, 1, 3], 16, 1, 64, 2)).check().certificate["claim"])
        48 tokens in 3 pages, at most 2 of them share a byte: no stores
    """
    statement = {
        "table": paged.page_table.tolist(), "pages": paged.pages, "page_size": paged.page_size,
        "heads": paged.kv_heads, "head_dim": paged.head_dim, "element": paged.element_bytes,
        "layout": paged.kv_layout, "stride": paged.page_stride, "tokens": paged.tokens,
        "sharing": paged.table.sharing,
    }  # fmt: skip
    if batch is not None:
        lists = {"indptr": batch.indptr.tolist(), "last_page_len": batch.last_page_len.tolist()}
        statement |= {"tokens": int(batch.lengths.sum()), **lists}
    return proved("paging", statement, [{}], "paged cache")
