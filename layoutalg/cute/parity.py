"""Where CuTe C++ and the pure-Python pycute answer by another convention than the exact contract.

Main definitions: ``composition_as``, ``complement_as``, ``cosize_as``.

Main statements: the conventions reproduced here are the deliberate ones.

* Past its domain a layout continues in its last mode (both); the strict contract refuses to leave the domain.
* A by-mode tiler shorter than the layout: C++ drops the modes without a tiler, pycute keeps them; strict refuses.
* A tiler that does not divide: C++ rounds the rest up mode by mode, so the result is larger than the layout and may
  have offsets outside it; pycute refuses where its divisibility check notices; strict always refuses.
* The cosize of a negative stride: C++ takes its magnitude, pycute evaluates the last coordinate.

Implementation notes: both peers compose mode by mode of the inner layout and never check the function. Their answers
may therefore differ from the composition as a function, and are given here for those who port code or compare; nothing
else in the library uses them.

References: CuTe C++ of NVIDIA CUTLASS (``composition``, ``complement``); ``python/pycute`` of CUTLASS.
"""

from __future__ import annotations

from layoutalg.cute.algebra import coalesce, from_flat, make_layout
from layoutalg.cute.complement import complement, divisible_chain
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.composition import composition
from layoutalg.cute.conventions import Parity, check_parity
from layoutalg.cute.inttuple import IntTuple, product, shape_text, validate
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import plain
from layoutalg.cute.shapes import ceil_div
from layoutalg.cute.tilers import Tiler, as_layout, by_mode, read_tiler, tiler_text
from layoutalg.ground.digits import Flat, merge
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError


def composition_as(outer: CuteLayout, inner: Tiler, parity: Parity = "strict") -> CuteLayout:
    """Return the composition by the convention of a peer.

    Mathematically: ``"strict"`` is ``composition``. The two others factor each mode of ``inner`` through the modes of
    ``outer`` on its own, continue the last mode of ``outer`` without end, and do not check the result as a function.

    Args:
        outer: A layout.
        inner: A tiler. ``"cute_cpp"`` drops the modes of ``outer`` that a tuple leaves out, ``"pycute"`` keeps them.
        parity: Whose convention.

    Returns:
        What the peer answers.

    Raises: MalformedError: LA141, LA144. RepresentabilityError: LA145.

    Example:
        >>> layout = CuteLayout((8, 4, 2), (1, 8, 32))
        >>> print(composition_as(layout, (4,), "cute_cpp"))
        (4):(1)
        >>> print(composition_as(layout, (4,), "pycute"))
        (4,4,2):(1,8,32)

    Source: CuTe ``composition``; pycute ``composition``.
    """
    if check_parity(parity) == "strict":
        return composition(plain(outer, "composition_as", "outer"), inner)
    where = f"composition({plain(outer, 'composition_as', 'outer')}, {tiler_text(inner)})"
    return _compose(outer, read_tiler(inner, where), parity, where)


def _compose(outer: CuteLayout, inner: Tiler, parity: Parity, where: str) -> CuteLayout:
    if inner is None:
        return outer
    if isinstance(inner, tuple):
        by_mode(outer, inner, where)
        modes = [_compose(outer[position], entry, parity, where) for position, entry in enumerate(inner)]
        kept = [] if parity == "cute_cpp" else [outer[position] for position in range(len(inner), outer.rank)]
        return make_layout(*modes, *kept)
    layout = as_layout(inner)
    if isinstance(layout.shape, tuple):
        return make_layout(*[_compose(outer, mode, parity, where) for mode in layout])
    (extent, step) = layout.flat[0]
    if step == 0:
        return CuteLayout(extent, 0)
    return from_flat(_thread(outer.flat, extent, step, parity, where))


