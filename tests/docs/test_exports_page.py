"""The page of exports: its examples run and print what it shows, and it names every form and every rule."""

from __future__ import annotations

from docs.executed import ROOT, run

from layoutalg.codegen.exports import EXPORT_FORMS, EXPORT_RULES


def test_the_page_of_exports():
    assert run("docs/exports.md") >= 4
    text = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    assert [name for name in (*EXPORT_FORMS, *EXPORT_RULES) if f"`{name}`" not in text] == []
