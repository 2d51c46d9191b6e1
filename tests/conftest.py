"""Options and fixtures of the test suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")
    parser.addoption("--require-device", action="store_true", help="fail, instead of skipping, where a GPU is missing")
    parser.addoption("--extras", action="store_true", help="install every extra alone, from the package index")


def pytest_configure() -> None:
    """Hear interrupts: shells let jobs in the background ignore them, and processes under test would inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("extras") is not None and not item.config.getoption("--extras"):
        pytest.skip("installs packages; make extras runs it")
    marker = item.get_closest_marker("device")
    if marker is None:
        return
    from layoutalg.codegen.launch import device

    arch = str(marker.args[0])
    found = device()
    if found is not None and found.runs(arch):
        return
    reason = f"needs a GPU that runs {arch}; " + ("none was found" if found is None else f"this is {found.name}")
    if item.config.getoption("--require-device"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return ``check(name, text)``: the text must equal the golden file ``tests/golden/<name>``."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path.name} is missing; write it with --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; after review, --update-golden"

    return check
