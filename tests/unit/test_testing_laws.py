"""The law suite can fail: planted faults are found with their least operands, and nothing passes by refusing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from judges import peers

import layoutalg as la
from layoutalg import cute
from layoutalg.cute import CuteLayout
from layoutalg.testing.laws import LAWS, LawSuite, Library, counterexample
from layoutalg.testing.laws.suite import tried

pytest_plugins = ("pytester",)
OURS = peers.cute(strides=st.integers(0, 8))


def crash(*_: Any) -> Any:
    raise KeyError("no such mode")


def always(answer: Any) -> Callable[..., Any]:
    """A function that gives one answer whatever it is asked."""
    return lambda *_: answer


def same(layout: Any, *_: Any) -> Any:
    return layout


PLANTED: list[tuple[str, dict[str, Any], str]] = [
    ("evaluate", {"value": lambda a, i: a(i) + (i == 3)}, "4:1: the answer has the values 0 1 2 4, not 0 1 2 3"),
    ("evaluate", {"size": lambda a: a.size + (a.size == 6)}, "6:1: the answer cannot be evaluated: AdmissibilityError"),
    ("equality", {"equal": lambda a, b: a.size == b.size}, "2:1, 2:0: the answer has the values 0 1, not 0 0"),
    ("equality", {"equal": always(False)}, "1:1, 1:1: it differs from itself built again"),
    ("cosize", {"cosize": lambda a: a.size}, "2:0: cosize is 2, not 1"),
    ("coalesce", {"coalesce": lambda a: a[0]}, "(1,2):(1,1): the answer has the values 0, not 0 1"),
    ("compose", {"compose": lambda *pair: pair[1]}, "2:0, 2:1: the answer has the values 0 1, not 0 0"),
    ("compose", {"compose": crash}, "1:1, 1:0: compose ended with KeyError: 'no such mode'"),
    ("complement of a chain", {"complement": lambda a, n: CuteLayout(n, a.cosize)}, "2:2, 1: the values plus 0 do not"),
    ("complement of a chain", {"complement": always(CuteLayout(1))}, "1:1, 2: the values plus 0 fill only 1"),
    ("complement", {"complement": always(CuteLayout(1))}, "2:2, 1: the values plus 0 do not fill"),
    ("right inverse", {"right_inverse": lambda a: CuteLayout(a.size)}, "2:0: R(1) = 1, which L does not send to 1"),
    ("left inverse of a chain", {"left_inverse": always(CuteLayout(64))}, "2:2: L(1) = 2, and R(2) = 2"),
    ("left inverse", {"left_inverse": always(CuteLayout(1))}, "2:1: R has no value at 1: AdmissibilityError"),
    ("inverse", {"inverse": lambda a: cute.CuteLayout(a.inverse().size)}, "(2,2):(2,1): the answer has the values"),
    ("inverse", {"inverse": lambda a: CuteLayout(a.size) if a.cosize < a.size else a.inverse()},
     "2:0: the answer has the values 0 1; the layout is no bijection"),
    ("divide by a tile that fits", {"logical_divide": same}, "4:1, 2:2: the answer has the values 0 1 2 3,"),
    ("divide", {"logical_divide": same}, "1:1, 2:1: the answer has the values 0; there is no answer"),
    ("product of a chain", {"logical_product": same}, "1:1, 2:1: the answer has the values 0, not 0 1"),
    ("repeat", {"repeat": lambda a, n: cute.logical_product(a, max(1, n - 1))}, "1:1, 2: the answer has the values 0,"),
    ("upcast", {"upcast": same}, "1:1, 2: the answer has the values 0 1, not 0"),
    ("downcast", {"downcast": same}, "1:1, 2: the answer has the values 0, not 0 1"),
    ("swizzle", {"swizzle": lambda *pair: pair[1]}, "(1, 0, 1), 2: 2 goes to 2, not to 3"),
    ("F2 matrix", {"f2_matrix": always([[0]])}, "2:1: the matrix sends 1 to 0, the layout to 1"),
]  # fmt: skip


@pytest.mark.parametrize(("law", "fault", "told"), PLANTED, ids=[row[0] for row in PLANTED])
def test_a_planted_fault_is_found_with_its_least_operands(law: str, fault: dict[str, Any], told: str) -> None:
    found = counterexample(dataclasses.replace(OURS, **fault), law)
    assert found is not None
    assert found.law == law
    assert str(found).startswith(told)


def test_every_law_is_planted_but_those_of_others() -> None:
    assert set(LAWS) - {row[0] for row in PLANTED} == {"associativity", "product"}


def test_a_refusal_is_no_counterexample_and_no_pass() -> None:
    refusing = dataclasses.replace(OURS, coalesce=crash, refusals=(KeyError,))
    assert tried(refusing, "coalesce", 20) == (None, 0)
    suite = type("Suite", (LawSuite,), {"library": refusing, "examples": 20})()
    with pytest.raises(pytest.fail.Exception, match="refuses everything that a law asks"):
        suite.test_law("coalesce")


def test_operands_listed_first_are_tried_first() -> None:
    wrong = dataclasses.replace(OURS, coalesce=lambda a: a[0])
    found, _ = tried(wrong, "coalesce", 1, [(((4, 8), (1, 4)),)])
    assert found is not None
    assert found.text == "(4,8):(1,4)"


def test_a_users_suite_reports_and_expects(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        from layoutalg.cute import CuteLayout, complement
        from layoutalg.testing.laws import LawSuite, Library

        FIELDS = dict(
            name="mine", build=lambda spec: CuteLayout(*spec), size=lambda a: a.size, value=lambda a, i: a(i),
            coalesce=lambda a: a[0], complement=complement,
        )

        class TestWrong(LawSuite):
            library = Library(**FIELDS)
            examples = 50

        class TestKnown(LawSuite):
            library = Library(**FIELDS)
            examples = 50
            known = {"coalesce": "keeps the first mode alone"}
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rx")
    result.assert_outcomes(passed=6, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "mine breaks a law",
            "  law    coalesce: the coalesced layout is the same function",
            "  at     (1,2):(1,1)",
            "  since  the answer has the values 0, not 0 1",
            "XFAIL *test_law[[]coalesce[]]* - keeps the first mode alone",
        ]
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Library(name="", build=len, size=len, value=max), "must be a name"),
        (lambda: dataclasses.replace(OURS, build=3), "must be a function"),
        (lambda: dataclasses.replace(OURS, size=None), "must be a function"),
        (lambda: dataclasses.replace(OURS, refusals=ValueError), "must be a tuple of exceptions"),
        (lambda: dataclasses.replace(OURS, strides=3), "must be a Hypothesis strategy"),
        (lambda: counterexample(OURS, "no such law"), "must be one of evaluate"),
        (lambda: counterexample(OURS, "coalesce", 0), "must be at least 1"),
    ],
)
def test_what_is_no_library_is_refused(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(la.MalformedError, match=told) as caught:
        call()
    assert caught.value.diagnostic.code == "LA457"
