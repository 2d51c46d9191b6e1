"""Linear layouts as Triton and its tools write them: bases, attribute text, Gluon constructors, live objects.

Main definitions: ``to_bases``, ``from_bases``, ``to_object``, ``from_object``, ``to_attribute``, ``from_attribute``,
``to_gluon``, ``from_gluon``.

Notation: ``#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>`` for values in threads whose
hardware bits step along distinct bits of the tensor or hold copies, ``#ttg.generic_linear<...>`` for other values in
threads, as long as bits of registers, lanes and blocks move in one dimension each,
``#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>`` for shared memory.

Implementation notes: Triton is never imported; its objects are read through ``bases`` and ``out_dims`` and built
through the class the caller passes. Triton keeps no constant part, so an affine layout is refused rather than
truncated. Attribute text names no sizes: they are the smallest powers of two above the components unless the caller
gives a shape.

References: Triton 3.9.0 (``LinearLayout`` bindings, ``LinearEncodingAttr``, Gluon ``DistributedLinearLayout``,
``SharedLinearLayout``).
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from layoutalg.f2 import LinearLayout
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError, shown
from layoutalg.notation.bases import SHARED_AXES, THREAD_AXES, smallest
from layoutalg.notation.gluon import GLUON_FIELDS, parse_gluon
from layoutalg.notation.ttg_build import parse_attribute

TritonBases: TypeAlias = list[tuple[str, list[list[int]]]]
TritonDims: TypeAlias = list[tuple[str, int]]

TRITON_SOURCE = "Triton 3.9.0 (LinearLayout bindings, LinearEncodingAttr, Gluon layouts)"
TRITON_BITS = 64
AXIS_BITS = 30
"""Bits of the widest axis: Triton keeps sizes as 32-bit signed integers."""


def to_bases(layout: LinearLayout) -> tuple[TritonBases, TritonDims]:
    """Return the bases and the output dimensions as Triton's constructor takes them.

    Args:
        layout: A layout without a constant part, at most 64 bits on either side and 30 bits on each axis.

    Returns:
        ``([(axis, [[component per output, ...], ...]), ...], [(output, size), ...])``, both in the layout's order.

    Raises: RepresentabilityError: LA711.

    Example:
        >>> to_bases(LinearLayout.from_bases({"lane": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2}))
        ([('lane', [[1, 0], [0, 1]])], [('dim0', 2), ('dim1', 2)])
    """
    if not isinstance(layout, LinearLayout):
        _fail("layout", "must be a LinearLayout", layout)
    if layout.constant:
        _refuse(layout, f"its constant part is {layout.offset}; Triton's layouts have none")
    if max(layout.in_bits, layout.out_bits) > TRITON_BITS:
        _refuse(layout, f"it has {layout.in_bits} input and {layout.out_bits} output bits; Triton takes {TRITON_BITS}")
    for side, axes in (("input", layout.in_axes), ("output", layout.out_axes)):
        for axis, bits in axes:
            if bits > AXIS_BITS:
                _refuse(layout, f"{side} axis {axis!r} has {bits} bits; Triton keeps sizes of at most {AXIS_BITS}")
    bases = [(axis, [list(image) for image in images]) for axis, images in layout.bases.items()]
    return bases, list(layout.out_dims.items())


def from_bases(bases: object, out_dims: object) -> LinearLayout:
    """Return the layout of Triton's ``bases`` and ``out_dims``, as pairs or as dictionaries.

    Args:
        bases: Per input axis its images, one component per output dimension.
        out_dims: Per output dimension its size; or only names, for the smallest sizes that hold the components.

    Raises: MalformedError: LA710, LA200.

    Example:
        >>> str(from_bases([("lane", [[1, 0], [0, 1]])], ["dim0", "dim1"]))
        'F2[lane=(1,0)(0,1) -> dim0:2, dim1:2]'
    """
    entries = _pairs(bases, "bases")
    if isinstance(out_dims, (tuple, list)) and all(isinstance(name, str) for name in out_dims):
        sizes = smallest(entries, len(out_dims))
        return LinearLayout.from_bases(entries, list(zip(out_dims, sizes, strict=True)))
    return LinearLayout.from_bases(entries, _pairs(out_dims, "out_dims"))


def to_object(layout: LinearLayout, triton_class: Any) -> Any:
    """Return a live Triton layout, built through the class the caller imported.

    Args:
        layout: As for ``to_bases``.
        triton_class: ``triton.tools.LinearLayout``, or anything with its ``from_bases``.

    Raises: RepresentabilityError: LA711. MalformedError: LA710.

    Example:
        >>> class Recorder:
        ...     @staticmethod
        ...     def from_bases(bases, names, sizes, require_surjective):
        ...         return bases, names, sizes, require_surjective
        >>> to_object(LinearLayout.from_bases({"lane": [(2,)]}, {"dim0": 4}), Recorder)
        ([('lane', [[2]])], ['dim0'], [4], False)
    """
    bases, out_dims = to_bases(layout)
    build = getattr(triton_class, "from_bases", None)
    if not callable(build):
        _fail("triton_class", "must have from_bases", triton_class)
    try:
        return build(bases, [name for name, _ in out_dims], [size for _, size in out_dims], layout.is_surjective)
    except TypeError as error:
        _fail("triton_class", f"must have Triton's from_bases ({error})", triton_class)


def from_object(value: Any) -> LinearLayout:
    """Return the layout of a live object with ``bases`` and ``out_dims`` (Triton's, or a viewer's).

    Raises: MalformedError: LA710, LA200.

    Example:
        >>> from types import SimpleNamespace
        >>> str(from_object(SimpleNamespace(bases=[("lane", [[1], [2]])], out_dims=[("dim0", 4)])))
        'F2[lane=(1)(2) -> dim0:4]'
    """
    if isinstance(value, LinearLayout):
        return value
    if not hasattr(value, "bases") or not hasattr(value, "out_dims"):
        _fail("value", "must have bases and out_dims", value)
    return from_bases(value.bases, value.out_dims)


def to_attribute(layout: LinearLayout, alignment: int = 16) -> str:
    """Return the attribute text of a layout of values in threads or of elements in shared memory.

    Args:
        layout: Onto ``dim0``, ``dim1``, ...; inputs ``register``, ``lane``, ``warp``, ``block`` or ``offset`` with or
            without ``block``; surjective.
        alignment: Byte alignment, for shared memory only.

    Raises: RepresentabilityError: LA711.

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
            _refuse(layout, f"{crossing[0]} moves in two dimensions; Triton takes that of warp bits only")
        return f"#ttg.{'linear' if _one_step(layout) else 'generic_linear'}<{{{body}}}>"
    return f"#ttg.shared_linear<{{{body}}}, alignment = {_alignment(alignment)}>"


