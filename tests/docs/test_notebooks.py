"""Every notebook shows in a fresh kernel what it shows in the repository; ``--update-golden`` writes it again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from docs.notebook_runs import PICTURE, run, seen, sources

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PARTS = ("nbclient", "nbformat", "ipykernel")
MISSING = [name for name in PARTS if importlib.util.find_spec(name) is None]
LARGEST_BYTES = 200_000


def test_there_is_a_notebook_for_each_question() -> None:
    assert [path.stem.partition("_")[0] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, 13)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_with_a_question_and_shows_its_answers(path: Path) -> None:
    cells = sources(path)
    kind, opening = cells[0]
    assert kind == "markdown"
    assert opening.startswith("# ")
    assert "?**" in opening, "no question stands in bold at the top"
    document = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output["output_type"] != "error" for cell in code for output in cell["outputs"])
    assert path.stat().st_size <= LARGEST_BYTES


def test_values_draw_themselves_in_most_notebooks() -> None:
    drawn = [path.stem for path in NOTEBOOKS if PICTURE in path.read_text(encoding="utf-8")]
    assert len(drawn) >= 6


@pytest.mark.nightly(one_of=9)
@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: pip install 'layoutalg[dev]'")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_computes(path: Path, request: pytest.FixtureRequest) -> None:
    import nbformat

    stored = nbformat.read(path, as_version=4)
    fresh = run(stored, FOLDER)
    if request.config.getoption("--update-golden"):
        nbformat.write(fresh, path)
        return
    assert seen(fresh) == seen(stored), f"{path.name} differs; after review, --update-golden"


def test_a_changed_answer_would_be_seen() -> None:
    document = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    before = seen(document)
    cell = next(cell for cell in document["cells"] if cell["cell_type"] == "code" and cell["outputs"])
    cell["outputs"] = []
    assert seen(document) != before
