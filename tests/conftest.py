"""Options, tiers and fixtures of the test suite.

There are two tiers. ``make test`` runs every property with a quarter of its examples, and of tests marked ``nightly``
the share that the mark names; ``make test-all`` (``pytest --full``) runs everything. Both tiers are repeatable: which
cases the short one keeps depends on nothing but the list of cases. ``--extras`` and ``--require-device`` are apart.
"""

from __future__ import annotations

import gc
import linecache
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

SHARE = 4
"""The short tier runs one of so many examples of a property, but not less than FEWEST."""
FEWEST = 4
FULL_ONLY = "only at full strength: make test-all"

settings.register_profile("house", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")
if os.environ.get("CI"):  # pytest under test finds the tables of characters and of the library's constants ready
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(__file__).parents[1] / ".hypothesis"))

gc.disable()  # what is collected stays to the end: pytest_collection_finish takes it out of the collector's sight

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")
    parser.addoption("--require-device", action="store_true", help="fail, instead of skipping, where a GPU is missing")
    parser.addoption("--extras", action="store_true", help="install every extra alone, from the package index")
    parser.addoption("--full", action="store_true", help="every example and every case (make test-all)")


def pytest_configure() -> None:
    """Hear interrupts: shells let jobs in the background ignore them, and processes under test would inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests of the library run beside the tests (--doctest-modules); tests have none."""
    found = yield
    return [collector for collector in found if type(collector) is pytest.Module]


class Backwards(pytest.Dir):
    """A folder of tests that is gone through from its end."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return reversed([*super().collect()])


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Odd workers begin at the end: a file is compiled by the worker that meets it first, and read by the others."""
    if WORKER[-1:] not in tuple("13579") or (path / "__init__.py").exists():
        return None
    return Backwards.from_parent(parent, path=path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if WORKER:
        items.sort(key=lambda item: item.path)  # every worker must list the same order; stable within a file
    if config.getoption("--full"):
        return
    functions: dict[Any, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function):
            functions[item.function].append(item)
    for function, cases in functions.items():
        if is_hypothesis_test(function):
            _fewer_examples(function)
        for place, case in enumerate(cases):
            marker = case.get_closest_marker("nightly")
            if marker is not None and (not marker.kwargs or place % marker.kwargs["one_of"]):
                case.add_marker(pytest.mark.skip(reason=FULL_ONLY))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """No later pass of the garbage collector goes through sixteen thousand tests and the modules; passes are few."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _fewer_examples(function: Any) -> None:
    """Hypothesis reads the settings of a test from this attribute, which ``@settings`` writes."""
    whole = getattr(function, "_hypothesis_internal_use_settings", None) or settings.default
    fewer = min(whole.max_examples, max(FEWEST, whole.max_examples // SHARE))
    function._hypothesis_internal_use_settings = settings(whole, max_examples=fewer)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run in which nothing passed or failed is no success, whatever was skipped."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus or reporter is None or hasattr(config, "workerinput") or config.getoption("--collect-only"):
        return
    if not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.DoctestItem):
        linecache.clearcache()  # the debugger that each doctest sets up looks for changes of every file in it
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
def portion(request: pytest.FixtureRequest) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return ``portion(cases)``: what a test goes through in a loop, every fourth in the short tier."""
    return lambda cases: cases[:: 1 if request.config.getoption("--full") else SHARE]


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
