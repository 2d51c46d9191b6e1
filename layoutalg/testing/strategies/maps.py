"""Strategies for maps of named axes: over F2, over the integers, in pieces, and between nested tuples."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from layoutalg.cute import Morphism
from layoutalg.f2 import LinearLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.testing.strategies.arguments import checked, refused, whole
from layoutalg.testing.strategies.strided import RANKS, pitches

_MODULI = (0, 0, 2, 4, 5, 8, 16)


@checked(max_bits=(0, 20))
def linear_layouts(
    *,
    max_bits: int = 5,
    invertible: bool = False,
    inputs: Mapping[str, int] | None = None,
    outputs: Mapping[str, int] | None = None,
    affine: bool = True,
) -> st.SearchStrategy[LinearLayout]:
    """Maps over F2 between named axes of powers of two.

    Args:
        max_bits: Most bits per axis that is not given.
        invertible: Only invertible maps: a permutation of the bits, sheared.
        inputs: Axes of the domain, name -> extent, fastest first; None for one or two of any extent.
        outputs: Likewise for the codomain.
        affine: Whether the image of 0 may be nonzero.
    """
    ins, outs = _bits(inputs, "inputs"), _bits(outputs, "outputs")
    if invertible:
        if ins is not None and outs is not None and sum(ins.values()) != sum(outs.values()):
            raise refused(f"inputs={inputs} and outputs={outputs} must have equal sizes with invertible=True")
        return _invertible(max_bits, ins, outs, affine)
    return _linear_layouts(max_bits, ins, outs, affine)


def _bits(axes: Mapping[str, int] | None, name: str) -> dict[str, int] | None:
    """Return the number of bits of each axis, or refuse a bad extent."""
    if axes is None:
        return None
    if not isinstance(axes, Mapping) or not axes:
        raise refused(f"{name}={axes!r} must map names to extents")
    for axis, extent in axes.items():
        if not isinstance(axis, str) or not axis.isidentifier():
            raise refused(f"{name}: {axis!r} must be a name")
        if whole(extent, f"{name}[{axis!r}]").bit_count() != 1:
            raise refused(f"{name}[{axis!r}]={extent} must be a power of two")
    return {axis: extent.bit_length() - 1 for axis, extent in axes.items()}


@st.composite
def _linear_layouts(
    draw: st.DrawFn, max_bits: int, ins: dict[str, int] | None, outs: dict[str, int] | None, affine: bool
) -> LinearLayout:
    if outs is None:
        drawn = draw(st.lists(st.integers(0, max_bits), min_size=1, max_size=2))
        outs = {f"out{index}": bits for index, bits in enumerate(drawn)}
    image = st.integers(0, (1 << sum(outs.values())) - 1)
    if ins is None:
        axes = draw(st.lists(st.lists(image, max_size=max_bits), min_size=1, max_size=2))
        ins, columns = {f"in{index}": len(axis) for index, axis in enumerate(axes)}, [c for axis in axes for c in axis]
    else:
        columns = [draw(image) for _ in range(sum(ins.values()))]
    return LinearLayout(tuple(ins.items()), tuple(outs.items()), tuple(columns), draw(image) if affine else 0)


def sheared(draw: st.DrawFn, bits: int) -> list[int]:
    """The columns of an invertible matrix."""
    columns = [1 << image for image in draw(st.permutations(range(bits)))]
    if bits > 1:
        for source, target in draw(st.lists(st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1)), max_size=8)):
            if source != target:
                columns[target] ^= columns[source]
    return columns


@st.composite
def _invertible(
    draw: st.DrawFn, max_bits: int, ins: dict[str, int] | None, outs: dict[str, int] | None, affine: bool
) -> LinearLayout:
    given = ins or outs
    bits = (
        sum(draw(st.lists(st.integers(0, max_bits), min_size=1, max_size=2))) if given is None else sum(given.values())
    )
    ins, outs = ins or {"in0": bits}, outs or {"out0": bits}
    offset = draw(st.integers(0, (1 << bits) - 1)) if affine else 0
    return LinearLayout(tuple(ins.items()), tuple(outs.items()), tuple(sheared(draw, bits)), offset)


@checked()
@st.composite
def integer_layouts(
    draw: st.DrawFn,
    *,
    max_axes: int = 3,
    max_extent: int = 6,
    max_outputs: int = 2,
    moduli: bool = True,
    bijective: bool = False,
) -> IntegerLayout:
    """Affine maps on boxes, over Z or modulo a small number per output.

    Args:
        max_axes: Most axes of the box.
        max_extent: Largest extent.
        max_outputs: Most outputs.
        moduli: Whether outputs may be residues.
        bijective: Only maps of one output whose values are 0, 1, ..., size - 1, each once; some axes run backwards.
    """
    if bijective:
        return draw(_integer_bijections(max_axes, max_extent))
    modulus = st.sampled_from(_MODULI if moduli else (0,))
    outputs = draw(st.lists(st.tuples(modulus, st.integers(-3, 5)), min_size=1, max_size=max_outputs))
    # always draw max_outputs strides, so that dropping an output leaves later draws unchanged
    axis = st.tuples(st.integers(1, max_extent), *[st.integers(-4, 12) for _ in range(max_outputs)])
    axes = draw(st.lists(axis, min_size=1, max_size=max_axes))
    return IntegerLayout(
        tuple([(f"i{place}", extent) for place, (extent, *_) in enumerate(axes)]),
        tuple([(f"o{place}", modulus) for place, (modulus, _) in enumerate(outputs)]),
        tuple([tuple([axis[1 + place] for axis in axes]) for place in range(len(outputs))]),
        tuple([offset for _, offset in outputs]),
    )


@st.composite
def _integer_bijections(draw: st.DrawFn, max_axes: int, max_extent: int) -> IntegerLayout:
    axis = st.tuples(st.integers(1, max_extent), st.booleans(), RANKS)
    axes = draw(st.lists(axis, min_size=1, max_size=max_axes))
    extents = [extent for extent, _, _ in axes]
    strides = pitches(extents, [rank for _, _, rank in axes], [0] * len(axes))
    steps = [-stride if back else stride for stride, (_, back, _) in zip(strides, axes, strict=True)]
    offset = -sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True) if step < 0)
    return IntegerLayout.from_strides({f"i{place}": extent for place, extent in enumerate(extents)}, steps, offset)


@checked()
@st.composite
def piecewise_layouts(
    draw: st.DrawFn, *, max_axes: int = 3, max_extent: int = 5, max_outputs: int = 2, partial: bool = False
) -> PiecewiseLayout:
    """Affine forms, floors and residues on boxes, in one or two pieces.

    Args:
        max_axes: Most axes of the box.
        max_extent: Largest extent.
        max_outputs: Most outputs.
        partial: Whether one of two pieces may be missing, leaving the map undefined on part of the box.
    """
    form = st.sampled_from(_FORMS)
    forms = draw(st.lists(st.tuples(form, form, st.booleans()), min_size=1, max_size=max_outputs))
    # few draws per axis: the shrinker drops at most five draws at once
    axis = st.tuples(st.integers(1, max_extent), *[st.integers(-2, 8) for _ in range(max_outputs)])
    axes = draw(st.lists(axis, min_size=1, max_size=max_axes))
    names = [f"i{place}" for place in range(len(axes))]
    cut = draw(st.integers(0, max_extent - 1)) % axes[-1][0]
    kept = draw(st.sampled_from(((0, 1), (0,), (1,)))) if partial and cut else (0, 1)

    def values(piece: int) -> str:
        found = []
        for output, (*form, turned) in enumerate(forms):
            steps = [steps[output] for _, *steps in axes]
            steps = steps[::-1] if turned and piece else steps
            terms = [f"{step}*{name}" for step, name in zip(steps, names, strict=True)]
            found.append(form[piece].format(t=" + ".join(terms)))
        return ", ".join(found)

    box = " and ".join([f"0 <= {name} < {extent}" for name, (extent, *_) in zip(names, axes, strict=True)])
    guards = [(1, f"{names[-1]} >= {cut}"), (0, f"{names[-1]} < {cut}")] if cut else [(0, "0 = 0")]
    point = ", ".join(names)
    pieces = [f"[{point}] -> [{values(piece)}] : {box} and {guard}" for piece, guard in guards if piece in kept]
    return PiecewiseLayout(f"{{ {'; '.join(pieces)} }}")


_FORMS = ("{t}", "3 + {t}", "({t}) mod 7", "floor(({t} + 1)/2)")


@checked()
@st.composite
def morphisms(draw: st.DrawFn, *, max_modes: int = 3, max_extent: int = 5, bijective: bool = False) -> Morphism:
    """Morphisms of flat tuples, possibly padded: some modes of the codomain in any order, others broadcast.

    Args:
        max_modes: Most modes of the codomain.
        max_extent: Largest extent.
        bijective: Only permutations of all modes, without padding.
    """
    gap = st.just(0) if bijective else st.integers(0, 2)
    kind = st.tuples(st.integers(1, max_extent), gap, RANKS, st.just(True) if bijective else st.booleans())
    modes = draw(st.lists(kind, min_size=1, max_size=max_modes))
    codomain = [extent for extent, _, _, _ in modes]
    order = sorted(range(len(modes)), key=lambda place: modes[place][2])
    kept = [place for place in order if modes[place][3]]
    parts: list[tuple[int, int | None]] = [(codomain[place], place) for place in kept]
    for extent in [] if bijective else draw(st.lists(st.integers(1, 4), max_size=1)):
        parts.insert(draw(st.integers(0, len(parts))), (extent, None))
    pitch, reach = [], 0
    for extent, pad, _, _ in modes:
        pitch.append(reach + 1 + pad)
        reach += (extent - 1) * pitch[-1]
    return Morphism(
        tuple([extent for extent, _ in parts]),
        tuple(codomain),
        tuple([place for _, place in parts]),
        tuple(pitch) if not bijective and draw(st.booleans()) else None,
    )
