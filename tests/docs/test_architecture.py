"""The house as docs/architecture.md draws it; ``--update-golden`` draws it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from house import ROOT, Import, circles, floors, imports, inside, modules, picture, subject

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
HEAVY = {"islpy", "z3", "sympy", "networkx", "cuda", "resource"}
"""Outside the package, loaded by the function that needs them; ``resource`` is not on every system."""
LISTED = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \| .{10,} \|$", re.MULTILINE)


def test_the_picture_is_the_one_of_the_imports(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PICTURE.write_text(picture(), encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == picture(), "the imports changed; after review, --update-golden"


def test_no_module_imports_itself_through_others() -> None:
    assert circles() == []


def test_a_circle_would_be_seen() -> None:
    back = Import("layoutalg.ground.errors", "layoutalg.cute.layout", "planted", 1, only_types=False)
    assert any("layoutalg.ground.errors" in circle for circle in circles([*inside(), back]))


def test_every_room_stands_on_a_floor_and_says_what_it_holds() -> None:
    rooms = {name.split(".")[1] for name in modules() if "." in name and not name.split(".")[1].startswith("_")}
    assert {room for floor in floors() for room in floor if not room.startswith("_")} == rooms
    assert {room: subject(room) for room in rooms if not 10 <= len(subject(room)) <= 84} == {}


def test_imports_inside_functions_are_those_listed() -> None:
    found = {(f"{each.source}.{each.function}", each.target) for each in inside() if each.function}
    listed = set(LISTED.findall(PAGE.read_text(encoding="utf-8")))
    assert found - listed == set(), "an import inside a function is not listed with its reason in docs/architecture.md"
    assert listed - found == set(), "docs/architecture.md lists an import that is not there"


def test_only_heavy_packages_are_imported_inside_functions() -> None:
    late = {each.target for each in imports() if each.function and each.target not in modules()}
    assert late <= HEAVY


def _named_as_text(path: Path) -> list[str]:
    """Modules of the package that a file imports by a text."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) in ("importlib.import_module", "import_module", "__import__")
    ]


def test_only_front_doors_import_by_text() -> None:
    """A package may load its own names on first use; nothing else hides an import in a text."""
    hidden = {name: calls for name, path in modules().items() if (calls := _named_as_text(path))}
    assert [name for name in hidden if modules()[name].name != "__init__.py"] == []
