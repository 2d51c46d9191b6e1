"""Notations read in linear time, tables and caches bounded in bytes."""

from __future__ import annotations

import importlib
import random
import re
import time

import numpy as np
import pytest

import layoutalg as la
from layoutalg import cute
from layoutalg.cute import CuteLayout, make_identity_layout
from layoutalg.f2.layout import parse_linear
from layoutalg.ground import limits
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.piecewise.notation import _prefixes

LONG = [
    "{" + "1" * 50_000,
    "{" + "-" * 99_000,
    "{" + "a*" * 40_000,
    "{" + "1 " * 49_000,
    "{" + "not ( " * 16_000,
    "{ [i] -> [" + "i," * 30_000,
    "[" * 99_999,
    "[" + " " * 99_990,
    "[" + "n," * 45_000 + "] -> { }",
    "(" * 99_999,
    "(4):(" + "E0+" * 30_000,
    "4:E0 -> " + "(" * 99_000,
    "5 + " * 24_000,
    "Sw<1,0,1> o " * 8_000,
    "Sw<1" + "1" * 99_000,
    "Z[" + "1" * 99_000,
    "F2[" + "1" * 99_000,
    "lane " + "8:2 " * 20_000,
    "lane " + "1" * 99_000,
    "a" + " " * 99_990,
    " " * 99_990 + "x",
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:10])
def test_every_reader_is_linear(text: str) -> None:
    """A text of twice the length takes about twice as long, and the longest is refused in little time."""
    for warm in (
        "{ [i] -> [i] : 0 <= i < 4 }",
        "Z[i:4=(1) -> y]",
        "F2[x=(1) -> y:2]",
        "register 2:1, lane 8:2 -> x:16",
    ):
        la.parse(warm)
    began = time.process_time()
    with pytest.raises(LayoutError):
        la.parse(text)
    assert time.process_time() - began < 2


def test_the_length_of_a_text_is_bounded() -> None:
    longest = "4:1" + " " * (limits.NOTATION_CHARACTERS - 3)
    assert la.parse(longest) == CuteLayout(4)
    with pytest.raises(MalformedError, match="LA191"):
        la.parse(longest + " ")
    with pytest.raises(MalformedError, match="the limit is 100000"):
        parse_linear("F2[" + " " * limits.NOTATION_CHARACTERS)


def test_signs_in_a_row_are_counted_as_before() -> None:
    pattern = re.compile(r"(?:(?:-|\bnot\b|!|\w+\s*[*])\s*)+")
    generator = random.Random(5)
    for _ in range(3_000):
        words = generator.choices(
            ["-", "!", " not ", "3*", "a *", "i", " ", "+", "(", "3 "], k=generator.randint(1, 40)
        )
        text = "".join(words)
        wanted = max([len(re.findall(r"-|not|!|[*]", found[0])) for found in pattern.finditer(text)], default=0)
        assert re.search(r"not\s*[*]", text) or _prefixes(text) == wanted, text


def test_tables_are_bounded_in_bytes() -> None:
    with pytest.raises(BudgetError, match="LA002"):
        CuteLayout(2**26).table()
    with pytest.raises(BudgetError, match="LA002"):
        make_identity_layout((2**12,) * 2 + (2,) * 8).table()
    side = CuteLayout((2**16, 2**16))
    with pytest.raises(BudgetError, match="LA002"):
        side.apply((np.arange(2**16)[:, None], np.arange(2**16)))
    assert side.apply((np.arange(2**16), 5)).shape == (2**16,)


def wide_layout(number: int) -> CuteLayout:
    return CuteLayout((1,) * 4_999 + (2,), (*range(number, number + 4_999), 1))


def test_operations_do_not_remember_wide_operands() -> None:
    names = ("algebra", "complement", "composition", "divide", "inverse")
    modules = [importlib.import_module(f"layoutalg.cute.{name}") for name in names]
    caches = {value for module in modules for value in vars(module).values() if hasattr(value, "cache_info")}
    assert len(caches) >= 7
    for cache in caches:
        cache.cache_clear()
    layout, tile = wide_layout(0), CuteLayout(2, 1)
    for operation in (cute.coalesce, cute.right_inverse, cute.left_inverse):
        operation(layout)
    for pair in (cute.composition, cute.logical_divide, cute.logical_product, cute.blocked_product):
        pair(layout, tile)
    cute.complement(layout, 64)
    for cache in caches:
        assert cache.cache_info().currsize < 4  # of narrow operands only
