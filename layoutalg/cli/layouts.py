"""Commands on layouts: equality, composition, division, inverses, and the same layout in another family or notation."""

from __future__ import annotations

from typing import Any

from layoutalg import convert
from layoutalg.bridges.composition import compose, logical_divide
from layoutalg.bridges.equal import equivalent
from layoutalg.bridges.inverse import left_inverse, right_inverse
from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, UNKNOWN
from layoutalg.cli.inputs import layout_of, read_subject
from layoutalg.cli.output import say, say_answer, say_json
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.ground.layout import Layout, read
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.verdict import Refuted, Unknown
from layoutalg.notation import takes_shape
from layoutalg.notation.write import to_text

SCHEMA = "layoutalg/layout/1"
FAMILIES = {
    "cute": convert.to_cute,
    "linear": convert.to_linear,
    "integer": convert.to_integer,
    "piecewise": convert.to_piecewise,
}


def _read(*arguments: str, shape: tuple[int, ...] | None = None) -> list[Any]:
    """Return the layouts of arguments; one without extents takes those of another, or ``shape``."""
    if arguments.count("-") > 1:
        raise malformed("arguments", "standard input can be only one of them")
    subjects = [read_subject(argument) for argument in arguments]
    for subject in subjects:
        if subject.kind == "dump" or (subject.kind == "json" and not isinstance(subject.value, list)):
            raise malformed("a layout", "must be layout notation, or a table of offsets", subject.value)
    values = [subject.value for subject in subjects]
    like = next((value for value in values if not (isinstance(value, str) and takes_shape(value))), shape)
    return [
        layout_of(str(value)) if subject.kind == "text" and value is like else read(value, like=like)
        for subject, value in zip(subjects, values, strict=True)
    ]


def run_equivalent(given: commands.Equivalent) -> int:
    """Print whether two layouts are the same function."""
    with clock.within(given.budget):
        clock.check("equality of two layouts")
        found = equivalent(*_read(given.f, given.g, shape=given.shape))
    say_answer(found, given.json)
    return UNKNOWN if isinstance(found, Unknown) else REFUTED if isinstance(found, Refuted) else PROVED


def run_compose(given: commands.Compose) -> int:
    """Print one layout after another."""
    with clock.within(given.budget):
        clock.check("a composition")
        return _told(compose(*_read(given.outer, given.inner), widen=given.widen), given.json)


def run_logical_divide(given: commands.LogicalDivide) -> int:
    """Print a layout divided by a tile."""
    with clock.within(given.budget):
        clock.check("a division")
        modes = _modes(given.tile)
        if modes is not None and given.widen:
            raise malformed("--widen", "is for a tile that is one layout", given.tile)
        operands = _read(given.layout, given.tile) if modes is None else [*_read(given.layout), modes]
        return _told(logical_divide(*operands, widen=given.widen), given.json)


def _modes(text: str) -> tuple[Any, ...] | None:
    """Return the tilers of ``<32,(4,8):(1,4)>``, one for each mode; None for any other text."""
    if not (text.startswith("<") and text.endswith(">")):
        return None
    parts, depth = [""], 0
    for letter in text[1:-1]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(int(part) if part.strip().isdecimal() else layout_of(part) for part in parts)


def run_inverse(given: commands.Inverse) -> int:
    """Print a one-sided inverse of a layout."""
    if given.left and given.right:
        raise malformed("--left", "and --right are two inverses: ask for one")
    with clock.within(given.budget):
        clock.check("an inverse")
        invert = right_inverse if given.right else left_inverse
        return _told(invert(*_read(given.layout), widen=given.widen), given.json)


def run_convert(given: commands.Convert) -> int:
    """Print a layout in another family or notation."""
    if given.form not in (*FAMILIES, *commands.NOTATIONS):
        known = ", ".join((*FAMILIES, *commands.NOTATIONS))
        raise malformed("form", f"must be {known}; for registers to registers use layoutalg conversion", given.form)
    with clock.within(given.budget):
        clock.check("a conversion")
        (layout,) = _read(given.layout)
        if given.form in FAMILIES:
            return _told(FAMILIES[given.form](layout), given.json)
        layout = convert.to_cute(layout) if not isinstance(layout, Layout) else layout
        text = to_text(layout, given.form)
        if given.json:
            say_json({"schema": SCHEMA, "layout": text, "family": given.form, "size": layout.size})
        else:
            say(text)
    return PROVED


def _told(found: Any, as_json: bool) -> int:
    """Print a layout, with its values if it is a table."""
    values = {"values": list(found.values)} if isinstance(found, ListedLayout) else {}
    size = found.size if isinstance(found, Layout) else 0
    if as_json:
        say_json({"schema": SCHEMA, "layout": str(found), "family": type(found).__name__, "size": size} | values)
    else:
        say(str(values.get("values", found)))
    return PROVED