def _thread(outer: Flat, extent: int, step: int, parity: Parity, where: str) -> Flat:
    """Return the digits a peer gives the mode extent:step: one pass over the modes of ``outer``, fastest first."""
    if parity == "cute_cpp" and outer and outer[-1][0] == 1:
        outer = (*outer[:-1], (2, outer[-1][1]))  # C++ keeps a last mode of extent 1, the one that continues
    merged = merge(outer) or ((1, 0),)
    found: list[tuple[int, int]] = []
    left = extent
    for width, stride in merged[:-1]:
        magnitude = abs(step) if parity == "cute_cpp" else step
        if step == 0 or left == 0:
            zero = "stride" if step == 0 else "extent"
            raise _peer_refuses(parity, where, f"its {zero} is 0 at the mode {width}:{stride}, and it divides by that")
        if step % width and (width % step if parity == "pycute" else magnitude >= width):
            raise _peer_refuses(parity, where, f"stride {step} and extent {width} do not divide one another")
        if parity == "pycute":
            taken = min(max(1, width // step), left)
            following = -(-step // width)
        else:
            taken = min(-(-width // magnitude), left)
            following = -(-magnitude // width) * (1 if step > 0 else -1)
        if taken != 1:
            if parity == "cute_cpp" and left % taken:
                raise _peer_refuses(parity, where, f"extent {left} is not a multiple of {taken}")
            found.append((taken, step * stride))
            left //= taken
        step = following
    if left != 1 or not found:
        found.append((left, step * merged[-1][1]))
    return tuple(found)


def _peer_refuses(parity: Parity, where: str, because: str) -> RepresentabilityError:
    name = "CuTe C++" if parity == "cute_cpp" else "pycute"
    return RepresentabilityError(
        Diagnostic(code="LA145", what=f"{name} refuses this composition", where=(where,), because=because)
    )


def complement_as(layout: CuteLayout, shape: IntTuple, parity: Parity = "strict") -> CuteLayout:
    """Return the complement that a divide by the convention of a peer uses.

    Mathematically: strict and pycute bound it by the size of ``shape``; C++ rounds ``shape`` up mode by mode.

    Args:
        layout: As for ``complement``.
        shape: The shape to cover.
        parity: Whose convention.

    Raises: AdmissibilityError: LA131 to LA134.

    Example:
        >>> print(complement_as(CuteLayout(4), (6, 4), "cute_cpp"), complement_as(CuteLayout(4), (6, 4), "pycute"))
        8:4 6:4

    Source: CuTe ``complement``; pycute ``complement``.
    """
    where = f"complement({plain(layout, 'complement_as')}, {shape_text(validate(shape, 'shape'))})"
    if check_parity(parity) == "cute_cpp":
        end = 1
        for extent, stride, _ in divisible_chain(layout, where):
            end = extent * stride
        return complement(layout, max(1, product(ceil_div(shape, end)) * end))
    return complement(layout, max(1, CuteLayout(shape).size))


def cosize_as(layout: CuteLayout | ComposedLayout, parity: Parity = "strict") -> int:
    """Return the cosize by the convention of a peer.

    Mathematically: strict and C++ give 1 + the greatest offset - the least; pycute 1 + the offset of the last
    coordinate, which is another number where a stride is negative. Of a swizzled layout C++ takes the layout under the
    swizzles; pycute has none and follows strict.

    Raises: MalformedError: LA144, LA146.

    Example:
        >>> [cosize_as(CuteLayout(4, -1), parity) for parity in ("strict", "cute_cpp", "pycute")]
        [4, 4, -2]

    Source: CuTe ``cosize``; pycute ``Layout.cosize``.
    """
    if isinstance(layout, ComposedLayout):
        return layout.base.cosize if check_parity(parity) == "cute_cpp" else layout.cosize
    plain(layout, "cosize_as")
    if check_parity(parity) != "pycute":
        return layout.cosize
    if layout.size == 0:
        raise MalformedError(
            Diagnostic(
                code="LA146",
                what="the layout is empty",
                where=(f"cosize({layout})",),
                because="pycute evaluates the last coordinate, and an empty layout has none",
            )
        )
    return layout(layout.size - 1) + 1


def padded_shape(layout: CuteLayout) -> IntTuple:
    """Return the shape that C++ passes to the complement of a divide: that of the coalesced layout.

    Example:
        >>> padded_shape(CuteLayout((2, 3, 4), (1, 2, 10)))
        (6, 4)
    """
    return coalesce(layout).shape
