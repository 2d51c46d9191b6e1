"""Read and write every notation: the output of ``str`` and what CuTe and Triton print.

Notation: the beginning of the text determines the family. ``F2[`` is a linear layout (``layoutalg.f2.layout``),
``Z[`` an integer layout (``layoutalg.integer.layout``), ``{`` or ``[`` (parameters) a piecewise layout or, without an
arrow, a point set, both read by ISL. An axis and its digits, ``lane 8:2``, or a box of named axes, ``[lane:8]``, begin
a hierarchical layout (``layoutalg.hierarchy.notation``). ``#``, ``tensor<`` and ``!ttg.memdesc<`` begin Triton
attributes and types (``layoutalg.notation.ttgir``), ``gl.BlockedLayout(`` a Gluon constructor
(``layoutalg.notation.gluon``), ``[[ T0:0`` and ``Warp0:`` Triton's layout pictures (``layoutalg.notation.views``);
``TiledCopy`` and ``TiledMMA`` what CuTe prints of these (``layoutalg.notation.tiled``); ``memref<``,
``affine_map<`` and ``strided<`` are MLIR's (``layoutalg.notation.memref``). Text with ``-->`` is a morphism
(``layoutalg.cute.notation``). Everything else is CuTe notation (``layoutalg.notation.printout``). docs/notation.md
lists every form with its unit.

Implementation notes: readers are imported where needed, so that reading a CuTe layout loads no other family.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutalg.cute.notation import parse_morphism
from layoutalg.ground.document import load_json
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS
from layoutalg.ground.listed import listed
from layoutalg.notation.printout import TILED_AHEAD, read_printout

NAME_AHEAD = r"[^\s\d!-/:-@\[-^`{-\x7f][^\s!-/:-@\[-^`{-\x7f]*"
TTGIR_AHEAD = re.compile(r"\s*(?:#|//|module\b|!(?:ttg|tt)\.memdesc<|tensor<\d)")
VIEW_AHEAD = re.compile(r"\s*(?:\[\[?\s*(?:B\d+:\s*)?T\s*\d+:\s*\d|(?:Block\d+:\s*)?Warp\s*\d+:)")
MEMREF_AHEAD = re.compile(r"(?:memref|affine_map|strided)\s*<")
MAP_AHEAD = re.compile(r"\s*(?:affine_map|strided)\s*<")
GLUON_AHEAD = re.compile(r"(?:[A-Za-z_]\w*\s*\.\s*){0,8}[A-Za-z_]\w*Layout\s*\(")
HIERARCHY_AHEAD = re.compile(rf"\s*(?:{NAME_AHEAD}\s+[-(\d]|\[[^\]]*:|\[\s*\]\s*[^\s-])")
"""An axis with its digits, a box of axes with extents, or an empty box not followed by an arrow."""
TABLE = re.compile(r"\[[\s\d,\[\]]+\]")
"""Lists of element offsets, as JSON writes them."""
READ_AS = {
    "LA190": "read as CuTe's: (4,8):(8,1), (_4,_8):(_8,_1), Sw<3,3,3> o 0 o (8,64):(64,1), smem_ptr[16b](0x0) o 4:1",
    "LA710": "read as Triton's: #ttg.KIND<{...}> with shape=, tensor<8x8xf16, #ttg.KIND<{...}>>, gl.BlockedLayout(...)",
    "LA761": "read as hierarchical: lane 4:1, register 2:4 -> x:8",
}
"""Error code of a reader -> the notation that was tried, and its forms."""
ALL_FORMS = "docs/notation.md lists every form"


def parse(text: str, shape: Sequence[int] | None = None) -> Any:
    """Return the value written as ``text``.

    Args:
        text: The ``str`` of a value of any family; what CuTe C++ and the CuTe DSL print, tiled copies and matrix
            instructions as well, and C++ types; attributes, types and definitions of TTGIR; Gluon constructors. At
            most 100,000 characters.
        shape: Tensor sizes, outermost dimension first, for an attribute without sizes.

    Returns:
        The value. Offsets count elements: ``Sw<b,m,s>`` acts on elements, ``Sw<b,m,s,byte>`` on bytes; a swizzle
        printed on a pointer acts on byte addresses and is converted to elements (``layoutalg.interop.read_printout``
        keeps the element width). A shape alone, ``(4,8)``, is compact column-major. Names and ``?`` give a
        ``SymbolicLayout``.

    Example:
        >>> parse("((2,2),8):((1,16),2)")
        CuteLayout(((2, 2), 8), ((1, 16), 2))
        >>> parse("Sw<3,4,3> o 0 o (64,64):(64,1)").cosize
        4096
        >>> print(parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"))
        Sw<3,3,3> o 0 o (8,64):(64,1)
        >>> parse("register 2:1, lane 8:2 -> x:16")(register=1, lane=3)
        {'x': 7}
        >>> str(parse("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 2, order = [1, 0]}>", shape=(2, 2)))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    try:
        return _parsed(text, shape)
    except MalformedError as error:
        found = error.diagnostic
        if found.code not in READ_AS or found.source:
            raise
        raise MalformedError(replace(found, source=f"{READ_AS[found.code]}; {ALL_FORMS}")) from error.__cause__


def is_kernel(text: str) -> bool:
    """Return whether a text has a function of Triton's dialects."""
    return re.search(r"^\s*tt\.func\b", text, re.MULTILINE) is not None


def takes_shape(text: str) -> bool:
    """Return whether a text is Triton or Gluon notation or a layout of MLIR, which may need the tensor's shape."""
    ahead = TTGIR_AHEAD.match(text) or GLUON_AHEAD.match(text.lstrip()) or MAP_AHEAD.match(text)
    return bool(ahead) and not TILED_AHEAD.match(text)


def parse_tile(text: str, shape: Any = None, known: Any = None) -> Any:
    """Return the value written as ``text``, one of several layouts of one tile.

    Args:
        text: As for ``parse``.
        shape: Given tile extents, outermost first, for Triton and Gluon texts without sizes; others have their own.
        known: Extents of another layout of the tile, used if the text has none and ``shape`` is None.

    Raises: As ``parse``.

    Example:
        >>> text = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 2, order = [1, 0]}>"
        >>> print(parse_tile("(4,8):(8,1)", (4, 8)), parse_tile(text, None, (2, 2)))
        (4,8):(8,1) F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]
    """
    if not takes_shape(text) or text.lstrip().startswith(("tensor<", "!")):  # types have their sizes
        return parse(text)
    if shape is not None or known is None:
        return parse(text, shape)
    try:
        return parse(text)
    except MalformedError:
        return parse(text, known)


def _parsed(text: str, shape: Any) -> Any:
    start = text.lstrip() if isinstance(text, str) and len(text) <= NOTATION_CHARACTERS else ""
    if TILED_AHEAD.match(start):
        from layoutalg.notation.tiled import read_tiled

        return read_tiled(text)
    if TTGIR_AHEAD.match(text if isinstance(text, str) else ""):
        from layoutalg.notation.ttgir import parse_ttgir

        return parse_ttgir(text, shape)
    if GLUON_AHEAD.match(start):
        from layoutalg.notation.gluon import parse_gluon

        return parse_gluon(text, shape)
    if VIEW_AHEAD.match(start):
        from layoutalg.notation.views import parse_view

        return parse_view(text)
    if MEMREF_AHEAD.match(start):
        from layoutalg.notation.memref import parse_memref

        return parse_memref(text, shape)
    if shape is not None:
        because = "shape is only for Triton attributes, which begin with '#', and affine maps"
        raise MalformedError(Diagnostic("LA190", "the notation is malformed", (start[:100],), because))
    if HIERARCHY_AHEAD.match(start):
        from layoutalg.hierarchy.notation import parse_hierarchical

        return parse_hierarchical(text)
    if start.startswith("F2"):
        from layoutalg.f2.layout import parse_linear

        return parse_linear(text)
    if start.startswith("Z"):
        from layoutalg.integer.layout import parse_integer

        return parse_integer(text)
    if TABLE.fullmatch(start.rstrip()):
        return listed(load_json(start))
    if start.startswith(("[", "{")):
        from layoutalg.piecewise import PiecewiseLayout, PointSet

        return PiecewiseLayout.parse(text) if "->" in start.partition("{")[2] else PointSet(text)
    if "-->" in start:
        return parse_morphism(text)
    return read_printout(text).layout
