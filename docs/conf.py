"""Sphinx's configuration; ``make docs`` builds docs/_build/html from these pages, the code and the notebooks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import generate  # noqa: E402  beside this file

project = "layoutalg"
copyright = "the layoutalg authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "errors.md"]  # generated/errors.md is the same table with an anchor for each code
root_doc = "index"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "layoutalg"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx looks for pages."""
    generate.write(HERE / "generated")
    app.connect("source-read", generate.with_pages_below)
    app.connect("autodoc-process-docstring", generate.joined_refusals, priority=400)  # before napoleon (500)
    app.connect("autodoc-process-docstring", generate.plain_marks, priority=600)
