"""MLIR's affine expressions, evaluated by Python."""

from __future__ import annotations

import re


class Whole(int):
    """An integer whose ``/`` is MLIR's ``ceildiv``."""

    def __add__(self, other: int) -> Whole:
        return Whole(int(self) + int(other))

    def __sub__(self, other: int) -> Whole:
        return Whole(int(self) - int(other))

    def __mul__(self, other: int) -> Whole:
        return Whole(int(self) * int(other))

    def __floordiv__(self, other: int) -> Whole:
        return Whole(int(self) // int(other))

    def __truediv__(self, other: int) -> Whole:
        return Whole(-(-int(self) // int(other)))

    def __mod__(self, other: int) -> Whole:
        return Whole(int(self) % int(other))

    def __neg__(self) -> Whole:
        return Whole(-int(self))


def evaluated(text: str, **dimensions: int) -> int:
    """The value of an expression at one point."""
    code = text.replace("floordiv", "//").replace("ceildiv", "/").replace("mod", "%")
    code = re.sub(r"\b(\d+)\b", r"Whole(\1)", code)
    return int(eval(code, {"Whole": Whole} | {name: Whole(value) for name, value in dimensions.items()}))
