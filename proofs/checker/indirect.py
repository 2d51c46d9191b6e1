"""Decides certificates of runtime indices: tokens routed to experts, and page tables, at given data.

Everything is recounted from the statement's lists in time proportional to their length; there is no evidence.
"""

import numpy as np

from .base import limit_cells, require, tick

INDEX, SMALL = range(2**31), range(1, 2**31)
WIDE = range(2**46)


def array(values):
    limit_cells(4 * len(values))
    tick()
    return np.array(values, dtype=np.int64)


def equal(found, expected, fact):
    require(len(found) == len(expected), f"{fact} has a wrong length", got=len(found), expected=len(expected))
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        place = int(wrong[0])
        require(False, f"{fact} is wrong", at=place, got=int(found[place]), expected=int(expected[place]))


def routing(statement, _):
    """Entry p of "ids" is an expert below "experts"; of those from "first" to "last", "order" lists every p once, by
    expert and then by p, expert e from offsets[e] to offsets[e + 1] - 1; "padded_order" is the same with each expert's
    rows filled up to a multiple of "block" by len(ids), from padded_offsets[e]; "block_experts" has each block's."""
    ids, order, block = array(statement.ids), array(statement.order), statement.block
    first, last, experts = statement.first, statement.last, statement.experts
    limit_cells(4 * experts)
    require(first <= last < experts, "these are no experts of a rank", first=first, last=last)
    require(not len(ids) or int(ids.max()) < experts, "an id is no expert")
    own = (ids >= first) & (ids <= last)
    require(len(order) == int(own.sum()), "the order has a wrong length", got=len(order), expected=int(own.sum()))
    require(not len(order) or int(order.max()) < len(ids), "the order names no entry of the ids")
    require(own[order].all(), "the order has a row of another rank")
    keys = ids[order] * (len(ids) + 1) + order  # strictly increasing: no entry twice, and as many as there are
    fell = np.flatnonzero(keys[1:] <= keys[:-1])
    require(not len(fell), "the order is not by expert and then by entry", at=[int(place) + 1 for place in fell[:1]])
    counts = np.zeros(experts, dtype=np.int64)
    np.add.at(counts, ids[own], 1)
    padded = (counts + block - 1) // block * block
    limit_cells(4 * int(padded.sum()))
    starts, padded_starts = ([0, *np.cumsum(each).tolist()] for each in (counts, padded))
    equal(array(statement.offsets), np.array(starts), "the list of offsets")
    equal(array(statement.padded_offsets), np.array(padded_starts), "the list of padded offsets")
    filled = np.full(padded_starts[-1], len(ids), dtype=np.int64)
    for expert in np.flatnonzero(counts).tolist():
        tick()
        at = padded_starts[expert]
        filled[at : at + counts[expert]] = order[starts[expert] : starts[expert + 1]]
    equal(array(statement.padded_order), filled, "the padded order")
    equal(array(statement.block_experts), np.repeat(np.arange(experts), padded // block), "the list of blocks' experts")
    return f"{len(order)} of {len(ids)} rows sorted by expert, once each, in {len(filled) // block} blocks of {block}"


def paging(statement, _):
    """Token t, head h, element d is at byte table[t // P] stride + the place of (t % P, h, d) in a page of this layout,
    for t < "tokens", P = "page_size": inside the pool of "pages" pages, which do not overlap; two tokens have the same
    bytes if and only if they are at the same row of one page, and "sharing" entries of the table name one at most. Of
    several sequences s, token t is in entry indptr[s] + t // P of the table, the last page has "last_page_len"[s] of
    them, and "tokens" counts all."""
    table, size, stride = array(statement.table), statement.page_size, statement.stride
    pages, tokens = statement.pages, statement.tokens
    used, of = -(-tokens // size), ""
    if statement.indptr is not None:
        used, of = len(table), f" of {len(statement.indptr) - 1} sequences"
        require(tokens == sequences(statement, used), "these sequences have another number of tokens", got=tokens)
    require(len(table) == used, "the table has a wrong length", got=len(table), expected=used)
    require(not used or int(table.max()) < pages, "an entry of the table is no page", pages=pages)
    bytes_of_page = size * statement.heads * statement.head_dim * statement.element
    require(stride >= bytes_of_page, "pages overlap", stride=stride, bytes=bytes_of_page)
    require(stride % statement.element == 0, "an element is not aligned", stride=stride)
    most = int(np.unique(table, return_counts=True)[1].max(initial=0))
    require(most == statement.sharing, "one page has another number of entries", got=statement.sharing, expected=most)
    if most < 2:
        return f"{tokens} tokens{of} in {used} pages, distinct elements at distinct bytes"
    return f"{tokens} tokens{of} in {used} pages, at most {most} of them share a byte: no stores"


def sequences(statement, used):
    """The tokens of sequences whose pages are the parts of a table."""
    require(statement.last_page_len is not None, "the sequences have no last pages")
    starts, last = array(statement.indptr), array(statement.last_page_len)
    require(len(starts) == len(last) + 1, "the list of sequences has a wrong length", got=len(starts))
    require(starts[0] == 0 and starts[-1] == used, "the sequences do not have the pages of the table", pages=used)
    pages = np.diff(starts)
    require((pages >= 0).all(), "a sequence ends before it begins")
    own = last[pages > 0]
    require(((own >= 1) & (own <= statement.page_size)).all(), "a last page has no token, or more than a page")
    return int(((pages - 1) * statement.page_size)[pages > 0].sum() + own.sum())


ROUTING = {
    "ids": [INDEX], "experts": SMALL, "block": SMALL, "first": INDEX, "last": INDEX, "order": [INDEX],
    "offsets": [INDEX], "padded_offsets": [INDEX], "padded_order": [INDEX], "block_experts": [INDEX],
}  # fmt: skip
PAGING = {
    "table": [WIDE], "pages": WIDE, "page_size": SMALL, "heads": SMALL, "head_dim": SMALL, "element": range(1, 9),
    "layout": {"NHD", "HND"}, "stride": WIDE, "tokens": WIDE, "sharing": INDEX,
    "indptr?": [INDEX], "last_page_len?": [INDEX],
}  # fmt: skip
KINDS = {"routing": (routing, ROUTING, {}), "paging": (paging, PAGING, {})}