def from_attribute(text: str, shape: Sequence[int] | None = None) -> LinearLayout:
    """Read an attribute that is a linear layout; ``layoutalg.notation.ttg_build.parse_attribute`` lists the kinds.

    Args:
        text: The attribute, or the line ``#name = #ttg...`` that defines it.
        shape: Sizes of the output dimensions; None for the smallest that hold the bases of the text.

    Raises: MalformedError: LA710, LA700, LA701, LA200. AdmissibilityError: LA703, LA706.

    Example:
        >>> str(from_attribute("#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>"))
        'F2[register=(0,1), lane=(1,0), warp=, block= -> dim0:2, dim1:2]'
    """
    layout = parse_attribute(_short(text), shape) if isinstance(text, str) else None
    if not isinstance(layout, LinearLayout):
        _fail("text", "must be an attribute that is a linear layout", text)
    return layout


def to_gluon(layout: LinearLayout, alignment: int = 16, module: str = "gl") -> str:
    """Return the Gluon constructor call of a layout of values in threads or of elements in shared memory.

    Args:
        layout: As for ``to_attribute``.
        alignment: Byte alignment, for shared memory only.
        module: Name under which the caller imports ``triton.experimental.gluon.language``; empty for none.

    Raises: RepresentabilityError: LA711.

    Example:
        >>> to_gluon(LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2}))
        'gl.SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)'
    """
    bases, kind = _encoding(layout)
    if not isinstance(module, str) or (module and not all(_is_name(part) for part in module.split("."))):
        _fail("module", "must be a dotted name or empty", module)
    name = "DistributedLinearLayout" if kind == "linear" else "SharedLinearLayout"
    if kind == "linear" and not _one_step(layout):
        _refuse(layout, "Gluon takes bases of one step each, all distinct; to_attribute writes it as generic_linear")
    known = dict(bases)
    parts = [f"{field}={known[axis]}" for field, axis in GLUON_FIELDS[name].items()]
    if kind == "linear":
        parts.append(f"shape={list(layout.out_dims.values())}")
    else:
        parts.append(f"alignment={_alignment(alignment)}")
    return f"{module + '.' if module else ''}{name}({', '.join(parts)})"


