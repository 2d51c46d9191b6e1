"""Numbers that the README and the pages state are those of the code and of the stored records."""

from __future__ import annotations

import json
import re

from docs.executed import ROOT
from laws import tables

from layoutalg.codegen import kernels
from layoutalg.proofs import checker
from layoutalg.proofs.laws import laws
from layoutalg.targets.registry import TARGETS

README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
TOUR = " ".join((ROOT / "docs" / "tour.md").read_text(encoding="utf-8").split())
PEERS = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
EVIDENCE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
MEASURED = ROOT / "tests" / "data" / "measured"
WORDS = {
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16,
}  # fmt: skip

NUMBERS = {number: word for word, number in WORDS.items()}


def test_laws_and_kinds_of_certificates() -> None:
    solvers = [{each.engine for each in law.obligations} for law in laws()]
    listed = {row.name for table in tables() for row in table.LAWS}
    stated = r"(\d+) laws of the code itself proved for all values \((\d+) by two solvers\), (\d+) in every small case"
    found = re.search(stated, TOUR)
    assert found is not None
    assert tuple(map(int, found.groups())) == (len(solvers), sum(len(each) > 1 for each in solvers), len(listed))
    files = list((ROOT / "proofs" / "checker").glob("*.py"))
    lines = round(sum(file.read_text(encoding="utf-8").count("\n") for file in files), -2)
    assert f"{len(checker.KINDS)} kinds of certificates, one checker of {lines:,} lines" in TOUR
    assert f"one folder of {NUMBERS[len(files)]} files, `layoutalg/proofs/checker`" in TOUR


def test_targets_tiles_and_questions() -> None:
    named = re.search(r"MFMA and others on (\w+) targets", README)
    assert named is not None
    assert WORDS[named[1]] == len(TARGETS)
    tiles = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    for page in ("README.md", "docs/command-line.md", "docs/benchmarks.md"):
        assert f"{len(tiles)} tiles" in " ".join((ROOT / page).read_text(encoding="utf-8").split())
    clinic = (ROOT / "docs/clinic/README.md").read_text(encoding="utf-8")
    answered = re.search(r"(\d+) questions were asked, (\d+) are answered, (\d+) are not yet", clinic)
    assert answered is not None
    assert f"[The clinic](clinic/README.md) answers {answered[2]} questions" in TOUR
    assert len(re.findall(r"\*\*[A-Z][^*]*\?\*\*", TOUR.partition("## Eight questions")[2].partition(" ## ")[0])) == 8


def test_silently_wrong_answers_are_those_of_the_page_of_peers() -> None:
    rows = re.findall(r"\| ([a-z ]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", README)
    assert len(rows) == 4
    for operation, cases, *wrong in rows:
        section = PEERS.partition(f"## {operation.capitalize()}\n")[2].partition("\n## ")[0]
        stored = re.findall(r"^\| [\w-]+ \| \d+ \| (\d+) \|", section, re.M)
        assert f"{cases} cases" in section
        assert wrong == stored


def test_the_readme_is_short_and_links_its_pages() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(re.sub(r"\]\([^)]*\)", "", prose).split()) <= 900
    links = re.findall(r"\]\(([^)#]+)", prose)
    assert all((ROOT / link).is_file() for link in links)
    assert not re.findall(r"\bdocs/\w+", re.sub(r"\]\([^)]*\)", "", prose))


def test_every_section_of_the_benchmarks_has_a_command_and_a_record_or_none() -> None:
    table, *_ = BENCHMARKS.partition("\n## ")
    rows = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", table, re.M))
    del rows["section"]
    sections = re.findall(r"^###? (.*)$", BENCHMARKS, re.M)
    assert [name for name in sections if not name.startswith(tuple(rows))] == []
    assert [name for name in rows if not any(section.startswith(name) for section in sections)] == []
    for record in rows.values():
        files = re.findall(r"`([^`]+)`", record)
        assert files or record == "none"
        assert [name for name in files if not (MEASURED / name).is_file()] == []
    commands = set(re.findall(r"(?:benchmarks|tests/differential)/(\w+\.py)|`(\w+\.py)`", BENCHMARKS))
    for name in {one or other for one, other in commands}:
        assert (ROOT / "benchmarks" / name).is_file() or (ROOT / "tests/differential" / name).is_file(), name


def test_every_record_of_a_device_is_evidence_and_is_described() -> None:
    stored = {path.name.partition(".")[0] for path in MEASURED.glob("*_dev.*")}
    named = set(re.findall(r"`(\w+_dev)`", EVIDENCE.partition("Records by subject")[2].partition("```")[0]))
    assert stored == named
    described = (MEASURED / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in MEASURED.iterdir() if path.suffix in (".npz", ".json", ".gz")]
    assert [name for name in files if f"`{name}`" not in described] == []


def test_every_kernel_has_its_row() -> None:
    page = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(?:kernels\.)?(\w+)` \|", page, re.M))
    assert {name for name in kernels.__all__ if name.endswith("_kernel")} - rows == set()
