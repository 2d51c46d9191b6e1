"""The pytest plugin: saves pictures of failed comparisons, and explains a failed ``==`` of two layouts.

Implementation notes: pytest loads this module at every start, even in unrelated projects, so it imports only what
pytest has already imported; hooks load the rest on demand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layoutalg import testing

NAME_CHARACTERS = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--layoutalg-pictures``."""
    group = parser.getgroup("layoutalg")
    group.addoption(
        "--layoutalg-pictures",
        metavar="DIR",
        default=None,
        help="save an SVG picture of every failed layout comparison into DIR",
    )


def _name(item: pytest.Item) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", item.nodeid.rpartition("/")[2])[:NAME_CHARACTERS]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Save the pictures of a test if the option is set."""
    folder = item.config.getoption("--layoutalg-pictures")
    if folder is None:
        return (yield)
    with testing.report.pictures_into(Path(folder), _name(item)):
        return (yield)


@pytest.fixture
def layoutalg_pictures(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Save pictures of this test's failed comparisons in the option's folder or ``tmp_path``; yield the folder."""
    given = request.config.getoption("--layoutalg-pictures")
    folder = tmp_path if given is None else Path(given)
    with testing.report.pictures_into(folder, _name(request.node)):
        yield folder


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Explain a failed ``assert f == g``: the functions are equal anyway, or where they differ."""
    module = sys.modules.get("layoutalg.ground.layout")
    if op != "==" or module is None or not all(isinstance(side, module.Layout) for side in (left, right)):
        return None
    head = [f"{left} == {right}"]
    try:
        testing.assert_equivalent(left, right)
    except AssertionError as error:
        return head + str(error).splitlines()
    except Exception:  # the explanation must not hide the failure itself
        return None
    return [*head, "equal functions in different forms: == compares forms, la.equivalent compares functions"]
