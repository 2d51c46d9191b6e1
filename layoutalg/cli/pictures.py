"""``layoutalg draw``: draw a layout, a plan or an answer as text or SVG."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg import draw
from layoutalg.cli.batch import Answer
from layoutalg.cli.exits import PROVED
from layoutalg.cli.output import answer_file, put_into, say, say_json
from layoutalg.cli.plans import solved
from layoutalg.cli.subjects import read_subject, written_in
from layoutalg.draw.compare import difference_text
from layoutalg.draw.grid import Show
from layoutalg.ground.document import malformed
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import Written
from layoutalg.proofs.dtypes import stated_type
from layoutalg.synth.admission import admissible

SCHEMA = "layoutalg/picture/1"


@dataclass(frozen=True, slots=True)
class Asked:
    """The consumer whose answer about a layout is drawn.

    Args:
        consumer: As for ``layoutalg.admissible``.
        target: Architecture.
        dtype: Element type.
    """

    consumer: str
    target: str
    dtype: str | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why there is no plan to draw."""

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
    """Draw the subject: text by default, SVG on request and in files; return the exit code."""
    with answer_file(output) as file:
        value = _value(argument, shape, budget_seconds, None if asked is None else asked.dtype)
        if isinstance(value, Stopped):
            result, lines, code = value.answer
            if as_json:
                say_json(result)
            else:
                say("\n".join(lines))
            return code
        if asked is not None:
            if against is not None:
                raise malformed("--against", "compares two layouts, but --for draws an answer about one", against)
            words, picture = _answered(value, asked, shape, budget_seconds)
        elif against is None:
            drawn = _drawn(value)
            words = draw.text(drawn, view, show)
            picture = draw.svg(drawn, view, show) if as_svg or as_json or file is not None else ""
        else:
            other = _value(against, shape, budget_seconds)
            stated_type(None, value, other, argument="--against")
            first, second = _drawn(value), _drawn(other)
            if not isinstance(first, Layout) or not isinstance(second, Layout):
                raise malformed("--against", "compares two layouts", against)
            words, picture = difference_text(first, second), draw.difference(first, second)
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
    return str(found), draw.admission(_drawn(layout), found)


def _drawn(value: object) -> object:
    """The layout of a written value, or the plan itself."""
    return value.layout if isinstance(value, Written) else value


def _value(argument: str, shape: tuple[int, ...] | None, budget_seconds: float, dtype: str | None = None) -> object:
    """The layout or proved plan that an argument stands for, or the answer that says why there is none."""
    subject = read_subject(argument)
    if subject.kind == "text":
        return written_in(str(subject.value), shape, dtype)
    if subject.kind == "hex":
        raise malformed("subject", "map bytes cannot be drawn: draw the plan, or use layoutalg explain")
    found = solved(subject.value, budget_seconds)
    return Stopped(found) if isinstance(found, tuple) else found
