"""Every law of the tables holds in every case, and has as many cases as it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from laws import Row, tables
from layoutalg.proofs.laws import law


@pytest.mark.parametrize("row", [row for table in tables() for row in table.LAWS], ids=lambda row: row.name)
def test_a_law_holds_in_every_case(row: Row, portion: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
    assert row.says or law(row.name).statement
    cases = list(row.cases())
    assert len(cases) == (row.count or len(cases)) > 0
    for case in portion(cases):
        fault = row.judge(case)
        assert fault is None, f"{fault}: {case}"
