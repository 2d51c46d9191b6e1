"""Parse the text form of integer layouts.

Notation: ``Z[i:4=(6,1), j:6=(1,0) -> offset, bank%32] + (3,0)``; whitespace is ignored, strides and constants may be
negative.
"""

from __future__ import annotations

from layoutalg.ground.tokens import Grammar, Tokens
from layoutalg.integer.layout import IntegerLayout
from layoutalg.integer.matrix import transpose

_GRAMMAR = Grammar(
    ("[", "]", "(", ")", ",", ":", "=", "+", "%", "->"), True, "LA725", "this is not the text of an integer layout"
)


def parse_integer(text: str) -> IntegerLayout:
    """Parse the text form of an integer layout; ``parse_integer(str(L)) == L``.

    Example:
        >>> parse_integer("Z[i:4=(6), j:3=(-1) -> offset%7] + (2)").table().tolist()
        [2, 1, 0, 6, 1, 0, 6, 5, 0, 6, 5, 4]
    """
    tokens = Tokens(text, _GRAMMAR)
    if tokens.take("name", "Z") != "Z":
        tokens.fail("Z", tokens.items[0][2])
    tokens.take("[", "[")
    inputs: list[tuple[str, int]] = []
    columns: list[tuple[int, ...]] = []
    while not tokens.accept("->"):
        if inputs:
            tokens.take(",", ", or ->")
        name = tokens.take("name", "an input axis or ->")
        tokens.take(":", ":")
        extent = int(tokens.take("number", "an extent"))
        tokens.take("=", "=")
        inputs.append((name, extent))
        columns.append(tokens.point())
    outputs: list[tuple[str, int]] = []
    while not tokens.accept("]"):
        if outputs:
            tokens.take(",", ", or ]")
        name = tokens.take("name", "an output or ]")
        outputs.append((name, int(tokens.take("number", "a modulus")) if tokens.accept("%") else 0))
    offset = tokens.point() if tokens.accept("+") else (0,) * len(outputs)
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.items[tokens.next][2])
    for (name, _), column in zip(inputs, columns, strict=True):
        if len(column) != len(outputs):
            tokens.fail(f"{len(outputs)} strides for the axis {name}, one per output", 0)
    return IntegerLayout(tuple(inputs), tuple(outputs), transpose(tuple(columns), len(outputs)), offset)
