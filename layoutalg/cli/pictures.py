"""``layoutalg draw``: the picture of a layout or a plan, as text or as SVG.

Main definitions: ``draw_subject``.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg import draw
from layoutalg.cli.batch import Answer
from layoutalg.cli.exits import PROVED
from layoutalg.cli.output import answer_file, put_into, say, say_json
from layoutalg.cli.plans import solved
from layoutalg.cli.subjects import layout_of, read_subject
from layoutalg.draw.compare import difference_text
from layoutalg.draw.grid import Show
from layoutalg.ground.document import malformed
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.admission import admissible

SCHEMA = "layoutalg/picture/1"


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose answer about a layout is drawn.

    Args:
        consumer: Of ``layoutalg.admissible``.
        target: Architecture.
        dtype: Element type.
    """

    consumer: str
    target: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The answer that says why there is no plan to draw."""

    answer: Answer


def draw_subject(
    argument: str,
    against: str | None,
    asked: Asked | None,
    view: str | None,
    show: Show,
    shape: tuple[int, ...] | None,
    as_svg: bool,
    output: str | None,
    budget_seconds: float,
    as_json: bool,
) -> int:
    """Draw what an argument stands for: text by default, SVG on request and into files; return the exit code."""
    with answer_file(output) as file:
        value = _value(argument, shape, budget_seconds)
        if isinstance(value, Stopped):
            result, lines, code = value.answer
            if as_json:
                say_json(result)
            else:
                say("\n".join(lines))
            return code
        if asked is not None:
            if against is not None:
                raise malformed("--against", "compares two layouts; --for draws the answer about one", against)
            words, picture = _answered(value, asked, shape, budget_seconds)
        elif against is None:
            words = draw.text(value, view, show)
            picture = draw.svg(value, view, show) if as_svg or as_json or file is not None else ""
        else:
            other = _value(against, shape, budget_seconds)
            if not isinstance(value, Layout) or not isinstance(other, Layout):
                raise malformed("--against", "compares two layouts", against)
            words, picture = difference_text(value, other), draw.difference(value, other)
        if file is not None:
            put_into(file, picture + "\n")
        if as_json:
            say_json({"schema": SCHEMA, "text": words, "svg": picture})
        elif as_svg:
            say(picture)
        elif file is None:
            say(words)
    return PROVED


def _answered(layout: object, asked: Asked, shape: tuple[int, ...] | None, budget_seconds: float) -> tuple[str, str]:
    """The answer of a consumer about a layout, as text and as a picture."""
    found = admissible(
        layout, asked.consumer, asked.target, asked.dtype, tile=shape, budget_seconds=budget_seconds
    )  # fmt: skip
    if isinstance(found, Unknown):
        return str(found), draw.bundle(found)["image/svg+xml"]
    return str(found), draw.admission(layout, found)


def _value(argument: str, shape: tuple[int, ...] | None, budget_seconds: float) -> object:
    """The layout or the proved plan that an argument stands for, or the answer that says why there is no plan."""
    subject = read_subject(argument)
    if subject.kind == "text":
        return layout_of(str(subject.value), shape)
    if subject.kind == "hex":
        raise malformed("subject", "the bytes of a map have no picture: draw the plan, or explain the bytes")
    found = solved(subject.value, budget_seconds)
    return Stopped(found) if isinstance(found, tuple) else found
