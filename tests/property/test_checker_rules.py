"""The rules of the stand-alone checker against enumeration: random stages, equal and not, by digits and by solvers."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from judges.certificates import told as judged_by_checker

Stages = list[list[Any]]


def plainly(stages: Stages, values: list[int]) -> list[int] | None:
    """The values of stages at one point, written without the checker; None where there is none."""
    for name, *given in stages:
        if name == "split":
            rest, values = values[0], []
            for extent in given[0][:-1]:
                values.append(rest % extent)
                rest //= extent
            values.append(rest)
        elif name == "affine":
            values = [sum(a * x for a, x in zip(row, values, strict=True)) + b for row, b in zip(*given, strict=True)]
        elif name == "mod":
            values = [x % m if m else x for x, m in zip(values, given[0], strict=True)]
        elif name == "xor":
            columns, image = given
            low = values[0] % (1 << len(columns))
            for bit, column in enumerate(columns):
                image ^= column if low >> bit & 1 else 0
            values = [values[0] - low + image]
        elif name == "table":
            values = [given[0][values[0]]]
        elif name == "fork":
            parts = [plainly(part, values) for part in given]
            if None in parts:
                return None
            values = [x for part in parts if part is not None for x in part]
        else:
            found = next((piece for piece in given[0] if holds(piece, values)), None)
            if found is None:
                return None
            known = floors(found, values)
            values = [sum(a * x for a, x in zip(row, known, strict=True)) + b for row, b in found[2]]
    return values


def floors(piece: list[Any], values: list[int]) -> list[int]:
    known = list(values)
    for row, constant, divisor in piece[0]:
        known.append((sum(a * x for a, x in zip(row, known, strict=True)) + constant) // divisor)
    return known


def holds(piece: list[Any], values: list[int]) -> bool:
    known = floors(piece, values)
    sides = [(sum(a * x for a, x in zip(row, known, strict=True)) + b, how) for row, b, how in piece[1]]
    return all(side == 0 if how == "=" else side >= 0 for side, how in sides)


def drawn(rng: random.Random, size: int, tables: bool) -> Stages:
    """Random stages on 0 .. size - 1 with one value in the end."""
    stages: Stages = []
    low, high = 0, size - 1
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["digits", "digits", "xor", "mod", "affine", "piece", "fork", *["table"] * tables])
        if kind == "digits":
            extents = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
            stages += [["split", extents], ["affine", [[rng.randint(-6, 9) for _ in extents]], [rng.randint(-3, 8)]]]
        elif kind == "xor":
            bits = rng.randint(0, 4)
            stages.append(["xor", [rng.randrange(1 << rng.randint(1, 6)) for _ in range(bits)], rng.randrange(8)])
        elif kind == "mod":
            stages.append(["mod", [rng.randint(0, 9)]])
        elif kind == "affine":
            stages.append(["affine", [[rng.randint(-3, 3)]], [rng.randint(-9, 9)]])
        elif kind == "fork":
            parts = [[["mod", [rng.randint(1, 6)]]], [["affine", [[rng.randint(-2, 2)]], [0]]]]
            stages += [["fork", *parts], ["affine", [[rng.randint(-4, 4), rng.randint(-4, 4)]], [1]]]
        elif kind == "piece":
            floor = [[rng.randint(-3, 3)], rng.randint(-5, 5), rng.randint(1, 6)]
            always = [[0, 0], 0, ">="] if rng.random() < 0.6 else [[1, 0], rng.randint(-8, 8), rng.choice(["=", ">="])]
            pieces = [[[floor], [always], [[[rng.randint(-2, 2), rng.randint(-4, 4)], 2]]]]
            pieces += [[[], [], [[[1], 0]]]] * rng.randint(0, 1)
            stages.append(["pieces", pieces])
        else:
            seen = [plainly(stages, [index]) for index in range(size)]
            numbers = [value[0] for value in seen if value is not None]
            low, high = min(numbers, default=0), max(numbers, default=0)
            stages += [["affine", [[1]], [-low]], ["table", [rng.randint(-9, 9) for _ in range(high - low + 1)]]]
    return stages


def rewritten(rng: random.Random, stages: Stages, size: int) -> Stages:
    """Other stages of the same function, or nearly: a digit taken apart, perhaps one number changed."""
    made = copy.deepcopy(stages)
    choice = rng.random()
    if choice < 0.4:
        at = rng.randint(2, max(2, size))
        made = [["split", [at, 10**6]], ["affine", [[1, at]], [0]], *made]
    elif choice < 0.6 and made:
        made = [["xor", [1, 2, 4, 8], 0], *made, ["affine", [[1]], [0]]]
    if rng.random() < 0.5:
        numbers = [
            (part, place)
            for stage in made
            for part in walk(stage)
            for place, number in enumerate(part)
            if isinstance(number, int)
        ]
        if numbers:
            part, place = rng.choice(numbers)
            part[place] += rng.choice([-1, 1])
    return made


def walk(value: Any) -> list[list[Any]]:
    inner = [part for entry in value if isinstance(entry, list) for part in walk(entry)]
    return [value, *inner]


def factors(rng: random.Random, size: int) -> list[int]:
    """Random digits of a size."""
    digits: list[int] = []
    while size > 1:
        digit = rng.choice([d for d in range(2, size + 1) if size % d == 0])
        digits.append(digit)
        size //= digit
    return digits


def told(f: Stages, g: Stages, size: int, by: dict[str, Any]) -> tuple[int, str]:
    statement = {name: {"size": size, "stages": stages} for name, stages in (("f", f), ("g", g))}
    return judged_by_checker("equality", statement, by)


def formed(stages: Stages) -> bool:
    """Whether moduli, extents, columns and divisors are numbers that a stage may have."""
    for name, *given in stages:
        if name in ("mod", "split") and min(given[0], default=1) < (name == "split"):
            return False
        if name == "xor" and min([*given[0], given[1]]) < 0:
            return False
        if name == "fork" and not all(formed(part) for part in given):
            return False
        if name == "pieces" and any(floor[2] < 1 for piece in given[0] for floor in piece[0]):
            return False
    return True


def judged(f: Stages, g: Stages, size: int) -> bool | None:
    """Whether both are equal; None where one of them is no function."""
    if not (formed(f) and formed(g)):
        return None
    try:
        return all(plainly(f, [index]) == plainly(g, [index]) for index in range(size))
    except (IndexError, ValueError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_by_digits_is_so_and_what_is_refuted_is_not(seed: int) -> None:
    rng = random.Random(seed)
    count = {0: 0, 1: 0, 2: 0}
    for _ in range(700):
        size = rng.choice([1, 2, 6, 8, 12, 16, 24, 30, 36, 64, 90, 120])
        f = drawn(rng, size, tables=False)
        g = rewritten(rng, f, size)
        same = judged(f, g, size)
        code, sentence = told(f, g, size, {"by": "digits", "digits": factors(rng, size)})
        count[code] += 1
        if code == 0:
            assert same is True, (f, g, size)
        elif code == 1:
            assert same is not True, (f, g, size, sentence)
    assert count[0] > 150
    assert count[1] > 100
    assert count[2] < 200


def test_what_is_listed_is_what_enumeration_says() -> None:
    rng = random.Random(5)
    for _ in range(600):
        size = rng.choice([0, 1, 5, 16, 24, 90])
        f = drawn(rng, size, tables=True)
        g = rewritten(rng, f, size)
        same = judged(f, g, size)
        code, sentence = told(f, g, size, {"by": "table"})
        assert code == (0 if same else 1), (f, g, size, sentence)


def test_what_solvers_say_is_what_enumeration_says() -> None:
    pytest.importorskip("z3")
    rng = random.Random(6)
    seen = {0: 0, 1: 0, 2: 0}
    for _ in range(60):
        size = rng.choice([1, 6, 16, 24])
        f = drawn(rng, size, tables=False)
        g = rewritten(rng, f, size)
        same = judged(f, g, size)
        code, sentence = told(f, g, size, {"by": "solvers"})
        seen[code] += 1
        if code != 2:
            assert (code == 0) == bool(same), (f, g, size, sentence)
    assert seen[0] > 15
    assert seen[1] > 15
