"""The pytest plugin: where pictures of failed comparisons go, and what ``==`` of two layouts says when it fails.

Implementation notes: pytest loads this module at every start, in projects that know nothing of layouts as well. It
imports nothing that pytest has not imported; what a hook needs is loaded when a test needs it.
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
        help="save an SVG picture of every comparison of layouts that fails into DIR",
    )


def _name(item: pytest.Item) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", item.nodeid.rpartition("/")[2])[:NAME_CHARACTERS]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Save the pictures of a test where the option says so."""
    folder = item.config.getoption("--layoutalg-pictures")
    if folder is None:
        return (yield)
    with testing.report.pictures_into(Path(folder), _name(item)):
        return (yield)


@pytest.fixture
def layoutalg_pictures(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Save the pictures of this test's failed comparisons into ``tmp_path``, or where the option says; the folder."""
    given = request.config.getoption("--layoutalg-pictures")
    folder = tmp_path if given is None else Path(given)
    with testing.report.pictures_into(folder, _name(request.node)):
        yield folder


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Say of ``assert f == g`` whether the two are the same function all the same, and where they differ."""
    module = sys.modules.get("layoutalg.ground.layout")
    if op != "==" or module is None or not all(isinstance(side, module.Layout) for side in (left, right)):
        return None
    head = [f"{left} == {right}"]
    try:
        testing.assert_equivalent(left, right)
    except AssertionError as error:
        return head + str(error).splitlines()
    except Exception:  # an explanation must not hide the failure that it explains
        return None
    return [*head, "both are the same function, written differently; == compares the form, la.equivalent the function"]
