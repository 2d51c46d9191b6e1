"""Which layouts come from morphisms: the tractable ones, the padded ones beyond them, and the rest with a reason.

Main definitions: ``Tractability``, ``is_tractable``, ``encode``.

Main statements: drop the modes of extent 1 and stride 0 and sort the rest by stride.
* The layout is |f| for a morphism f of Tuple or Nest, that is *tractable*, if and only if each stride is a multiple of
  stride times extent of the mode before it. Strides are products of codomain extents, so the condition is needed; the
  quotients, as gaps between the extents, give a codomain, so it suffices.
* The layout is |p| for a ``PaddedMorphism`` p if and only if each stride is greater than the largest sum of offsets
  of the modes before it, that is, if the sorted layout is strictly increasing.

Tractable excludes, in this order: empty layouts; negative strides; overlapping modes, such as ``(4,4):(1,1)``;
interleaved modes, such as ``(3,2):(2,3)``; and padded rows whose pitch is no multiple of the row, such as
``(6,2):(1,10)`` and ``(128,64):(72,1)``. The last kind is what ``PaddedMorphism`` adds.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv:2601.05972 (tractable layouts). The padded case is
not in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Literal, TypeAlias, get_args

from layoutalg.cute.inttuple import malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.nest_morphism import NestMorphism
from layoutalg.cute.pointed import SOURCE
from layoutalg.ground.errors import Diagnostic, RepresentabilityError

Kind: TypeAlias = Literal["tractable", "padded", "interleaved", "overlapping", "negative", "empty"]


@dataclass(frozen=True, slots=True)
class Tractability:
    """Whether a layout is tractable: yes with a morphism, or no with the modes that break it.

    Args:
        layout: The layout asked about.
        kind: "tractable"; "padded", a ``PaddedMorphism`` has this layout; "interleaved", sorted by stride it is not
            increasing; "overlapping", as before and the two modes named reach the same offset; "negative", a stride
            is below 0; "empty", an extent is 0.
        morphism: In standard form where the layout is tractable, else None.
        modes: The two modes that break it, as positions among the leaves, smaller stride first; the same position
            twice where one mode is enough; None where the layout is tractable.
        because: The broken condition with the numbers; empty where the layout is tractable.

    Raises: MalformedError: LA604.
    """

    layout: CuteLayout
    kind: Kind
    morphism: NestMorphism | None = None
    modes: tuple[int, int] | None = None
    because: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.layout, CuteLayout):
            raise malformed("layout", "must be a CuteLayout", self.layout, "LA604")
        if not isinstance(self.kind, str) or self.kind not in get_args(Kind):
            raise malformed("kind", f"must be one of {get_args(Kind)}", self.kind, "LA604")
        found = self.morphism
        fits = isinstance(found, NestMorphism) and found.domain == self.layout.shape
        if (not fits) if self.kind == "tractable" else (found is not None):
            raise malformed("morphism", f"must be that of {self.layout} exactly where it is tractable", found, "LA604")

    def __bool__(self) -> bool:
        return self.kind == "tractable"


def is_tractable(layout: CuteLayout) -> Tractability:
    """Return whether a layout comes from a morphism of Nest, with the morphism or the reason.

    Mathematically: with modes of extent 1 and stride 0 dropped and the rest sorted by stride, s_k d_k divides d_{k+1}.
    Excluded are padded rows whose pitch is no multiple of the row length; ``kind`` is then "padded" and
    ``PaddedMorphism.from_layout`` accepts the layout. See the module for the whole list.

    Args:
        layout: Any layout. Elements.

    Raises: MalformedError: LA604.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(is_tractable(CuteLayout((4, 2), (6, 1))).morphism)
        (4,2) --(2,0)--> (2,3,4)
        >>> answer = is_tractable(CuteLayout((128, 64), (72, 1)))
        >>> answer.kind, answer.modes, answer.because
        ('padded', (1, 0), 'mode 0, 128:72, has a stride that is no multiple of 64, the width of mode 1, 64:1')

    Source: arXiv:2601.05972, tractable layouts.
    """
    if not isinstance(layout, CuteLayout):
        raise malformed("layout", "must be a CuteLayout", layout, "LA604")
    flat = layout.flat
    for position, (extent, stride) in enumerate(flat):
        if extent == 0:
            return Tractability(layout, "empty", None, (position, position), f"mode {position} has extent 0")
        if stride < 0 and extent > 1:
            text = f"mode {position}, {extent}:{stride}, has a negative stride"
            return Tractability(layout, "negative", None, (position, position), text)
    order = moving_modes(layout)
    broken = next(
        ((a, b) for a, b in pairwise(order) if flat[b][1] % (flat[a][0] * flat[a][1])),
        None,
    )
    if broken is None:
        return Tractability(layout, "tractable", _chain_morphism(layout, order))
    return _reason(layout, order, broken)


def moving_modes(layout: CuteLayout) -> tuple[int, ...]:
    """Return the leaves with extent > 1 and stride other than 0, sorted by stride, then extent.

    Example:
        >>> moving_modes(CuteLayout((4, 2, 3, 1), (6, 1, 0, 7)))
        (1, 0)
    """
    flat = layout.flat
    moving = [position for position, (extent, stride) in enumerate(flat) if extent > 1 and stride != 0]
    return tuple(sorted(moving, key=lambda position: (flat[position][1], flat[position][0], position)))


def increasing_break(layout: CuteLayout, order: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return where the sorted layout stops increasing: the two modes and the reach of all modes before; or None.

    Example:
        >>> layout = CuteLayout((3, 2), (2, 3))
        >>> increasing_break(layout, moving_modes(layout))
        (0, 1, 4)
    """
    reach = 0
    before = -1
    for position in order:
        extent, stride = layout.flat[position]
        if stride <= reach:
            return before, position, reach
        reach += (extent - 1) * stride
        before = position
    return None


