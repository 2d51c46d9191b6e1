"""Interactive sessions on the pages (blocks with >>>) print what the pages show."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(?:python|pycon)?\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted(DOCS.glob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]


def test_there_are_pages_with_sessions() -> None:
    assert len(PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_session_prints_what_the_page_shows(page: Path) -> None:
    names: dict[str, object] = {}  # the blocks of a page are one session
    for body in BLOCK.findall(page.read_text(encoding="utf-8")):
        test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), 0)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        names = test.globs
        assert not runner.failures, body
