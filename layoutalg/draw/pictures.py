"""The pictures that can be asked for: of a value, of a difference, of families, of banks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from layoutalg.cute.swizzle import Swizzle
from layoutalg.draw import accesses, answers, pipelines, ragged, registers, swizzles, tensors
from layoutalg.draw.canvas import Canvas, cut, draw_value, is_drawn
from layoutalg.draw.grid import Show, cells_of, cells_text, difference_text, draw_cells, draw_difference, in_families
from layoutalg.draw.phases import draw_phases, phases_text
from layoutalg.draw.views import draw_matrix, draw_owners, is_distributed, matrix_text, owners_text
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.layout import Layout, read
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.swizzling import instruction_name
from layoutalg.targets.banks import bank_model
from layoutalg.targets.nvidia import banks as hardware

VERDICTS = (Proved, Refuted, Unknown)
KINDS = (accesses, answers, pipelines, ragged, registers, swizzles, tensors)
"""The modules that register how each kind of value is drawn."""


def svg(value: object, view: str | None = None, show: Show = "value") -> str:
    """Draw a value as one SVG document without scripts or references.

    Args:
        value: A layout in any form that ``layoutalg.layout`` reads, a swizzle; an answer of ``layoutalg.admissible``,
            a plan, a factorisation, a family for ragged sizes, a use of tensor memory, an im2col map; an answer about
            banks, a swizzle, a padding or a conversion; a pipeline; a verdict.
        view: ``"grid"``, ``"owners"`` (the thread and register of each element) or ``"matrix"`` (F2); None chooses by
            the kind of value.
        show: What the cells of a grid show: ``"value"``, ``"coordinate"`` or ``"both"``.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> svg(CuteLayout((4, 8), (8, 1)))[:48]
        '<svg xmlns="http://www.w3.org/2000/svg" class="l'
    """
    canvas = Canvas()
    drawn: Any = value if is_drawn(type(value)) else read(value)
    if draw_value(drawn, canvas, 0) is False:
        chosen, layout = _view(drawn, view), drawn
        if chosen == "matrix":
            draw_matrix(canvas, layout, 0)
        elif chosen == "owners":
            draw_owners(canvas, layout, 0)
        else:
            draw_cells(canvas, cells_of(layout), 0, show)
    return canvas.svg(type(value).__name__ if isinstance(value, VERDICTS) else shown(drawn, 200))


def text(value: object, view: str | None = None, show: Show = "value") -> str:
    """Draw a value as text, at most 16 rows and columns; arguments as for ``svg``.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> print(text(CuteLayout((2, 4), (4, 1))))
        0 1 2 3
        4 5 6 7
    """
    drawn: Any = value if is_drawn(type(value)) else read(value)
    if isinstance(drawn, Swizzle):
        return swizzles.swizzle_text(drawn)
    if is_drawn(type(drawn)):
        return str(drawn)
    chosen = _view(drawn, view)
    if chosen == "matrix":
        return matrix_text(drawn)
    return owners_text(drawn) if chosen == "owners" else cells_text(cells_of(drawn), show)


def _view(value: object, view: str | None) -> str:
    """The requested view, or the default for the value."""
    if not isinstance(value, Layout):
        because = f"value must be a layout, an answer or a plan, not {shown(value)}; layoutalg.parse reads text"
        raise MalformedError(Diagnostic("LA560", "this value cannot be drawn", because=because))
    if view is None:
        return "owners" if is_distributed(value) else "grid"
    fits = {"grid": True, "owners": is_distributed(value), "matrix": isinstance(value, LinearLayout)}
    if not fits.get(view, False):
        known = ", ".join(repr(name) for name, fit in fits.items() if fit)
        because = f"view must be one of {known} for this value, not {shown(view)}"
        raise MalformedError(Diagnostic("LA561", "this value has no such view", because=because))
    return view


def admission(layout: object, found: Admitted | Refused) -> str:
    """Draw an answer about a layout; a refusal shows the offsets around its witness.

    Args:
        layout: What was asked about: a layout, its text, a table.
        found: The answer of ``layoutalg.admissible``.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> "element offsets around it" in admission("(64,64):(65,1)", admissible("(64,64):(65,1)", "ldmatrix.x4"))
        True
    """
    if not isinstance(found, (Admitted, Refused)):
        because = f"found must be an answer of layoutalg.admissible, not {shown(found)}"
        raise MalformedError(Diagnostic("LA560", "this value cannot be drawn", because=because))
    canvas = Canvas()
    if isinstance(found, Refused):
        answers.draw_refused(found, canvas, 0, layout)
    else:
        draw_value(found, canvas, 0)
    return canvas.svg(shown(str(found).splitlines()[0], 200))


def difference(one: Layout, other: Layout) -> str:
    """Draw two layouts in one picture and outline the cells that differ.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> "first difference at flat coordinate 1" in difference(CuteLayout(4, 1), CuteLayout(4, 2))
        True
    """
    for value in (one, other):
        _view(value, "grid")
    canvas = Canvas()
    draw_difference(canvas, one, other, 0)
    return canvas.svg(difference_text(one, other).splitlines()[0])


def families(layout: Layout) -> str:
    """Draw the text of a layout in every family, or why it has none.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> "piecewise" in families(CuteLayout(6, 2))
        True
    """
    _view(layout, "grid")
    canvas = Canvas()
    canvas.text(4, 14, shown(layout, 110), "h")
    for place, (name, words, there) in enumerate(in_families(layout)):
        canvas.text(4, 38 + 20 * place, name, "n")
        canvas.text(90, 38 + 20 * place, cut(words, 120), "n" if there else "s")
    return canvas.svg(shown(layout, 200))


def banks(
    offsets_bytes: Sequence[int | None],
    access_bits: int = 32,
    kind: str = "load",
    *,
    target: str = "sm_90a",
    instruction: str | None = None,
) -> str:
    """Draw the banks that the lanes of one access touch, phase by phase.

    Args:
        offsets_bytes: One byte offset per lane, None for an inactive lane.
        access_bits: As for ``targets.nvidia.banks.wavefronts``.
        kind: Likewise.
        target: Target of the named instruction: ``"sm_90a"``, ``"gfx942"``, ...
        instruction: Name of an instruction, instead of bits and kind: ``"ds_read_b128"``, ...

    Example:
        >>> "32 turns" in banks([128 * lane for lane in range(32)], 32)
        True
        >>> "64 banks" in banks([256 * lane for lane in range(64)], target="gfx950", instruction="ds_read_b64")
        True
    """
    if instruction is None:
        hardware.wavefronts(offsets_bytes, access_bits, kind)  # refuses what is no access of a warp
        matrices = f"{kind}.x{len(offsets_bytes) // 8}"
        instruction = matrices if "matrix" in kind else instruction_name(target, kind, access_bits)
    model, canvas = bank_model(target, instruction), Canvas()
    draw_phases(canvas, model, offsets_bytes, 0)
    return canvas.svg(phases_text(model, offsets_bytes).splitlines()[0])


def bundle(value: object) -> dict[str, str]:
    """Return what a notebook shows for a value: its text and, if it has one, its picture.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> sorted(bundle(CuteLayout(4))), sorted(bundle(3))
        (['image/svg+xml', 'text/plain'], ['text/plain'])
    """
    found = {"text/plain": str(value)}
    if isinstance(value, Layout) or is_drawn(type(value)):
        with contextlib.suppress(LayoutError):  # a layout too large to tabulate still has its text
            found["image/svg+xml"] = svg(value)
    return found
