"""The least padding against brute force over all small pitches; minimal sets of conditions."""

from __future__ import annotations

import itertools
import random

import pytest

from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.synth.solving import AtLeast, Multiple, Spread, conflict, least_padding
from tests.judges.shared_solvers import lesser

ROW, PLANE = (("row", 1),), (("plane", 1),)


def drawn(rng: random.Random):
    """Coupled conditions on two pitches, and forms to minimise."""
    columns, rows = rng.randrange(8, 90), rng.randrange(2, 6)
    found = [
        Multiple(ROW, rng.choice((4, 8, 16))),
        AtLeast(ROW, columns),
        AtLeast((("plane", 1), ("row", -rows)), 0),
        Multiple(PLANE, rng.choice((4, 16, 32)), rng.choice((0, 0, 8))),
    ]
    if rng.random() < 0.7:
        found.append(Spread((("row", rng.choice((4, 8))),), rng.choice((4, 16))))
    if rng.random() < 0.4:
        found.append(Spread((("row", 2), ("plane", 2)), 16))
    if rng.random() < 0.4:
        found.append(Multiple((("row", 3), ("plane", 1)), rng.choice((12, 20, 48))))
    if rng.random() < 0.4:
        found.append(AtLeast((("plane", -1),), -rng.randrange(100, 500)))
    objective = rng.choice(([], [{"plane": 1}], [{"row": 2, "plane": 1}]))
    return tuple(found), tuple(tuple(form.items()) for form in objective)


def brute(conditions, objective, reach=1000):
    """The least of all pitches below a reach."""
    rows = [row for row in range(reach) if all(c.holds({"row": row, "plane": 0}) for c in conditions if of_row(c))]
    best = None
    for row, plane in itertools.product(rows, range(0, reach, 4)):
        at = {"row": row, "plane": plane}
        key = (*(sum(f * at[n] for n, f in form) for form in objective), row, plane)
        if (best is None or key < best) and all(condition.holds(at) for condition in conditions):
            best = key
    return None if best is None else {"row": best[-2], "plane": best[-1]}


def of_row(condition) -> bool:
    form = condition.steps if isinstance(condition, Spread) else condition.form
    return {name for name, _ in form} == {"row"}


def test_the_least_of_all_pitches():
    rng = random.Random(11)
    answers = {True: 0, False: 0}
    for _ in range(14):
        conditions, objective = drawn(rng)
        expected = brute(conditions, objective)
        try:
            found = dict(least_padding(("row", "plane"), conditions, [dict(form) for form in objective]).pitches)
        except InfeasibleError:
            found = None
        if found is not None:
            assert lesser(("row", "plane"), conditions, objective, found) is None
        if expected is None and found is not None:
            assert max(found.values()) >= 1000
            continue
        assert found == expected
        answers[expected is not None] += 1
    assert answers[True] > 5


def test_no_smaller_padding_of_the_same_kind_is_admitted():
    found = least_padding(["row"], [Multiple(ROW, 16), AtLeast(ROW, 2 * 72), Spread((("row", 8),), 16)])
    assert found["row"] == 144
    wide = least_padding(["row"], [Multiple(ROW, 16), AtLeast(ROW, 256), Spread((("row", 8),), 16)])
    assert wide["row"] == 272
    assert not any(Spread((("row", 8),), 16).holds({"row": row}) for row in range(256, 272, 16))


def test_conditions_in_conflict_are_a_minimal_set():
    conditions = (AtLeast(ROW, 64), Multiple(ROW, 128), Multiple(PLANE, 4), Spread((("row", 4),), 16))
    core = conflict(("row", "plane"), conditions)
    assert set(core) == {conditions[1], conditions[3]}
    with pytest.raises(InfeasibleError) as caught:
        least_padding(["row", "plane"], conditions)
    assert caught.value.diagnostic.code == "LA873"
    assert "mod 128" in str(caught.value)


@pytest.mark.parametrize(
    ("names", "conditions", "objective"),
    [
        ("row", (), None), ([], (), None), (["row", "row"], (), None), (["a b"], (), None), (["row"], ("x",), None),
        (["row"], (Multiple(ROW, 0),), None), (["row"], (Multiple(PLANE, 4),), None),
        (["row"], (Spread((("row", 32),), 16),), None), (["row"], (Spread((("row", 4),), 12),), None),
        (["row"], (), [{"plane": 1}]), (["row"], (AtLeast(ROW, 4),), [{"row": 1.5}]),
    ],
)  # fmt: skip
def test_malformed_conditions_are_refused(names, conditions, objective):
    with pytest.raises(MalformedError):
        least_padding(names, conditions, objective)


def test_conditions_that_hold_have_no_conflict():
    with pytest.raises(MalformedError):
        conflict(("row",), (AtLeast(ROW, 4),))
