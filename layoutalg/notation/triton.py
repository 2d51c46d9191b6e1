"""Linear layouts in Triton's terms: from lists of basis vectors, as attributes and as Gluon constructors.

Notation: ``#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>`` for distributed layouts whose
hardware bits map to distinct tensor bits or to replication; ``#ttg.generic_linear<...>`` for other distributed layouts,
provided each register, lane and block bit moves in one dimension only;
``#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>`` for shared memory.

Implementation notes: Triton layouts have no constant part, so affine layouts are refused. Attribute text has no sizes,
so layouts that are not surjective are refused.

References: Triton 3.9.0 (``LinearLayout`` bindings, ``LinearEncodingAttr``, Gluon ``DistributedLinearLayout``,
``SharedLinearLayout``).
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError, shown

TritonBases: TypeAlias = list[tuple[str, list[list[int]]]]
TritonDims: TypeAlias = list[tuple[str, int]]

TRITON_SOURCE = "Triton 3.9.0 (LinearLayout bindings, LinearEncodingAttr, Gluon layouts)"
TRITON_BITS = 64
AXIS_BITS = 30
"""Most bits of an axis: Triton stores sizes as 32-bit signed integers."""
CODE, WHAT = "LA710", "not a valid Triton layout"
THREAD_AXES: tuple[str, ...] = ("register", "lane", "warp", "block")
SHARED_AXES: tuple[str, ...] = ("offset", "block")
GLUON_FIELDS: Mapping[str, Mapping[str, str]] = {
    "DistributedLinearLayout": dict(
        zip(("reg_bases", "lane_bases", "warp_bases", "block_bases"), THREAD_AXES, strict=True)
    ),
    "SharedLinearLayout": dict(zip(("offset_bases", "block_bases"), SHARED_AXES, strict=True)),
    "_TensorMemoryLinearLayout": {"rows": "row", "cols": "col"},
}
"""Constructors with basis vectors: argument -> axis."""


def tensor_layout(bases: Mapping[str, Any], axes: tuple[str, ...], shape: Sequence[int] | None) -> LinearLayout:
    """Return the layout from ``axes`` onto dim0, dim1, ...; axes without bases have size 1.

    Args:
        bases: Axis name -> its images.
        axes: The axes, in the order of the layout.
        shape: Output sizes; None for the smallest powers of two above the components.
    """
    if not set(bases) <= set(axes):
        fail("text", f"must name axes among {axes}", list(bases))
    ordered = [(axis, bases.get(axis, [])) for axis in axes]
    for axis, images in ordered:
        if not isinstance(images, (tuple, list)) or any(not isinstance(image, (tuple, list)) for image in images):
            fail(axis, "must be a list of basis vectors", images)
    lengths = [len(image) for _, images in ordered for image in images]
    rank = max(lengths, default=0) if shape is None else len(sizes_of(shape))
    if rank == 0:
        fail("text", "must have a basis vector or a shape, otherwise the number of dimensions is unknown", shape)
    sizes = smallest(ordered, rank) if shape is None else tuple(shape)
    return LinearLayout.from_bases(ordered, [(f"dim{index}", size) for index, size in enumerate(sizes)])


def smallest(entries: Sequence[tuple[str, Any]], rank: int) -> tuple[int, ...]:
    """Return the smallest power of two above all components of each output; non-integers are refused later."""
    sizes = [1] * rank
    for _, images in entries:
        for image in images if isinstance(images, (tuple, list)) else ():
            for index, part in enumerate(image[:rank] if isinstance(image, (tuple, list)) else ()):
                if type(part) is int and part > 0:
                    sizes[index] = max(sizes[index], 1 << part.bit_length())
    return tuple(sizes)


def sizes_of(shape: object) -> Sequence[int]:
    """Return the shape, or refuse it if it is not a sequence."""
    if not isinstance(shape, (tuple, list)):
        fail("shape", "must be a sequence of sizes", shape)
    return shape


def fail(argument: str, rule: str, actual: object) -> NoReturn:
    """Raise the error of Triton's notations."""
    because = f"{argument} {rule}, not {shown(actual)}"
    raise MalformedError(Diagnostic(CODE, WHAT, (argument,), because))


def to_bases(layout: LinearLayout) -> tuple[TritonBases, TritonDims]:
    """Return the bases and output dimensions in the form of Triton's ``LinearLayout`` constructor.

    Args:
        layout: A layout without a constant part, at most 64 bits per side and 30 bits per axis.

    Returns:
        ``([(axis, [[component per output, ...], ...]), ...], [(output, size), ...])``, in the layout's order.

    Example:
        >>> to_bases(LinearLayout.from_bases({"lane": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2}))
        ([('lane', [[1, 0], [0, 1]])], [('dim0', 2), ('dim1', 2)])
    """
    if not isinstance(layout, LinearLayout):
        fail("layout", "must be a LinearLayout", layout)
    if layout.constant:
        _refuse(layout, f"its constant part is {layout.offset}; Triton's layouts have none")
    if max(layout.in_bits, layout.out_bits) > TRITON_BITS:
        _refuse(layout, f"it has {layout.in_bits} input and {layout.out_bits} output bits; Triton allows {TRITON_BITS}")
    for side, axes in (("input", layout.in_axes), ("output", layout.out_axes)):
        for axis, bits in axes:
            if bits > AXIS_BITS:
                _refuse(layout, f"{side} axis {axis!r} has {bits} bits; Triton allows {AXIS_BITS}")
    bases = [(axis, [list(image) for image in images]) for axis, images in layout.bases.items()]
    return bases, list(layout.out_dims.items())


