"""The house as docs/architecture.md draws it; ``--update-golden`` draws it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from docs.house import ROOT, Import, circles, floors, imports, inside, modules, picture, subject

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
HEAVY = {"islpy", "z3", "cvc5", "bitwuzla", "sympy", "networkx", "cuda", "resource", "hypothesis", "distributed"}
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


BY_TEXT, DOORS, LATER = ("import_module", "__import__", "resolve_name"), ("door",), ("later",)


def _called(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls of a file with the last word of the function's name."""
    text = path.read_text(encoding="utf-8")
    if not any(word in text for word in BY_TEXT + DOORS + LATER):
        return []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    words = ((getattr(call.func, "attr", None) or getattr(call.func, "id", ""), call) for call in calls)
    return [(word, call) for word, call in words if word in BY_TEXT + DOORS + LATER]


def test_no_text_hides_an_import() -> None:
    """Only ``ground.lazy`` imports by text, the checker that stands alone: z3 and cvc5, which it may lack, and
    ``tune --measure`` and ``campaign``: the caller's function.
    """
    calls = [(name, word, call) for name, path in modules().items() for word, call in _called(path)]
    by_text = {name for name, word, _ in calls if word in BY_TEXT}
    assert by_text == {"layoutalg.cli.search", "layoutalg.ground.lazy", "layoutalg.proofs.checker.equality"}
    doors = {name for name, word, _ in calls if word in DOORS} - {"layoutalg.ground.lazy"}
    assert {modules()[name].name for name in doors} == {"__init__.py"}
    heavy = {ast.unparse(call.args[0]) for _, word, call in calls if word in LATER}
    assert {name.strip("'\"") for name in heavy} - {"fractions"} <= HEAVY
