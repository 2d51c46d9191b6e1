"""The documentation builds without a warning, and holds every public name, error code and rule under its address."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import layoutalg
from layoutalg.cli.schemas import schema_names, schema_text
from layoutalg.targets.nvidia.tensormap import RULES

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(name) is None]


def _generator() -> ModuleType:
    """docs/generate.py, which is no package."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generator()


def test_every_code_of_the_table_has_a_section() -> None:
    table = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    page = GENERATE.errors_page(table)
    codes = re.findall(r"^\| (LA\d{3}) ", table, re.MULTILINE)
    assert re.findall(r"^## (LA\d{3})$", page, re.MULTILINE) == codes
    assert re.findall(r"^\((la\d{3})\)=$", page, re.MULTILINE) == [code.lower() for code in codes]


def test_every_rule_shows_what_is_stated_and_what_was_seen() -> None:
    page = GENERATE.rules_page()
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(RULES)
    for rule in RULES.values():
        section = page.partition(f"## {rule.id}\n")[2].partition("\n## ")[0]
        assert rule.statement in section
        assert all(str(source) in section for source in rule.sources)
        assert all(seen.text in section and f"**{seen.finding}**" in section for seen in rule.evidence)


def test_every_schema_shows_its_keys() -> None:
    page = GENERATE.schemas_page()
    for name in schema_names():
        schema = json.loads(schema_text(name))
        section = page.partition(f"## {schema['title']}\n")[2].partition("\n## ")[0]
        assert schema["description"] in section
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(schema.get("properties", {}))


def test_every_command_shows_its_help() -> None:
    page = GENERATE.commands_page()
    commands = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert {"explain", "synth", "check", "validate"} <= set(commands)
    assert all(f"usage: layoutalg {command}" in page for command in commands)


def test_every_public_name_is_described_once() -> None:
    texts = dict(GENERATE.reference_pages())
    described = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", "\n".join(texts.values()), re.MULTILINE)
    assert len(described) == len(set(described))
    names = {name.rpartition(".")[2] for name in described}
    values = {name for name in layoutalg.__all__ if not isinstance(getattr(layoutalg, name), ModuleType)}
    assert values - names - {"Verdict"} == set()  # Verdict is a union of types, which the page lists as data
    assert {"composition", "complement", "from_pieces", "hnf", "level_profile", "encode", "operand_offsets"} <= names


def test_every_public_package_has_a_page() -> None:
    values = [getattr(layoutalg, name) for name in layoutalg.__all__]
    packages = {value.__name__ for value in values if isinstance(value, ModuleType)}
    shown = {door[: len(name)] for door in GENERATE.DOORS for name in packages if f"{door}.".startswith(f"{name}.")}
    assert shown == packages


def test_a_notebook_becomes_a_page_with_its_pictures() -> None:
    found = GENERATE.notebook_page(sorted((ROOT / "notebooks").glob("*.ipynb"))[0])
    (page,) = [text for name, text in found.items() if name.endswith(".md")]
    pictures = [name.rpartition("/")[2] for name in found if name.endswith(".svg")]
    assert pictures
    assert all(f"]({name})" in page for name in pictures)
    assert ".ipynb)" not in page


def test_stray_marks_are_escaped_and_codes_linked() -> None:
    lines = ["a * b of ``x*", "y`` and LA123, name_ too", ">>> 2 * 3", "6", "", "c * d"]
    GENERATE.plain_marks(None, "", "", None, None, lines)
    told = [r"a \* b of ``x*", r"y`` and :ref:`LA123 <la123>`, name\_ too"]
    assert lines == [*told, ">>> 2 * 3", "6", "", r"c \* d"]


def test_the_sidebar_is_short_and_every_page_is_in_it_once() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = "\n".join(re.findall(r"```\{toctree\}\n(?::[^\n]*\n)+\n(.*?)```", index, re.DOTALL))
    first = re.findall(r"^(?:.* <)?([\w/-]+)>?$", listed, re.MULTILINE)
    assert len(first) <= 16
    assert set(GENERATE.CHAPTERS) <= set(first)
    pages = [*first, *(page for below in GENERATE.CHAPTERS.values() for page in below)]
    assert len(set(pages)) == len(pages)
    written = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index", "errors"}
    assert {page for page in pages if "/" not in page} == written


@pytest.mark.nightly
@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: pip install 'layoutalg[docs]'")
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run([*command, "docs", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'id="la122"' in (tmp_path / "generated" / "errors.html").read_text(encoding="utf-8")
    assert 'id="layoutalg.cute.composition"' in "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "generated" / "reference").glob("*.html")
    )
