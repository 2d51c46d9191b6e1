"""``layoutalg suggest`` and ``layoutalg banks``: which shared layout to use, and what its banks make of an access.

Main definitions: ``suggest_layouts``, ``bank_turns``.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.ask import banks, suggest
from layoutalg.cli.exits import PROVED, REFUTED
from layoutalg.cli.output import say, say_json
from layoutalg.cli.subjects import layout_of, read_subject
from layoutalg.ground.document import malformed


def suggest_layouts(
    tensor: tuple[int, ...],
    stride: tuple[int, ...] | None,
    dtype: str,
    tile: tuple[int, ...],
    consumers: Sequence[str],
    target: str,
    fill: str,
    budget_seconds: float,
    as_json: bool,
) -> int:
    """Print the layouts that serve every consumer, ranked and proved; return the exit code."""
    found = suggest((tensor, stride, dtype), tile, list(consumers), target, fill=fill, budget_seconds=budget_seconds)
    if as_json:
        say_json(found.to_json())
    else:
        say(str(found))
    return PROVED if len(found) else REFUTED


def bank_turns(
    registers: str,
    shared: str | None,
    element_bits: int,
    kind: str,
    tile: tuple[int, ...] | None,
    as_json: bool,
) -> int:
    """Print the turns that shared memory needs for an access; return the exit code."""
    if registers == shared == "-":
        raise malformed("shared", "standard input can be one of the two layouts")
    where = None if shared is None else _layout(shared, tile)
    report = banks(_layout(registers, tile), where, element_bits, kind, tile=tile)
    if as_json:
        say_json(report.to_json())
    else:
        say(str(report))
    return PROVED


def _layout(argument: str, shape: tuple[int, ...] | None) -> object:
    subject = read_subject(argument)
    if subject.kind != "text":
        raise malformed("a layout", "must be layout notation", subject.value)
    return layout_of(str(subject.value), shape)
