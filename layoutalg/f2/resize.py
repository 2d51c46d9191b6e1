"""Sublayouts, and resizing of linear layouts.

``resize_in`` restricts the function, ``resize_out`` changes the codomain but no value. ``mask_out`` and ``zero_out``
change values: the former takes coordinates modulo the new size, the latter clears whole components of basis vectors.
Sizes are powers of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from layoutalg.f2.axes import (
    argument_check,
    bad_argument,
    field,
    flag,
    gather,
    insert,
    log2,
    place,
    resized,
    selected,
    unpack,
)
from layoutalg.f2.layout import LinearLayout, columns_of, linear, mapped, recolumned, restricted, trusted
from layoutalg.f2.reshape import direct_sum, identity_1d, transpose_outs
from layoutalg.ground.check import refuse


def sublayout(layout: LinearLayout, ins: str | Iterable[str], outs: str | Iterable[str]) -> LinearLayout:
    """Return the layout with all other input axes at 0 and all other output axes dropped.

    Args:
        ins: Input axes to keep; they keep their order.
        outs: Output axes to keep; they keep their order and size.

    Example:
        >>> str(sublayout(LinearLayout.identity({"row": 2, "col": 2}), ("row", "col"), "col"))
        'F2[row=(0), col=(1) -> col:2]'
    """
    linear(layout, "layout")
    return restricted(layout, selected(layout.in_axes, ins, "ins"), selected(layout.out_axes, outs, "outs"))


def sublayout_is_zero(layout: LinearLayout, ins: str | Iterable[str], outs: str | Iterable[str]) -> bool:
    """Whether the sublayout is 0 everywhere, affine part included. See ``sublayout``."""
    part = sublayout(layout, ins, outs)
    return not part.constant and not any(part.columns)


def resize_in(layout: LinearLayout, name: str, size: int) -> LinearLayout:
    """Restrict one input axis to ``[0, size)``, at most its present size.

    Example:
        >>> str(resize_in(LinearLayout.identity({"row": 4}), "row", 2))
        'F2[row=(1) -> row:4]'
    """
    low, bits = place(linear(layout, "layout").in_axes, name, "name")
    count = log2(size, "size")
    if count > bits:
        because = f"input axis {name!r} has size {1 << bits}, less than {1 << count}"
        witness = {"axis": name, "size": 1 << bits, "new_size": 1 << count}
        raise refuse("LA252", "the layout is not defined on the larger axis", because, witness, layout)
    return recolumned(layout, name, layout.columns[low : low + count])


def broadcast_in(layout: LinearLayout, name: str, size: int) -> LinearLayout:
    """Enlarge one input axis by bits that do not affect the value: ``x -> layout(x mod old size)``.

    Example:
        >>> str(broadcast_in(LinearLayout.identity({"row": 2}), "row", 4))
        'F2[row=(1)(0) -> row:2]'
    """
    low, bits = place(linear(layout, "layout").in_axes, name, "name")
    count = log2(size, "size")
    if count < bits:
        raise bad_argument("size", f"must be at least {1 << bits}", 1 << count)
    return recolumned(layout, name, layout.columns[low : low + bits] + (0,) * (count - bits))


def resize_out(layout: LinearLayout, name: str, size: int) -> LinearLayout:
    """Change the size of one output axis; all values must be below the new size.

    Example:
        >>> resize_out(LinearLayout.from_bases({"i": [(1,)]}, {"o": 8}), "o", 2).out_dims
        {'o': 2}
    """
    low, bits = place(linear(layout, "layout").out_axes, name, "name")
    count = log2(size, "size")
    if count < bits:
        for index, value in enumerate((layout.constant, *layout.columns)):
            if field(value, (low, bits)) >> count:
                at = 0 if index == 0 else 1 << index - 1
                coordinate = field(layout.at(at), (low, bits))
                because = f"output axis {name!r} takes the value {coordinate}, which is not below {1 << count}"
                witness = {"input": unpack(at, layout.in_axes), "value": coordinate, "new_size": 1 << count}
                what = "a coordinate of the layout does not fit the smaller axis"
                raise refuse("LA253", what, because, witness, layout)
        return mask_out(layout, name, size)
    outputs = resized(layout.out_axes, name, count)
    return mapped(layout, outputs, lambda value: insert(value, low + bits, count - bits))


def mask_out(layout: LinearLayout, name: str, size: int) -> LinearLayout:
    """Take one output coordinate modulo ``size``, which is at most the present size.

    Example:
        >>> mask_out(LinearLayout.from_bases({"i": [(3,), (2,)]}, {"o": 4}), "o", 2).table().tolist()
        [0, 1, 0, 1]
    """
    low, bits = place(linear(layout, "layout").out_axes, name, "name")
    count = _smaller(size, bits)
    places = ((0, low + count), (low + bits, layout.out_bits - low - bits))
    return mapped(layout, resized(layout.out_axes, name, count), lambda value: gather(value, places))


def zero_out(layout: LinearLayout, name: str, size: int) -> LinearLayout:
    """Clear the components >= ``size`` of basis vectors on one output axis, and shrink the axis to ``size``.

    Mathematically: equals ``mask_out`` exactly if each such component is a multiple of ``size``, in particular if
    components are powers of two. The affine part is taken modulo ``size``.

    Example:
        >>> zero_out(LinearLayout.from_bases({"i": [(3,), (1,)]}, {"o": 4}), "o", 2).table().tolist()
        [0, 0, 1, 1]
    """
    low, bits = place(linear(layout, "layout").out_axes, name, "name")
    count = _smaller(size, bits)
    inside = ((1 << bits) - 1) << low
    columns = tuple(column & ~inside if field(column, (low, bits)) >> count else column for column in layout.columns)
    return mask_out(trusted(layout.in_axes, layout.out_axes, columns, layout.constant), name, size)


def _smaller(size: object, bits: int) -> int:
    count = log2(size, "size")
    if count > bits:
        raise bad_argument("size", f"must be at most {1 << bits}", 1 << count)
    return count


def remove_zero_bases(layout: LinearLayout, name: str) -> LinearLayout:
    """Drop the bits of one input axis that do not affect the value.

    Example:
        >>> str(remove_zero_bases(LinearLayout.from_bases({"reg": [(0,), (1,), (0,)]}, {"o": 2}), "reg"))
        'F2[reg=(1) -> o:2]'
    """
    kept = [column for column in columns_of(linear(layout, "layout"), name, "name") if column]
    return recolumned(layout, name, kept)


def ensure_not_larger(
    layout: LinearLayout, shape: Mapping[str, int], *, broadcast: bool = True, register: str = "register"
) -> LinearLayout:
    """Wrap the layout into a shape: output coordinates are taken modulo the shape.

    Args:
        shape: Size per output axis, powers of two; absent axes are unchanged.
        broadcast: Keep register bits that no longer affect the value; otherwise drop those that this call made useless.
        register: Name of the register axis; required unless ``broadcast``.

    Example:
        >>> L = LinearLayout.from_bases({"register": [(1,), (4,)], "lane": [(2,)]}, {"o": 8})
        >>> str(ensure_not_larger(L, {"o": 4}))
        'F2[register=(1)(0), lane=(2) -> o:4]'
        >>> str(ensure_not_larger(L, {"o": 4}, broadcast=False))
        'F2[register=(1), lane=(2) -> o:4]'
    """
    sizes = _shape(layout, shape)
    before = () if flag(broadcast, "broadcast") else columns_of(layout, register, "register")
    answer = layout
    for name, bits in layout.out_axes:
        if sizes.get(name, bits) < bits:
            answer = mask_out(answer, name, 1 << sizes[name])
    if broadcast:
        return answer
    after = columns_of(answer, register, "register")
    return recolumned(answer, register, [new for new, old in zip(after, before, strict=True) if new or not old])


def ensure_not_smaller(layout: LinearLayout, shape: Mapping[str, int], name: str | None = None) -> LinearLayout:
    """Repeat the layout along its output axes until it fills a shape; one input axis counts the copies.

    Mathematically: ``layout * identity(size / present size, name -> axis)`` for each axis that is too small, in the
    order of the output axes.

    Args:
        shape: Size per output axis, powers of two; absent axes are unchanged.
        name: The input axis that counts the copies; by default the first.

    Example:
        >>> L = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)]}, {"o": 4})
        >>> str(ensure_not_smaller(L, {"o": 16}))
        'F2[register=(1)(4)(8), lane=(2) -> o:16]'
    """
    sizes = _shape(layout, shape)
    if name is None:
        if not layout.in_axes:
            raise bad_argument("name", "must be given if the layout has no input axes", None)
        name = layout.in_axes[0][0]
    argument_check.name(name, "name")
    answer = layout
    for axis, bits in layout.out_axes:
        if sizes.get(axis, bits) > bits:
            answer = direct_sum(answer, identity_1d(1 << sizes[axis] - bits, name, axis))
    return answer


def _shape(layout: LinearLayout, shape: Mapping[str, int]) -> dict[str, int]:
    linear(layout, "layout")
    if not isinstance(shape, Mapping):
        raise bad_argument("shape", "must map output axes to sizes", shape)
    for name in shape:
        place(layout.out_axes, name, "shape")
    return {name: log2(size, f"shape[{name!r}]") for name, size in shape.items()}


def combine_cta_cga(cta: LinearLayout, cga: LinearLayout, shape: Mapping[str, int]) -> LinearLayout:
    """Resize the layout of one CTA to its share of a shape, then distribute it over the CTAs of a cluster.

    Mathematically: with the share ``shape / (size of cga)`` per axis, the answer is
    ``ensure_not_larger(ensure_not_smaller(cta, share), share) * cga``.

    Args:
        cta: Layout of one CTA.
        cga: From the block axis to the same output axes, in CTAs.
        shape: Size per output axis of ``cta``, powers of two.

    Example:
        >>> cta = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)]}, {"o": 4})
        >>> str(combine_cta_cga(cta, LinearLayout.from_bases({"block": [(1,)]}, {"o": 2}), {"o": 16}))
        'F2[register=(1)(4), lane=(2), block=(8) -> o:16]'
    """
    linear(cga, "cga")
    sizes = _shape(linear(cta, "cta"), shape)
    names = [name for name, _ in cta.out_axes]
    if set(sizes) != set(names):
        raise bad_argument("shape", f"must have the axes {names}", sorted(sizes))
    if set(dict(cga.out_axes)) != set(names):
        raise bad_argument("cga", f"must have the output axes {names}", [name for name, _ in cga.out_axes])
    blocks = dict(cga.out_axes)
    for name in names:
        if blocks[name] > sizes[name]:
            because = f"axis {name!r} of size {1 << sizes[name]} cannot be split over {1 << blocks[name]} CTAs"
            witness = {"axis": name, "size": 1 << sizes[name], "blocks": 1 << blocks[name]}
            raise refuse("LA259", "the CTAs of the cluster do not divide the shape", because, witness, cta, cga)
    share = {name: 1 << sizes[name] - blocks[name] for name in names}
    whole = ensure_not_larger(ensure_not_smaller(cta, share), share)
    return direct_sum(whole, transpose_outs(cga, names))
