"""Numbers, axes and powers of piecewise layouts beyond those of machines."""

from __future__ import annotations

import pytest

from layoutalg.ground.errors import LayoutError
from layoutalg.piecewise import PiecewiseLayout, PointSet


def test_moduli_beyond_64_bits_are_exact() -> None:
    wide = PiecewiseLayout(f"{{ [i] -> [i // 2, (3i) % {2**63}] : 0 <= i < {2**63} }}")
    assert [tuple(wide(i=i).values()) for i in (5, 2**62, 2**63 - 1)] == [
        (i // 2, 3 * i % 2**63) for i in (5, 2**62, 2**63 - 1)
    ]  # fmt: skip
    assert PointSet(f"{{ [x, y] : 0 <= x < 3 and 0 <= y < 3 and (3x + y) mod {10**30} = 0 }}").count() == 1


def test_more_axes_than_arrays_have() -> None:
    names = [f"x{k}" for k in range(80)]
    points = PointSet(f"{{ [{', '.join(names)}] : {' and '.join(f'{n} = 1' for n in names)} }}")
    assert points.sample() == dict.fromkeys(names, 1)
    assert PiecewiseLayout("{ [] -> " + "[3]" * 101 + " }").at(0) == (3,) * 101


@pytest.mark.parametrize(
    "text",
    [
        "{ [i] -> [13^99999999999999999999] }", "{ [i] -> [9^9^9^9] }", "{ [i] -> [(9^99)^99] : 0 <= i < 3 }",
        "{ [i, j] -> [13>" + "9" * 80 + "^" + "9" * 80 + "] }", "{ [i] : i < 2 ^ 100 }", "{ [i] : i < 2^i }",
    ],
)  # fmt: skip
def test_powers_are_bounded_before_they_are_computed(text: str) -> None:
    for reader in (PiecewiseLayout, PointSet):
        with pytest.raises(LayoutError):
            print(reader(text))


def test_a_small_power_is_a_number() -> None:
    assert PointSet("{ [i] : 0 <= i < 2^4 }").count() == 16


def test_a_value_that_is_not_an_integer_is_not_a_point() -> None:
    assert PointSet("{ [9223372036854775807 / 26] }").is_empty()
    assert PointSet("{ [] -> [9223372036854775807 / 26] }").is_empty()
