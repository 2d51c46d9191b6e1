"""What z3 and ISL say about integer layouts is confirmed by other means, and every answer ends in time."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from layoutalg import integer
from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.integer import IntegerLayout, parse_integer, reach

# too many points for a table, several outputs that wrap: only z3 is left
WIDE = parse_integer("Z[i:1024=(1,0,3), j:1024=(0,1,5), k:2=(512,511,7) -> a%1024, b%1024, c%64]")
SHARED = parse_integer("Z[i:1024=(1,0,0), j:1024=(0,1,0), k:2=(1,1,0) -> a%1024, b%1024, c%64]")


def test_z3_is_confirmed_on_samples() -> None:
    answer = integer.injective(WIDE)
    assert isinstance(answer, Proved)
    assert answer.engine == "z3"
    assert answer.certificate["confirmed"].startswith("no value twice among")  # type: ignore[attr-defined]
    found = integer.injective(SHARED)
    assert isinstance(found, Refuted)
    first, second = (found.witness[side] for side in ("first", "second"))
    assert first != second
    assert SHARED(**first) == SHARED(**second)  # type: ignore[arg-type]


def test_a_false_no_of_z3_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = parse_integer("Z[i:1024=(1,0,0), j:1024=(0,1,0), k:64=(0,0,0) -> a%1000, b%1000, c%64]")
    monkeypatch.setattr(reach, "collision", lambda *_: None)
    monkeypatch.setattr(reach, "_active_kernel", lambda _: integer.Lattice.spanned_by([(2000, 0, 0), (0, 2000, 0)]))
    answer = integer.injective(layout)
    assert isinstance(answer, Unknown)
    assert "some do" in answer.reason


def test_a_false_pair_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "collision", lambda *_: ((0, 0, 0), (1, 0, 0)))
    assert isinstance(integer.injective(WIDE), Unknown)
    monkeypatch.setattr(reach, "collision", lambda *_: ((0, 0, 0), (0, 0, 0)))
    assert isinstance(integer.injective(WIDE), Unknown)


def test_covering_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    skew = IntegerLayout((("i", 3000), ("j", 3000)), (("x", 0), ("y", 0)), ((1, 1), (0, 1)), (0, 0))
    answer = integer.covers(skew, {"x": (2999, 3000), "y": 3000})
    assert isinstance(answer, Proved)
    assert answer.certificate["confirmed"] == "z3 reaches 12 places of the box"
    monkeypatch.setattr(reach, "first_missed", lambda *_: None)
    assert isinstance(integer.covers(skew, {"x": (0, 20), "y": (0, 5)}), Unknown)
    monkeypatch.setattr(reach, "first_missed", lambda *_: [2999, 0])
    assert isinstance(integer.covers(skew, {"x": (2999, 3000), "y": 3000}), Unknown)


def test_outputs_with_a_modulus_may_be_left_out() -> None:
    both = parse_integer("Z[i:4=(1,1), j:4=(0,1) -> row, bank%4]")
    assert isinstance(integer.covers(both, {"row": 4}), Proved)
    assert integer.covers(both, {"row": 4}) == integer.covers(both, {"row": 4, "bank": 4})
    assert isinstance(integer.covers(both, {"row": 5}), Refuted)
    for box in (None, {}, {"bank": 4}, {"row": 4, "lane": 3}, 4):
        with pytest.raises(MalformedError, match="LA731"):
            integer.covers(both, box)  # type: ignore[arg-type]


def test_budgets_are_kept() -> None:
    weights = [10**9 + 7 * k * k + k for k in range(26)]
    hard = IntegerLayout.from_strides([(f"x{k}", 3) for k in range(26)], weights)
    start = time.process_time()
    answer = integer.injective(hard, milliseconds=300)
    assert time.process_time() - start < 0.3 * 1.5 + 0.2 + 1.0  # the first use of z3 loads it
    assert isinstance(answer, Unknown | Refuted)


def test_arrays_of_points_are_bounded_in_bytes() -> None:
    import numpy as np

    layout = IntegerLayout.from_strides({"i": 2**20, "j": 2**20}, (1, 2**20))
    line = np.arange(2**15)
    with pytest.raises(BudgetError, match="LA002"):
        layout.apply({"i": line, "j": line[:, None]})
    with pytest.raises(MalformedError, match="broadcast"):
        layout.apply({"i": line, "j": line[:3]})
    with pytest.raises(MalformedError, match="LA724"):
        IntegerLayout.from_strides({"i": 10**5000}, (1,))
    with pytest.raises(MalformedError, match="LA724"):
        IntegerLayout.from_strides([(f"x{k}", 2**4000) for k in range(4)], (1,) * 4)
    wide = IntegerLayout.from_strides({"i": 2**4000, "j": 2**4000, "k": 2**4000}, (2**4000, 3, 1))
    for shown in (
        str(wide),
        str(integer.index_expression(wide, flat="t")),
        str(integer.injective(wide)),
        str(integer.coalesced(wide)),
    ):
        assert shown
    with pytest.raises(BudgetError, match="LA727"):
        wide.table()


def test_coefficients_are_bounded_in_bits() -> None:
    nines = "9" * 1200
    with pytest.raises(MalformedError, match="LA620"):
        integer.symbolic_access((8, 2), (1, f"{nines}*{nines}*{nines}*n"))
    with pytest.raises(MalformedError, match="LA620"):
        integer.symbolic_access((8, 2), (1, 10**4000))
    assert integer.symbolic_access((8, 2), (1, f"{nines}*n")).guaranteed == 1


def test_bitsets_are_bounded_in_bytes() -> None:
    weights = [2**26 // (k + 1) | 1 for k in range(200)]
    wide = IntegerLayout.from_strides([(f"x{k}", 2) for k in range(200)], weights, modulus=2**27 - 39)
    tracemalloc.start()
    assert isinstance(integer.injective(wide, 500), Refuted | Unknown)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**30