def to_attribute(layout: LinearLayout, alignment: int = 16) -> str:
    """Return the attribute text of a distributed or shared-memory layout.

    Args:
        layout: Surjective, onto ``dim0``, ``dim1``, ...; inputs ``register``, ``lane``, ``warp``, ``block``, or
            ``offset`` and optionally ``block``.
        alignment: Byte alignment, only for shared memory.

    Example:
        >>> one = {"register": [(0, 1)], "lane": [(1, 0)], "warp": [], "block": []}
        >>> to_attribute(LinearLayout.from_bases(one, {"dim0": 2, "dim1": 2}))
        '#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>'
    """
    bases, kind = _encoding(layout)
    body = ", ".join(f"{axis} = {images}" for axis, images in bases)
    if kind == "linear":
        crossing = [image for axis, images in bases if axis != "warp" for image in images if sum(map(bool, image)) > 1]
        if crossing:
            _refuse(layout, f"{crossing[0]} moves in two dimensions; Triton allows that only for warp bits")
        return f"#ttg.{'linear' if _one_step(layout) else 'generic_linear'}<{{{body}}}>"
    return f"#ttg.shared_linear<{{{body}}}, alignment = {_alignment(alignment)}>"


def to_gluon(layout: LinearLayout, alignment: int = 16, module: str = "gl") -> str:
    """Return the Gluon constructor call of a distributed or shared-memory layout.

    Args:
        layout: As for ``to_attribute``.
        alignment: Byte alignment, only for shared memory.
        module: Name under which ``triton.experimental.gluon.language`` is imported; may be empty.

    Example:
        >>> to_gluon(LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2}))
        'gl.SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)'
    """
    bases, kind = _encoding(layout)
    if not isinstance(module, str) or (module and not all(_is_name(part) for part in module.split("."))):
        fail("module", "must be a dotted name or empty", module)
    name = "DistributedLinearLayout" if kind == "linear" else "SharedLinearLayout"
    if kind == "linear" and not _one_step(layout):
        _refuse(layout, "Gluon needs distinct bases of one bit each; to_attribute writes it as generic_linear")
    known = dict(bases)
    parts = [f"{field}={known[axis]}" for field, axis in GLUON_FIELDS[name].items()]
    if kind == "linear":
        parts.append(f"shape={list(layout.out_dims.values())}")
    else:
        parts.append(f"alignment={_alignment(alignment)}")
    return f"{module + '.' if module else ''}{name}({', '.join(parts)})"


def _encoding(layout: LinearLayout) -> tuple[TritonBases, str]:
    """Return the bases in attribute order, and ``linear`` or ``shared_linear``."""
    bases, out_dims = to_bases(layout)
    axes = [axis for axis, _ in bases]
    if set(axes) == set(THREAD_AXES):
        kind, order = "linear", THREAD_AXES
    elif "offset" in axes and set(axes) <= set(SHARED_AXES):
        kind, order = "shared_linear", SHARED_AXES
    else:
        _refuse(layout, f"its axes are {axes}; attributes have {THREAD_AXES} or {SHARED_AXES}")
    names = [name for name, _ in out_dims]
    if not names or names != [f"dim{index}" for index in range(len(names))]:
        _refuse(layout, f"its outputs are {names}; attributes have dim0, dim1, ...")
    if not layout.is_surjective:
        _refuse(
            layout,
            f"it has rank {layout.rank} of {layout.out_bits}; attributes have no sizes, so it must be surjective",
        )
    if kind == "shared_linear" and sum(any(image) for _, images in bases for image in images) > layout.rank:
        _refuse(layout, f"its nonzero bases are linearly dependent (rank {layout.rank}); Triton needs them independent")
    known = dict(bases)
    return [(axis, known.get(axis, [])) for axis in order], kind


def _one_step(layout: LinearLayout) -> bool:
    """Whether every hardware bit is replicated or maps to one output bit, no two to the same."""
    moving = [column for column in layout.columns if column]
    return len(moving) == layout.rank and all(column & (column - 1) == 0 for column in moving)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _alignment(alignment: object) -> int:
    if isinstance(alignment, bool) or not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        fail("alignment", "must be a positive power of two", alignment)
    return alignment


def _refuse(layout: LinearLayout, because: str) -> NoReturn:
    raise RepresentabilityError(
        Diagnostic(
            code="LA711",
            what="Triton cannot represent this layout",
            where=(str(layout),),
            because=because,
            source=TRITON_SOURCE,
        )
    )
