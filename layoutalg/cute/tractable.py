"""Decide whether a layout comes from a morphism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from layoutalg.cute.chain import Kind, examine
from layoutalg.cute.inttuple import malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.morphism import Morphism


@dataclass(frozen=True, slots=True)
class Tractability:
    """Whether a layout is tractable: yes with the morphism, or no with the modes that break it.

    Args:
        layout: The layout.
        kind: "tractable"; "padded", a morphism with a pitch has this layout; "interleaved", sorted by stride it is not
            increasing; "overlapping", in addition two modes reach the same offset; "negative", a stride is below 0;
            "empty", an extent is 0.
        morphism: The morphism in standard form if tractable, otherwise None.
        modes: The two modes that break it, as leaf positions, smaller stride first (the same position twice if one mode
            is enough); None if tractable.
        because: The broken condition with its numbers; empty if tractable.

    Raises: MalformedError: LA604.
    """

    layout: CuteLayout
    kind: Kind
    morphism: Morphism | None = None
    modes: tuple[int, int] | None = None
    because: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.layout, CuteLayout):
            raise malformed("layout", "must be a CuteLayout", self.layout, "LA604")
        if not isinstance(self.kind, str) or self.kind not in get_args(Kind):
            raise malformed("kind", f"must be one of {get_args(Kind)}", self.kind, "LA604")
        found = self.morphism
        fits = isinstance(found, Morphism) and found.domain == self.layout.shape
        if (not fits) if self.kind == "tractable" else (found is not None):
            raise malformed("morphism", f"must be that of {self.layout}, or None unless tractable", found, "LA604")

    def __bool__(self) -> bool:
        return self.kind == "tractable"


def is_tractable(layout: CuteLayout) -> Tractability:
    """Return whether a layout comes from a morphism without pitch, with the morphism or the reason.

    Mathematically: with modes of extent 1 and stride 0 dropped and the rest sorted by stride, s_k d_k divides d_{k+1}.

    Args:
        layout: Any layout. Elements.

    Raises: MalformedError: LA604.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(is_tractable(CuteLayout((4, 2), (6, 1))).morphism)
        (4,2) --(2,0)--> (2,3,4)
        >>> answer = is_tractable(CuteLayout((128, 64), (72, 1)))
        >>> answer.kind, answer.modes, answer.because
        ('padded', (1, 0), 'mode 0 (128:72) has a stride that is not a multiple of 64, the width of mode 1 (64:1)')

    Source: arXiv:2601.05972, tractable layouts.
    """
    found = examine(layout)
    morphism = Morphism.from_layout(layout) if found.kind == "tractable" else None
    return Tractability(layout, found.kind, morphism, found.modes, found.because)
