"""Wrong arguments to every public function and method of hierarchical layouts: used, or refused by name."""

from __future__ import annotations

import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import hierarchy
from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.hierarchy import notation


class Silent:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


LEVELS = hierarchy.hierarchy(lane=4, register=2)
TURNED = hierarchy.reindex(LEVELS, [(3 * index + 1) % 8 for index in range(8)])
PLAIN = la.parse("lane 4:1, register 2:4 -> lane:4, register:2")
MIXED = la.parse("col 4:1, row (2,3):(4^1,8) ^ (4) -> x:24")
PARTIAL = la.parse("x 8:1 -> x_in:4, x_out:2 | x<5")
LINEAR = la.parse("F2[register=(0,1), lane=(1,0), warp=, block= -> dim0:2, dim1:2]")
GOOD: list[Any] = [TURNED, PLAIN, MIXED, MIXED.map, LEVELS, "register|lane", 2, (1, 0), {"lane": 2}]
deep: tuple = (2,)
for _ in range(500):
    deep = (deep,)
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 2**70, 10**5000, 1.5, math.nan, 2j, Fraction(1, 2), "", "lane", "no name", "\ud800",
    "register|lane", "x 8:1 -> x:8", b"lane", np.int64(2), np.float64(2), np.bool_(True), np.array([1, 2]),
    (), (1,), (2, 3), ((4, 1),), ((4, 1), (2, 4)), (((4, 1),),), [1, 0], [[1]], range(8), range(10**9), {}, {"lane": 4},
    {"lane": "4"}, {"lane": 10**5000}, {3: 4}, {1, 2}, object(), object, Silent(), Ellipsis, deep, LEVELS, TURNED,
    np.array(1.5), PARTIAL,
    MIXED.map, MIXED.source, LINEAR, CuteLayout((4, 2), (1, 4)), PARTIAL.guards, PARTIAL.guards[0],
]  # fmt: skip


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in (*hierarchy.__all__, "parse_hierarchical"):
        value = getattr(hierarchy, name, None) or getattr(notation, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield name, value
    layouts = (TURNED, MIXED, PARTIAL)
    for value in (*layouts, MIXED.map, TURNED.map, PARTIAL.guards[0], LEVELS, hierarchy.DigitMap.from_bits((4, 2, 1))):
        for name in dir(type(value)):
            method = getattr(value, name, None)
            if callable(method) and (not name.startswith("_") or name in ("__call__", "__matmul__", "__getitem__")):
                yield f"{type(value).__name__}.{name} of {str(value)[:20]}", method


CALLS = dict(public())


@pytest.mark.parametrize("name", CALLS)
def test_any_argument_is_used_or_refused(name):
    function = CALLS[name]
    parameters = list(inspect.signature(function).parameters.values())
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = len([one for one in positional if one.default is one.empty])
    room = min(max(len(positional), 1 if any(one.kind is one.VAR_POSITIONAL for one in parameters) else 0), 3)
    for place in range(room):
        others = itertools.islice(itertools.permutations(GOOD, max(needed, place + 1) - 1), 3)
        for value, rest in itertools.product(ODD, others):
            arguments = [*rest[:place], value, *rest[place:]]
            try:
                function(*arguments)
            except LayoutError as error:
                assert str(error)
                json.dumps(error.diagnostic.to_json(), allow_nan=False)
