"""Choices for routed and paged data: how to gather, whether to permute first, how large pages are."""

from __future__ import annotations

from layoutalg.synth.indirect.choice import (
    gather_choice,
    page_choice,
    page_pieces,
    paged_choice,
    routed_choice,
    row_choice,
    row_ways,
    warp_sectors,
)

__all__ = [
    "gather_choice", "page_choice", "page_pieces", "paged_choice", "routed_choice", "row_choice", "row_ways",
    "warp_sectors",
]  # fmt: skip
