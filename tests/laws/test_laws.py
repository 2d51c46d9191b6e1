"""Every law of the tables holds in every case, and has as many cases as it says."""

from __future__ import annotations

import pytest

from laws import Row, tables
from layoutalg.proofs.laws import law


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("row", [row for table in tables() for row in table.LAWS], ids=lambda row: row.name)
def test_a_law_holds_in_every_case(row: Row) -> None:
    assert row.says or law(row.name).statement
    seen = 0
    for case in row.cases():
        fault = row.judge(case)
        assert fault is None, f"{fault}: {case}"
        seen += 1
    assert seen == (row.count or seen) > 0
