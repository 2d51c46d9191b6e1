"""Public functions of the integer family under arguments of every kind: an answer, or an error of the library."""

from __future__ import annotations

import importlib
import inspect
import random
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import integer
from layoutalg.ground.errors import LayoutError
from layoutalg.integer import IntegerLayout

# what engines return; they are not made by hand
RECORDS = {"Hermite", "ImageInverse", "RightInverse", "Smith", "SymbolicAccess"}


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def _deep(kind: type) -> Any:
    value: Any = kind()
    for _ in range(3000):
        value = kind([value])
    return value


TWO = la.parse("Z[i:4=(1,2), j:3=(4,1) -> x, y%5] + (1,2)")
ONE = IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 4))
JUNK: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    3,
    2**70,
    10**5000,
    1.5,
    float("nan"),
    1j,
    "",
    "i",
    "for",
    "i+1",
    "\ud800",
    "(((",
]
JUNK += ["i" * 10_000, b"x", [], (), {}, set(), [1, 2], (1, 2), [[1, 2], [3, 4]], [["i", 3]], {"i": 2}, {"i": -1}]
JUNK += [{"i": 10**5000}, {"i": None}, {3: 4}, {"i": (0, 2)}, {"x": 3, "y": 5}, {"x": (0, 2), "y": (1, 2, 3)}]
JUNK += [_deep(list), _deep(tuple), {"i": _deep(list)}, np.array([1, 2]), np.array([[1, 2], [3, 4]]), np.array(3)]
JUNK += [np.float64(1), np.int64(2), np.array(["a"]), np.zeros(0), np.array([2**70], dtype=object), np.array([None])]
JUNK += [object(), _Unprintable(), len, int, la, TWO, ONE, la.parse("(4,8):(1,4)"), range(3), slice(1), ["i", "j"]]
JUNK += [
    integer.solve([[2]], [1]),
    integer.solve([[2]], [2]),
    integer.kernel_lattice(ONE),
    integer.snf([[2]]),
    ("x",),
    ["i", "i"],
]


def _targets() -> list[tuple[str, Any]]:
    found = [
        (name, getattr(integer, name)) for name in integer.__all__ if name not in RECORDS and name != "parse_integer"
    ]
    found.append(("evaluate", importlib.import_module("layoutalg.integer.expression").evaluate))
    found += [(name, getattr(importlib.import_module("layoutalg.convert"), name)) for name in ("to_integer", "to_cute")]
    for value in (
        TWO,
        ONE,
        integer.index_expression(ONE),
        integer.Lattice.spanned_by([(2, 0), (0, 3)]),
    ):
        for name in (
            *[n for n in dir(value) if not n.startswith("_")],
            "__call__",
            "__matmul__",
            "__contains__",
            "__and__",
        ):
            method = getattr(value, name, None)
            if callable(method):
                found.append((f"{type(value).__name__}.{name}", method))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_argument_is_answered_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    targets = _targets()
    for _ in range(1000):
        name, function = rng.choice(targets)
        arguments: list[Any] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.default is not parameter.empty and rng.random() < 0.4:
                break
            known = parameter.name in ("layout", "first", "second", "outer", "inner") and rng.random() < 0.5
            arguments.append(rng.choice((TWO, ONE)) if known else rng.choice(JUNK))
        try:
            function(*arguments)
        except LayoutError as error:
            assert str(error)
        except BaseException as error:
            kinds = [type(argument).__name__ for argument in arguments]
            raise AssertionError(f"{name}({', '.join(kinds)}): {type(error).__name__} {str(error)[:200]}") from None


@pytest.mark.parametrize("junk", range(len(JUNK)))
def test_coordinates_by_name(junk: int) -> None:
    for other in (0, JUNK[(7 * junk) % len(JUNK)]):
        try:
            answer = ONE(i=JUNK[junk], j=other)
        except LayoutError as error:
            assert str(error)
        else:
            assert set(answer) == {"offset"}
