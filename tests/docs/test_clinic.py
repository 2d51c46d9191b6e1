"""The clinic: every answer runs and prints what is shown, is short, has its thread, and stands on the index."""

from __future__ import annotations

import re

import pytest
from docs.executed import ROOT, blocks, run

CLINIC = ROOT / "docs" / "clinic"
INDEX = (CLINIC / "README.md").read_text(encoding="utf-8")
PAGES = sorted(page.name for page in CLINIC.glob("*.md") if page.name != "README.md")
THREAD = r"\[(?P<name>(?P<repo>[\w.-]+/[\w.-]+)#(?P<number>\d+))\]\(https://github\.com/(?P=repo)/(?:issues|pull)/(?P=number)\)"
LINES = 10


def sections(page: str) -> list[str]:
    """The questions of a page, each from its heading on."""
    return re.split(r"^## ", (CLINIC / page).read_text(encoding="utf-8"), flags=re.M)[1:]


def threads(page: str) -> list[str]:
    found = [re.match(r"[^\n]+\n\n" + THREAD + ":", section) for section in sections(page)]
    return [match["name"] if match else "" for match in found]


@pytest.mark.parametrize("page", PAGES)
def test_every_answer_prints_what_is_shown(page, request):
    update = request.config.getoption("--update-golden")
    assert run(f"docs/clinic/{page}", update=update) == len(sections(page))


@pytest.mark.parametrize(("page", "section"), [(page, section) for page in PAGES for section in sections(page)])
def test_a_question_has_its_thread_and_a_short_answer(page, section):
    assert re.match(r"[^\n]+\n\n" + THREAD + ":", section), "a heading, then the link of the thread and a colon"
    assert [kind for kind, _ in blocks(section)] == ["python", "text"]
    code = blocks(section)[0][1].splitlines()
    assert len(code) <= LINES
    assert max(map(len, code)) <= 120
    assert section.rpartition("```")[2].strip(), "no sentence says what the output means"


def test_the_index_has_one_row_for_each_question():
    answered, _, open_ones = INDEX.partition("## Not answered yet")
    rows = re.finditer(r"^\| \[[^]]+\]\((?P<page>\w+\.md)\) \| " + THREAD + r" \| [^|]+ \| [^|]+ \|$", answered, re.M)
    listed = [(row["page"], row["name"]) for row in rows]
    assert listed == [(page, name) for page in dict.fromkeys(page for page, _ in listed) for name in threads(page)]
    assert sorted({page for page, _ in listed}) == PAGES
    waiting = [match["name"] for match in re.finditer(THREAD, open_ones)]
    names = [name for _, name in listed] + waiting
    assert len(set(names)) == len(names)
    counts = [int(number) for number in re.findall(r"\d+", re.search(r"^\d+ questions were asked.*", INDEX, re.M)[0])]
    assert counts == [len(names), len(listed), len(waiting)]
    assert len(listed) >= 30
