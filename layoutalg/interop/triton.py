"""Linear layouts in Triton form: bases, attribute text, Gluon constructors, live objects.

Triton is never imported: its objects are read through ``bases`` and ``out_dims`` and built through the class that the
caller passes. Attribute text has no sizes; they default to the smallest powers of two above the components.
``layoutalg.notation.triton`` writes the texts.

References: Triton 3.9.0 (``LinearLayout`` bindings, ``LinearEncodingAttr``, Gluon ``DistributedLinearLayout``,
``SharedLinearLayout``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutalg.f2 import LinearLayout
from layoutalg.ground import limits
from layoutalg.notation import is_kernel
from layoutalg.notation.gluon import parse_gluon
from layoutalg.notation.mlir import FILE_CHARACTERS
from layoutalg.notation.triton import fail, smallest, to_attribute, to_bases, to_gluon
from layoutalg.notation.ttg import parse_attribute
from layoutalg.targets.registry import lookup

if TYPE_CHECKING:
    from layoutalg.ask.explanation import Explanation

__all__ = [
    "from_attribute",
    "from_bases",
    "from_gluon",
    "from_object",
    "report",
    "to_attribute",
    "to_bases",
    "to_gluon",
    "to_object",
]


def from_bases(bases: object, out_dims: object) -> LinearLayout:
    """Return the layout of Triton's ``bases`` and ``out_dims``, as pairs or as dictionaries.

    Args:
        bases: The images of each input axis, one component per output dimension.
        out_dims: Output dimensions with sizes; or only names, for the smallest sizes that fit the components.

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
    """Build a live Triton layout with the class that the caller imported.

    Args:
        layout: As for ``to_bases``.
        triton_class: ``triton.tools.LinearLayout``, or anything with its ``from_bases``.

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
        fail("triton_class", "must have from_bases", triton_class)
    try:
        return build(bases, [name for name, _ in out_dims], [size for _, size in out_dims], layout.is_surjective)
    except TypeError as error:
        fail("triton_class", f"must have Triton's from_bases ({error})", triton_class)


def from_object(value: Any) -> LinearLayout:
    """Return the layout of a live object with ``bases`` and ``out_dims`` (Triton's, or a viewer's).

    Example:
        >>> from types import SimpleNamespace
        >>> str(from_object(SimpleNamespace(bases=[("lane", [[1], [2]])], out_dims=[("dim0", 4)])))
        'F2[lane=(1)(2) -> dim0:4]'
    """
    if isinstance(value, LinearLayout):
        return value
    if not hasattr(value, "bases") or not hasattr(value, "out_dims"):
        fail("value", "must have bases and out_dims", value)
    return from_bases(value.bases, value.out_dims)


def from_attribute(text: str, shape: Sequence[int] | None = None) -> LinearLayout:
    """Read an attribute that is a linear layout; see ``layoutalg.notation.ttg.parse_attribute`` for the kinds.

    Args:
        text: The attribute, or the line ``#name = #ttg...`` that defines it.
        shape: Sizes of the output dimensions; None for the smallest that fit the bases.

    Example:
        >>> str(from_attribute("#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>"))
        'F2[register=(0,1), lane=(1,0), warp=, block= -> dim0:2, dim1:2]'
    """
    layout = parse_attribute(_short(text), shape) if isinstance(text, str) else None
    if not isinstance(layout, LinearLayout):
        fail("text", "must be an attribute that is a linear layout", text)
    return layout


def from_gluon(text: str, shape: Sequence[int] | None = None) -> LinearLayout:
    """Read a Gluon constructor call with keyword arguments, as Gluon prints its layouts.

    Args:
        text: A call of a Gluon layout class, with or without a module; also ``_TensorMemoryLinearLayout(...)``, which
            Gluon only prints.
        shape: Sizes of the output dimensions; None for those in the text (a distributed layout has them), otherwise the
            smallest.

    Example:
        >>> str(from_gluon("SharedLinearLayout(offset_bases=[[0, 1], [1, 1]], block_bases=[], alignment=16)"))
        'F2[offset=(0,1)(1,1), block= -> dim0:2, dim1:2]'
    """
    layout = parse_gluon(_short(text), shape) if isinstance(text, str) else None
    if not isinstance(layout, LinearLayout):
        fail("text", "must be a constructor of a linear layout", text)
    return layout


def report(compiled: Any, target: str = "sm_90a") -> Explanation:
    """Explain a compiled kernel line by line: coalescing, bank conflicts, conversions, matrix operands, TMA copies.

    Args:
        compiled: A compiled kernel of Triton (anything whose ``asm["ttgir"]`` is text), the text, or a file's path.
        target: The target if neither the module nor ``compiled.metadata.target`` names one that is known.

    Raises: MalformedError: LA710, LA972. BudgetError: LA001.

    Example:
        >>> blocked = "{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}"
        >>> text = f"#b = #ttg.blocked<{blocked}>" + '''
        ... module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
        ...   tt.func @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
        ...     %0 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b>
        ...     %1 = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b>
        ...     %2 = tt.addptr %1, %0 : tensor<512x!tt.ptr<f32>, #b>, tensor<512xi32, #b>
        ...     %3 = tt.load %2 : tensor<512x!tt.ptr<f32>, #b>
        ...     tt.return
        ...   }
        ... }'''
        >>> print(report(text))  # doctest: +ELLIPSIS
        kernel          copy on sm_90a (cuda:90, 4 warps of 32)
        line 7          tt.load %3: tensor<512x!tt.ptr<f32>, #b>
                          4 x ld.global.v4.b32: 64 sectors of 32 bytes in 16 lines, the fewest
                          assumed: the first element is at a multiple of 128 bytes; known: a multiple of 16
        unit            cycles of a multiprocessor for one execution by a block, latencies of memory apart
        ...
        most costly     line 7: 34.8 cycles, tt.load %3
        most to gain    no line above its least cost
        not explained   no operation
        passed over     4 operations whose cost does not depend on a layout
    """
    from layoutalg.ask.explanation import explain
    from layoutalg.ask.kernel_lines import target_named

    lookup(target)
    asm = getattr(compiled, "asm", None)
    text = asm.get("ttgir") if isinstance(asm, Mapping) else compiled
    if isinstance(compiled, Path) and compiled.is_file():
        with compiled.open(encoding="utf-8", errors="replace") as file:
            text = file.read(FILE_CHARACTERS + 1)
    if not isinstance(text, str) or not is_kernel(text):
        fail("compiled", "must have asm['ttgir'], or be text or the path of a file, with a tt.func", text)
    ran = getattr(getattr(compiled, "metadata", None), "target", None)
    named = target_named(getattr(ran, "backend", None), getattr(ran, "arch", None))
    return explain(text, target=named or target)


def _short(text: str) -> str:
    if len(text) > limits.ATTRIBUTE_CHARACTERS:
        fail("text", f"must have at most {limits.ATTRIBUTE_CHARACTERS} characters", f"{len(text)} of them")
    return text


def _pairs(value: object, argument: str) -> list[tuple[str, Any]]:
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, (tuple, list)):
        fail(argument, "must be a mapping or a sequence of pairs", value)
    found: list[tuple[str, Any]] = []
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2 or not isinstance(entry[0], str):
            fail(argument, "must contain (name, entry) pairs", entry)
        found.append((entry[0], entry[1]))
    return found
