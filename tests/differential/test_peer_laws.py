"""The law suite on our own families, which pass, and on peers, which fail where they are wrong.

pycute is looked for in the folder that the environment variable ``LAYOUTALG_PYCUTE`` names (the site-packages that hold
``nvidia-cutlass==4.2.0.0``); without it, its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from judges import peers

from layoutalg.testing.laws import LAWS, LawSuite, Library, laws_of
from layoutalg.testing.laws.suite import broken

TENSOR_LAYOUTS, PYCUTE = "tensor-layouts 0.3.2", "pycute of nvidia-cutlass 4.2.0.0"
FOLDER = os.environ.get("LAYOUTALG_PYCUTE")
EXAMPLES = 40


def stored_by_all() -> dict[str, list[Any]]:
    """The stored operands of each law, of all peers."""
    rows = {law: [peers.stored(peer).get(law) for peer in (TENSOR_LAYOUTS, PYCUTE)] for law in LAWS}
    return {law: [row["operands"] for row in found if row] for law, found in rows.items()}


class TestCute(LawSuite):
    library = peers.cute()
    examples = EXAMPLES
    first: ClassVar = stored_by_all()


if importlib.util.find_spec("tensor_layouts") is not None:

    @pytest.mark.peer
    class TestTensorLayouts(LawSuite):
        library = peers.tensor_layouts()
        examples = EXAMPLES
        known: ClassVar = {law: row["because"] for law, row in peers.stored(TENSOR_LAYOUTS).items()}
        first: ClassVar = {law: [row["operands"]] for law, row in peers.stored(TENSOR_LAYOUTS).items()}


if FOLDER is not None:

    @pytest.mark.peer
    class TestPycute(LawSuite):
        library = peers.pycute(Path(FOLDER))
        examples = EXAMPLES
        known: ClassVar = {law: row["because"] for law, row in peers.stored(PYCUTE).items()}
        first: ClassVar = {law: [row["operands"]] for law, row in peers.stored(PYCUTE).items()}


@pytest.mark.peer
@pytest.mark.parametrize("law", peers.stored(PYCUTE))
def test_pycute_fails_as_it_did(law: str) -> None:
    if FOLDER is None:
        pytest.skip("LAYOUTALG_PYCUTE names no folder that holds pycute (nvidia-cutlass==4.2.0.0)")
    row = peers.stored(PYCUTE)[law]
    assert broken(peers.pycute(Path(FOLDER)), law, row["operands"]) == row["because"]


@pytest.mark.peer
@pytest.mark.skipif(importlib.util.find_spec("tensor_layouts") is None, reason="tensor-layouts==0.3.2 is not installed")
def test_tensor_layouts_fails_as_it_did() -> None:
    for law, row in peers.stored(TENSOR_LAYOUTS).items():
        assert broken(peers.tensor_layouts(), law, row["operands"]) == row["because"], law


def test_the_stored_table_names_every_law() -> None:
    assert [law.name for law in laws_of(peers.cute())] == list(LAWS)
    for peer in (TENSOR_LAYOUTS, PYCUTE):
        assert set(peers.stored(peer)) <= set(LAWS)
    assert peers.stored("layoutalg") == {}


def test_the_page_holds_the_stored_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    for peer in (TENSOR_LAYOUTS, PYCUTE):
        assert f"| {peer} |" in page
        for law, row in peers.stored(peer).items():
            line = next(line for line in page.splitlines() if line.startswith(f"| {law} |"))
            assert f"`{row['text']}`: {row['because']}" in line


def test_a_library_without_functions_has_the_first_law_alone() -> None:
    bare = Library(name="bare", build=tuple, size=len, value=max)
    assert [law.name for law in laws_of(bare)] == ["evaluate"]
