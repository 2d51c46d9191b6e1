"""Functoriality as a certificate of composition, on domains that nobody can enumerate; forged ones are refuted."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.cute import Morphism
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs import checker
from layoutalg.proofs.certify import Certificate, functoriality
from layoutalg.proofs.certify.functions import function

F = Morphism((4, 8), (8, 4), (1, 0))
G = Morphism((8, 4), (8, 2, 4), (0, 2))


def stages(texts: dict[str, str]) -> dict[str, object]:
    """Layouts as a statement writes them."""
    return {name: function(la.parse(text)).document() for name, text in texts.items()}


def test_the_claim_is_the_composition_of_three_layouts() -> None:
    made = functoriality(F, G)
    assert made.kind == "composition"
    assert made.statement == stages({"f": "(8,4):(1,16)", "g": "(4,8):(8,1)", "h": "(4,8):(16,1)"})
    assert str(made.check()).startswith("proved        h = f o g at 32 points")


def test_forty_digits_take_no_enumeration() -> None:
    turned = Morphism((2,) * 40, (2,) * 40, tuple(reversed(range(40))))
    assert functoriality(turned, turned).check()


@pytest.mark.parametrize("point", [Morphism((), (), ()), Morphism(1, (), (None,)), Morphism((), (4,), ())])
def test_points_are_certified(point: Morphism) -> None:
    assert functoriality(point, Morphism.identity(point.codomain)).check()


@pytest.mark.parametrize(
    ("inner", "outer", "code"),
    [(F, F.to_layout(), "LA465"), (None, F, "LA465"), (F, Morphism(2, 2, (0,)), "LA184")],
)
def test_what_does_not_compose_is_refused(inner: Morphism, outer: Morphism, code: str) -> None:
    with pytest.raises(LayoutError) as caught:
        functoriality(inner, outer)
    assert caught.value.diagnostic.code == code


def test_a_checker_that_disagrees_is_not_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, error in ((1, "LA427"), (2, "LA428")):
        monkeypatch.setattr(checker, "check", lambda *_, said=code: (said, "planted"))
        with pytest.raises(LayoutError, match=f"{error} .*\n.*\n.*planted"):
            functoriality(F, G)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"h": "(512,512):(1,512)"}, "h is not f o g, at [1], got [1], expected [512]"),
        ({"f": "(512,512):(512,1)"}, "h is not f o g, at [1], got [512], expected [1]"),
        ({"g": "(512,512):(512,2)"}, "a value is not in the domain 0 to 262143"),
        ({"h": "(512,256):(512,1)"}, "h has another size than g"),
    ],
)
def test_forged_claims_fail_by_arithmetic_alone(changes: dict[str, str], fact: str) -> None:
    turned = Morphism((512, 512), (512, 512), (1, 0))
    made = functoriality(turned, Morphism.identity((512, 512)))
    verdict = Certificate(made.kind, {**made.statement, **stages(changes)}, made.evidence).check()
    assert isinstance(verdict, Refuted)
    assert str(verdict.witness["what"]).startswith(fact)