def _chain_morphism(layout: CuteLayout, order: tuple[int, ...]) -> NestMorphism:
    codomain: list[int] = []
    images: list[int | None] = [None] * len(layout.flat)
    current = 1
    for position in order:
        extent, stride = layout.flat[position]
        if stride != current:
            codomain.append(stride // current)
        images[position] = len(codomain)
        codomain.append(extent)
        current = extent * stride
    return NestMorphism(layout.shape, tuple(codomain), tuple(images))


def _reason(layout: CuteLayout, order: tuple[int, ...], broken: tuple[int, int]) -> Tractability:
    flat = layout.flat

    def name(position: int) -> str:
        return f"mode {position}, {flat[position][0]}:{flat[position][1]}"

    stop = increasing_break(layout, order)
    if stop is None:
        fast, slow = broken
        width = flat[fast][0] * flat[fast][1]
        text = f"{name(slow)}, has a stride that is no multiple of {width}, the width of {name(fast)}"
        return Tractability(layout, "padded", None, broken, text)
    fast, slow, reach = stop
    for a in order:
        (s, d), (t, e) = flat[a], flat[slow]
        common = gcd(d, e)
        if a != slow and e // common < s and d // common < t:
            text = f"{name(a)}, and {name(slow)}, both reach the offset {d * e // common}"
            return Tractability(layout, "overlapping", None, (a, slow), text)
    text = f"{name(slow)}, starts inside the modes before it: its stride is not above their reach {reach}"
    return Tractability(layout, "interleaved", None, (fast, slow), text)


def encode(layout: CuteLayout) -> NestMorphism:
    """Return the morphism in standard form whose layout is ``layout``; strides of modes of extent 1 become 0.

    Raises: RepresentabilityError: LA603.

    Example:
        >>> print(encode(CuteLayout((4, (2, 2)), (2, (16, 1)))))
        (4,(2,2)) --(1,3,0)--> (2,4,2,2)

    Source: arXiv:2601.05972, encoding of tractable layouts.
    """
    answer = is_tractable(layout)
    if answer.morphism is None:
        padded = "; PaddedMorphism.from_layout represents it" if answer.kind == "padded" else ""
        raise RepresentabilityError(
            Diagnostic(
                code="LA603",
                what=f"the layout is not tractable ({answer.kind})",
                where=(str(layout),),
                because=answer.because + padded,
                witness=None if answer.modes is None else {"modes": answer.modes},
                source=SOURCE,
            )
        )
    return answer.morphism