def from_gluon(text: str, shape: Sequence[int] | None = None) -> LinearLayout:
    """Read a Gluon constructor call with keyword arguments, as Gluon prints its layouts.

    Args:
        text: A call of one of Gluon's layout classes, with or without a module; also
            ``_TensorMemoryLinearLayout(...)``, which Gluon only prints.
        shape: Sizes of the output dimensions; None for those that the text names (a distributed layout does), else
            the smallest.

    Raises: MalformedError: LA710, LA200.

    Example:
        >>> str(from_gluon("SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)"))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    layout = parse_gluon(_short(text), shape) if isinstance(text, str) else None
    if not isinstance(layout, LinearLayout):
        _fail("text", "must be a constructor of a linear layout", text)
    return layout


def _encoding(layout: LinearLayout) -> tuple[TritonBases, str]:
    """Return the bases in the order of the attribute, and ``linear`` or ``shared_linear``."""
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
        _refuse(layout, f"it has rank {layout.rank} of {layout.out_bits}; attribute text names no sizes")
    if kind == "shared_linear" and sum(any(image) for _, images in bases for image in images) > layout.rank:
        _refuse(layout, f"it has rank {layout.rank} and more bases that move; Triton takes a bijection of these")
    known = dict(bases)
    return [(axis, known.get(axis, [])) for axis in order], kind


def _one_step(layout: LinearLayout) -> bool:
    """Whether every hardware bit holds copies or steps along one output bit, each output bit stepped along once."""
    moving = [column for column in layout.columns if column]
    return len(moving) == layout.rank and all(column & (column - 1) == 0 for column in moving)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _short(text: str) -> str:
    if len(text) > limits.ATTRIBUTE_CHARACTERS:
        _fail("text", f"must have at most {limits.ATTRIBUTE_CHARACTERS} characters", f"{len(text)} of them")
    return text


def _pairs(value: object, argument: str) -> list[tuple[str, Any]]:
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, (tuple, list)):
        _fail(argument, "must be a mapping or a sequence of pairs", value)
    found: list[tuple[str, Any]] = []
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2 or not isinstance(entry[0], str):
            _fail(argument, "must hold (name, entry) pairs", entry)
        found.append((entry[0], entry[1]))
    return found


def _alignment(alignment: object) -> int:
    if isinstance(alignment, bool) or not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        _fail("alignment", "must be a positive power of two", alignment)
    return alignment


def _fail(argument: str, rule: str, actual: object) -> NoReturn:
    raise MalformedError(
        Diagnostic(
            code="LA710",
            what="this is not a layout in Triton's terms",
            where=(argument,),
            because=f"{argument} {rule}, not {shown(actual)}",
            witness={"actual": actual},
            source=TRITON_SOURCE,
        )
    )


def _refuse(layout: LinearLayout, because: str) -> NoReturn:
    raise RepresentabilityError(
        Diagnostic(
            code="LA711",
            what="Triton cannot hold this layout",
            where=(str(layout),),
            because=because,
            source=TRITON_SOURCE,
        )
    )
