"""The clinic: every answer runs and prints what is shown, is short, has its thread, and stands on the index."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from docs.executed import ROOT, blocks, run

import layoutalg as la
from layoutalg.ground.verdict import Unknown
from layoutalg.targets import model_of
from layoutalg.targets.banks import turns
from layoutalg.targets.nvidia.tensormap import TensorMap, violations

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


def loop(op: dict[str, object]) -> dict[str, object]:
    """A pipeline of one role that does one thing."""
    role = {"name": "role", "loop": [op]}
    return {"schema": "layoutalg/pipeline/1", "stages": 1, "barriers": {"done": {"count": 1}}, "roles": [role]}


WAITING = re.findall(
    r"^\| " + THREAD + r" \| [^|]+ \| [^|]+ \| `(?P<call>[^|]+)` \| (?P<gives>[^|]+) \|$",
    INDEX.partition("## Not answered yet")[2],
    re.M,
)


@pytest.mark.parametrize("row", WAITING, ids=[row[0] for row in WAITING])
def test_what_is_not_answered_still_gives_what_is_stated(row):
    *_, call, gives = row
    names = {each.__name__: each for each in (TensorMap, violations, turns, model_of, loop)} | {"la": la}
    if re.fullmatch(r"LA\d{3}", gives):
        with pytest.raises(la.LayoutError) as refused:
            eval(call, names)
        assert refused.value.diagnostic.code == gives
    elif gives == "unknown":
        assert isinstance(eval(call, names), Unknown)
    else:
        assert f"`{eval(call, names)!r}`" == gives


def test_every_open_question_has_a_call():
    assert len(WAITING) == len(re.findall(THREAD, INDEX.partition("## Not answered yet")[2])) >= 5


PICTURED = [(page, section) for page in PAGES for section in sections(page) if "\n![" in section]


@pytest.mark.parametrize(("page", "section"), PICTURED)
def test_a_picture_is_what_the_answer_draws(page, section, request):
    (file,) = re.findall(r"^!\[[^]]{10,}\]\((\w+\.svg)\)$", section, re.M)
    names: dict[str, object] = {}
    preamble = blocks((CLINIC / page).read_text(encoding="utf-8"))[0][1]
    exec(preamble + blocks(section)[0][1], names)
    drawn = f"{names['picture']}\n"
    path = CLINIC / file
    if request.config.getoption("--update-golden"):
        path.write_text(drawn, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == drawn, f"{file} differs; after review, --update-golden"
    assert len(drawn) < 80_000
    assert ET.fromstring(drawn).get("role") == "img"


def test_every_picture_is_shown():
    shown = {file for _, section in PICTURED for file in re.findall(r"\]\((\w+\.svg)\)", section)}
    assert {path.name for path in CLINIC.glob("*.svg")} == shown
    assert len(PICTURED) == len(shown)
