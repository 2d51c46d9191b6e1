"""Tables that random maps made, whose systems of pitches are badly conditioned: each is carried, by stores as well."""

from __future__ import annotations

import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from judges import tma_engine as engine

import layoutalg as la
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.synth.tensormap import lattice
from layoutalg.synth.tensormap.lattice import Pitches, together

TABLES = dict(np.load(Path(__file__).parent.parent / "data" / "tma_store_tables.npz"))
BYTES = {"unk1", "unk3", "unk7"}
"""Tables of 8-bit elements; the others are of 16 bits."""


def carried(plan, table: np.ndarray, *, storing: bool, distinct: bool) -> None:
    """Assert that the bytes of a plan move every element of a table between its place and its own tensor element."""
    tm = engine.read_map(plan.raw)
    first = np.full(table.shape, -1, dtype=np.int64).reshape(-1)
    owner = {int(place) * tm.size: at for at, place in enumerate(table.reshape(-1))}
    for issue in plan.issues:
        touch = engine.reach(tm, issue.coords, issue.smem_offset_bytes, storing=storing)
        assert touch.inside.all()
        at = np.array([owner[byte] for byte in touch.shared.tolist()])  # a byte outside of the tile has no owner
        assert ((first[at] == -1) | (first[at] == touch.address)).all()
        first[at] = touch.address
    assert (first >= 0).all()
    held = first.reshape(table.shape)
    origin = held[(0,) * table.ndim]
    wanted = np.full(table.shape, origin)
    for axis, index in enumerate(np.indices(table.shape)):
        pitch = held[tuple(int(k == axis) for k in range(table.ndim))] - origin
        wanted += index * pitch
    assert np.array_equal(held, wanted)  # a tile of a tensor: every dimension has one stride
    if distinct:
        assert np.unique(held).size == held.size


@pytest.mark.parametrize(("consumer", "options"), [("tma", {}), ("tma", {"distinct": True}), ("tma.store", {})])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_what_a_map_made_is_admitted_and_moves_as_the_engine_does(name, consumer, options):
    table = TABLES[name]
    answer = la.admissible(table, consumer, dtype="u8" if name in BYTES else "bf16", **options)
    assert isinstance(answer, la.Admitted), answer
    assert answer.certificate.check()
    storing = consumer == "tma.store"
    carried(answer.descriptor, table, storing=storing, distinct=storing or bool(options))


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("((12,2),56,2,6):((64,4608),1,9216,768)", "s16"),
        ("(2,6,(48,3),3):(6912,1152,(1,128),384)", "u8"),
    ],
)
def test_texts_whose_stores_a_map_carries(text, dtype):
    answer = la.admissible(text, "tma.store", dtype=dtype)
    assert isinstance(answer, la.Admitted), answer


def test_a_limit_on_rounds_is_not_said_to_be_time(monkeypatch):
    monkeypatch.setattr(lattice, "APART", 1)
    monkeypatch.setattr(lattice, "CHOICES", 0)
    with clock.within(30), pytest.raises(BudgetError) as stop:
        Pitches((0, 0), ((1, 0), (0, 1))).solved((4, 4), 100, apart=True)
    assert stop.value.diagnostic.code == "LA411"
    assert "1 pair" in stop.value.diagnostic.because
    assert "30 s" not in str(stop.value)
    answer = la.admissible(TABLES["unk5"], "tma.store")
    assert isinstance(answer, la.Unknown)
    assert "pair" in str(answer.reason)


@pytest.mark.parametrize("seed", range(40))
def test_bases_of_the_same_points_have_the_same_answer(seed):
    rng = np.random.default_rng(seed)
    tile = tuple(rng.integers(2, 5, 3).tolist())
    basis = np.diag(rng.integers(1, 9, 3))
    mixed = basis.copy()
    for _ in range(12):
        one, other = rng.permutation(3)[:2]
        mixed[one] += int(rng.integers(-3, 4)) * mixed[other]
    answers = [
        Pitches((0, 1, 0), tuple(tuple(row) for row in rows.tolist())).solved(tile, 1 << 38, apart=True)
        for rows in (basis, mixed)
    ]
    assert answers[0] == answers[1] is not None
    assert together(answers[0], tile) is None


def test_fine_modes_are_decided_without_all_signs():
    for order in list(permutations(range(4)))[::5]:
        strides = [1 << (4 * place + step) for place in order for step in (2, 0, 3, 1)][:14]
        text = f"({','.join(['2'] * 14)}):({','.join(map(str, strides))})"
        with clock.within(60):  # about 0.5 s on an idle core; with all signs minutes
            for consumer in ("tma", "tma.store"):
                assert not isinstance(la.admissible(text, consumer), la.Unknown)


@pytest.mark.parametrize("consumer", ["tma", "tma.store"])
@pytest.mark.parametrize("seed", range(6))
def test_extents_of_1_beyond_16_dimensions_change_no_answer(seed, consumer):
    rng = np.random.default_rng(seed)
    moving = [2] * 9 if seed % 2 else [3, 2, 8, 2, 4]
    order = rng.permutation(len(moving))
    strides = [0] * len(moving)
    for place, at in enumerate(order):
        strides[at] = math.prod(moving[other] for other in order[:place])
    modes = [*zip(moving, strides, strict=True), *((1, int(rng.integers(0, 99))) for _ in range(30))]
    places = sorted(rng.choice(len(modes), len(moving), replace=False).tolist())
    rest = iter(modes[len(moving) :])
    mixed = [modes[places.index(place)] if place in places else next(rest) for place in range(len(modes))]
    long, short = (la.parse(f"({','.join(str(e) for e, _ in part)}):({','.join(str(s) for _, s in part)})")
                   for part in (mixed, modes[: len(moving)]))  # fmt: skip
    answers = [la.admissible(layout, consumer) for layout in (long, short)]
    assert type(answers[0]) is type(answers[1])
    if isinstance(answers[0], la.Admitted):
        assert answers[0].descriptor == answers[1].descriptor
        assert la.proofs.check(answers[0].descriptor)
    else:
        assert answers[0].rules == answers[1].rules
        assert len(answers[0].witness.get("coordinate", mixed)) == len(mixed)
