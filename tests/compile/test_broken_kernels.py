"""Kernels with one mistake do something else than the right pipeline: their PTX says so; delays change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from judges.broken_kernels import CASES, Broken, broken_kernel, broken_texts, case, right, unlike
from judges.pipeline_breaks import breaks

pytestmark = pytest.mark.compile
Portion = Callable[[Sequence[Any]], Sequence[Any]]


@pytest.mark.parametrize("name", CASES)
def test_right_kernels_are_right_with_and_without_delays(name: str) -> None:
    for delays in (None, 1):
        assert unlike(Broken(name, "", "", right(name, delays))) == ""


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_read_from_the_text(name: str, portion: Portion) -> None:
    drawn = portion(list(breaks(case(name).program.pipeline.to_json(), together=True))[::12])
    kernels = [made for one in drawn if isinstance(made := broken_kernel(name, one), Broken)]
    for made in [*kernels, *portion(list(broken_texts(name)))]:
        assert unlike(made) or made.unread, f"{made.bug} {made.what}"
