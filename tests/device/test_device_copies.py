"""Kernels with cp.async and named barriers on a real GPU: the bits of the CPU, also with delays before every op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instruments.drawn_programs import WORDS, Drawn
from instruments.handmade import gather, gather_case, gathered

from layoutalg.codegen import launch
from layoutalg.codegen.pipeline import emit

pytestmark = pytest.mark.device("sm_90a")


@pytest.mark.parametrize("delays", [None, 1, 2])
@pytest.mark.parametrize(
    "form", [{}, {"stages": 1, "width": 4}, {"warps": (4, 2), "width": 8}, {"groups": True}], ids=str
)
def test_rows_are_gathered(form: dict[str, Any], delays: int | None) -> None:
    made = emit(gather(**form), "bags", delays=delays)
    for many in (1, 16, 4001):
        table, index = gather_case(many)
        wanted = gathered(table, index)
        bags, status = np.zeros_like(wanted), np.zeros(1, np.int32)
        launch.run(made.kernel, [table, index, bags, many, status])
        assert made.gave_up(int(status[0])) == ""
        assert (bags == wanted).all()


PROGRAMS = {
    "copies": Drawn(3, "arrive", 3, 16, 0, 1, (1, 2), 1, None, 0, 0),
    "groups": Drawn(3, "groups", 2, 8, 1, 2, (3,), 1, None, 0, 0),
    "one thread": Drawn(2, "groups", 0, 4, 1, 1, (2,), 0, None, 0, 0),
    "turns": Drawn(2, "arrive", 2, 16, 0, 1, (1, 3), 0, (9, 4), 0, 0),
    "turns, all meet": Drawn(2, "write", 1, 4, 0, 1, (2, 2), 0, (1, 2), 3, 0),
    "counters start again": Drawn(2, "arrive", 1, 16, 0, 1, (2,), 0, None, 0, 4),
}


@pytest.mark.parametrize("delays", [None, 1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, delays: int | None) -> None:
    made = emit(PROGRAMS[name].program, "drawn", delays=delays)
    for n in (1, 7, 200):
        source = np.random.default_rng(n).integers(0, 1 << 32, WORDS * n, dtype=np.uint32)
        wanted = PROGRAMS[name].results(source, n)
        into, status = np.zeros_like(wanted), np.zeros(1, np.int32)
        launch.run(made.kernel, [source, into, n, status])
        assert made.gave_up(int(status[0])) == ""
        assert (into == wanted).all()
