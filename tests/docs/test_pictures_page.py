"""The pictures of docs/pictures.md are what the code beside them draws; ``--update-golden`` draws them again."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from docs.executed import ROOT

import layoutalg as la

PAGE = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```python\n(.*?)```\n\n!\[([^\]]+)\]\(([^)]+)\)", PAGE, re.DOTALL)


def test_every_block_has_a_picture_and_every_picture_a_block() -> None:
    assert len(SHOWN) == PAGE.count("```python") >= 8
    folder = ROOT / "docs" / "_static" / "pictures"
    assert {ROOT / "docs" / file for _, _, file in SHOWN} == set(folder.glob("*"))


@pytest.mark.parametrize(("code", "words", "file"), SHOWN, ids=[file.rpartition("/")[2] for _, _, file in SHOWN])
def test_a_picture_is_what_the_code_draws(code: str, words: str, file: str, request: pytest.FixtureRequest) -> None:
    names: dict[str, object] = {"la": la}
    exec(code, names)
    picture = str(names["picture"])
    path = ROOT / "docs" / file
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == picture + "\n", f"{file} differs; after review, --update-golden"
    assert len(picture) < 80_000
    assert ET.fromstring(picture).get("role") == "img"
    assert len(words) > 10
