"""CuteLayout: construction, evaluation, value semantics and refusals."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest

from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError


def test_default_stride_is_compact_column_major() -> None:
    assert CuteLayout((4, (2, 3))).stride == (1, (4, 8))
    assert str(CuteLayout(7)) == "7:1"
    assert str(CuteLayout(())) == "():()"


def test_coordinates_of_every_form() -> None:
    layout = CuteLayout(((2, 2), 8), ((1, 16), 2))
    assert layout(3, 5) == layout((1, 1), 5) == layout((3, 5)) == layout(((1, 1), 5)) == layout(23) == 27
    assert layout(np.int64(23)) == 27  # type: ignore[arg-type]
    assert CuteLayout(())() == CuteLayout(())(0) == 0
    assert CuteLayout((5,), (3,))((4,)) == CuteLayout((5,), (3,))(4) == 12


@pytest.mark.parametrize("coordinate", [(32,), (-1,), (4, 0), (0, 8), (0, -1)])
def test_coordinates_outside_are_refused(coordinate: tuple[int, ...]) -> None:
    with pytest.raises(AdmissibilityError, match="LA105 the coordinate lies outside the domain"):
        CuteLayout((4, 8))(*coordinate)


@pytest.mark.parametrize("coordinate", [(1, 2, 3), ((1, 2), 3), (), ((1,),)])
def test_coordinates_of_another_structure_are_refused(coordinate: tuple[object, ...]) -> None:
    with pytest.raises(MalformedError, match="LA104"):
        CuteLayout((4, 8))(*coordinate)  # type: ignore[arg-type]


@pytest.mark.parametrize("coordinate", [1.0, True, "1", None, [1]])
def test_coordinates_must_be_integers(coordinate: object) -> None:
    with pytest.raises(MalformedError, match="coordinate must be an integer"):
        CuteLayout((4, 8))(coordinate)  # type: ignore[arg-type]


def test_table_is_the_function() -> None:
    layout = CuteLayout(((2, 3), 4, 1), ((5, -1), 0, 9))
    assert layout.table().dtype == np.int64
    assert layout.table().tolist() == [layout(index) for index in range(layout.size)]
    assert CuteLayout((2, 0), (1, 1)).table().shape == (0,)
    assert CuteLayout(()).table().tolist() == [0]


def test_table_of_a_large_domain_is_refused() -> None:
    with pytest.raises(BudgetError, match="LA002"):
        CuteLayout((2**20, 2**20)).table()


def test_table_is_vectorised() -> None:
    layout = CuteLayout(((8, 16), (16, 8)), ((1, 128), (8, 2048)))
    best = min(_seconds(layout) for _ in range(30))
    assert best < 1e-3  # about 0.03 ms on the development machine; a loop over elements takes 50 ms


def _seconds(layout: CuteLayout) -> float:
    start = time.perf_counter()
    layout.table()
    return time.perf_counter() - start


def test_apply_reads_arrays() -> None:
    layout = CuteLayout((4, (2, 4)), (10, (1, 100)))
    grid = layout.apply((np.arange(4)[:, None], np.arange(8)[None, :]))
    assert grid.shape == (4, 8)
    assert all(grid[i, j] == layout(i, j) for i in range(4) for j in range(8))
    assert layout.apply(np.arange(32, dtype=np.uint8)).tolist() == layout.table().tolist()
    nested = layout.apply((2, (np.array([0, 1]), np.array([3, 3]))))
    assert nested.tolist() == [layout(2, (0, 3)), layout(2, (1, 3))]
    assert layout.apply([]).shape == (0,)
    assert layout.apply(5).shape == ()


def test_apply_refuses() -> None:
    layout = CuteLayout((4, 8))
    with pytest.raises(AdmissibilityError, match=r"-1 is not in \[0, 32\)") as caught:
        layout.apply(np.array([[0, 1], [-1, 40]]))
    assert caught.value.diagnostic.witness == {"position": 2, "coordinate": -1}
    for bad in (
        np.array([0.5]),
        np.array([True]),
        np.array(["a"]),
        [2**63],
        np.array([2**63], dtype=np.uint64),
        [2**64],
    ):
        with pytest.raises(MalformedError, match="LA104"):
            layout.apply(bad)
    with pytest.raises(MalformedError, match="a tuple of 3 coordinate arrays"):
        layout.apply((0, 0, 0))
    with pytest.raises(MalformedError, match="do not broadcast"):
        layout.apply((np.arange(2), np.arange(3)))


def test_measures() -> None:
    layout = CuteLayout((4, (8, 2)), (16, (1, 64)))
    assert (layout.size, layout.cosize, layout.rank, layout.depth) == (64, 120, 2, 2)
    assert layout.flat == ((4, 16), (8, 1), (2, 64))
    assert CuteLayout(4, -1).cosize == 4
    assert CuteLayout((4, 3), (-1, 5)).cosize == 14
    assert CuteLayout((4, 0)).cosize == CuteLayout((4, 0)).size == 0
    assert CuteLayout(2**40, 2**20).cosize == 2**60 - 2**20 + 1


def test_modes() -> None:
    layout = CuteLayout(((2, 2), 8), ((1, 16), 2))
    assert [str(mode) for mode in layout] == ["(2,2):(1,16)", "8:2"]
    assert CuteLayout(4, 3)[0] == CuteLayout(4, 3)
    for mode in (2, -1):
        with pytest.raises(MalformedError, match=r"LA107 .*\n.*mode must be in \[0, 2\)"):
            layout[mode]


def test_value_semantics() -> None:
    layout = CuteLayout(((2, 2), 8), ((1, 16), 2))
    same = CuteLayout(((2, np.int64(2)), 8), ((1, 16), 2))  # type: ignore[arg-type]
    assert layout == same
    assert hash(layout) == hash(same)
    assert layout != CuteLayout((4, 8))
    assert layout != object()
    assert eval(repr(layout), {"CuteLayout": CuteLayout}) == layout
    for copied in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), copy.deepcopy(layout)):
        assert copied == layout
        assert copied.size == 32
        assert copied(23) == layout(23)
    with pytest.raises(AttributeError):
        layout.shape = 4  # type: ignore[misc]


def test_malformed_layouts_are_refused() -> None:
    with pytest.raises(MalformedError, match=r"LA101 shape and stride nest differently\n  in     \(4,8\):1"):
        CuteLayout((4, 8), 1)
    with pytest.raises(MalformedError, match=r"LA103 .*\n.*shape must have extents >= 0, not \(4, -1\)"):
        CuteLayout((4, -1))
    with pytest.raises(MalformedError, match="LA102 the size leaves"):
        CuteLayout((2**32, 2**31))
    with pytest.raises(MalformedError, match="LA102 the offsets leave"):
        CuteLayout((3, 2), (2**62, 1))
    with pytest.raises(MalformedError, match="LA102 the offsets leave"):
        CuteLayout((2, 2), (2**62, -(2**62)))
    with pytest.raises(MalformedError, match="LA100"):
        CuteLayout((2**62, 2**62, 0))
    with pytest.raises(ValueError, match="LA100"):
        CuteLayout([4, 8])  # type: ignore[arg-type]


def test_operators() -> None:
    outer, inner = CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)
    assert str(outer @ inner) == str(inner.then(outer)) == "2:4"
    with pytest.raises(TypeError):
        outer @ 4  # type: ignore[operator]
    with pytest.raises(LayoutError):
        inner @ outer
