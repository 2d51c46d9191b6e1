"""One protocol for all families: the laws of ``judges.protocol`` over random layouts and over answers of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from judges import protocol
from judges.families import ANSWERS, FAMILIES, OPERATIONS, PAIRS, PARTIAL, answers
from judges.protocol import LAWS, PARTIAL_LAWS, pair

import layoutalg as la
from layoutalg.cute import CuteLayout
from layoutalg.ground.layout import Layout

Law = Callable[[Any], None]
ALL: dict[tuple[str, str], tuple[st.SearchStrategy[Any], Law]] = {
    **{(family, law): (FAMILIES[family], LAWS[law]) for family in FAMILIES for law in LAWS},
    **{(f"answers: {family}", law): (ANSWERS[family], LAWS[law]) for family in ANSWERS for law in LAWS},
    **{(family, law): (PARTIAL[family], PARTIAL_LAWS[law]) for family in PARTIAL for law in PARTIAL_LAWS},
    **{(family, "@"): (PAIRS[family], pair) for family in PAIRS},
}


@pytest.mark.parametrize(("family", "law"), list(ALL))
def test_every_family_obeys_the_laws(family: str, law: str, portion: Callable[[range], range]) -> None:
    values, check = ALL[family, law]

    @settings(
        max_examples=len(portion(range(25))), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(values)
    def hold(value: Any) -> None:
        check(value)

    hold()


@pytest.mark.parametrize("family", list(OPERATIONS))
def test_every_operation_answers_some_of_its_operands(family: str) -> None:
    """The laws would say nothing of an operation that refuses every operand that is drawn."""
    operands, operations = OPERATIONS[family]
    steady = settings(max_examples=200, derandomize=True, database=None, phases=[Phase.generate])
    for operation in operations:
        find(answers(operands, [operation], strict=True), lambda _: True, settings=steady)


class Planted(Layout):
    """A layout of four points with one thing wrong."""

    def __init__(self, **wrong: Any) -> None:
        self._right = la.LinearLayout((("x", 2),), (("y", 2),), (2, 1))
        self._wrong = wrong

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return object.__getattribute__(self, name)
        return self._wrong[name] if name in self._wrong else getattr(self._right, name)

    def __call__(self, **point: int) -> Any:
        return self._right(**point)

    def __str__(self) -> str:
        return self._wrong.get("text", str(self._right))

    def __repr__(self) -> str:
        return self._wrong.get("text", repr(self._right))

    def __eq__(self, other: object) -> bool:
        return self._right == (other._right if isinstance(other, Planted) else other)

    def __hash__(self) -> int:
        return int(self._wrong.get("hash", lambda _: hash(self._right))(self))


RIGHT = la.LinearLayout((("x", 2),), (("y", 2),), (2, 1))


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("box", {"size": 5}),
        ("box", {"out_dims": {"y": 0}}),
        ("box", {"in_dims": {"x": 2}}),
        ("at", {"at": lambda index: (0, 2, 1, 2)[index]}),
        ("at", {"at": lambda index: RIGHT.at(index % 4)}),
        ("at", {"at": lambda index: float(RIGHT.at(index))}),
        ("table", {"table": lambda: RIGHT.table()[::-1]}),
        ("table", {"table": lambda: RIGHT.table()[:, None, None]}),
        ("apply array", {"apply": lambda coords: RIGHT.table()[3 - coords]}),
        ("apply array", {"apply": lambda coords: RIGHT.table()[coords].reshape(-1)}),
        ("apply mapping", {"apply": lambda coords: {"z": RIGHT.apply(coords)["y"]}}),
        ("apply mapping", {"apply": lambda coords: {"y": RIGHT.apply(coords)["y"] ^ 1}}),
        ("inverse", {"inverse": lambda: la.LinearLayout((("y", 2),), (("x", 2),), (1, 2))}),
        ("parse(str)", {"text": "F2[x=(1)(2) -> y:4]"}),
        ("eval(repr)", {"text": "CuteLayout(4, 1)"}),
        ("frozen", {"hash": id}),
        ("equivalent", {}),
        ("convert", {}),
    ],
)
def test_a_wrong_layout_breaks_its_law(law: str, wrong: dict[str, Any]) -> None:
    LAWS[law](RIGHT)
    with pytest.raises((AssertionError, la.LayoutError, pytest.fail.Exception)):
        LAWS[law](Planted(**wrong))


def test_wrong_answers_of_the_bridges_break_their_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(protocol.BRIDGES, "to_cute", lambda _: CuteLayout(4, 1))
    with pytest.raises(AssertionError):
        LAWS["convert"](RIGHT)
    monkeypatch.setattr(la, "equivalent", lambda *_: la.Refuted("table", {}))
    with pytest.raises(AssertionError):
        LAWS["equivalent"](RIGHT)
    monkeypatch.setattr(la, "compose", lambda *_, **__: CuteLayout(4, 1))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        LAWS["compose"](RIGHT)
    with pytest.raises(AssertionError):
        pair((RIGHT, la.LinearLayout((("z", 2),), (("x", 2),), (2, 1))))
