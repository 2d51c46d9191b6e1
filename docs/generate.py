"""The pages of the documentation that are made from code, data and notebooks."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
ROOT = HERE.parent
NOTEBOOKS = ROOT / "notebooks"
sys.path.append(str(ROOT / "benchmarks"))  # the pages of stored runs
DOORS = {
    "layoutalg": "The front door",
    "layoutalg.ask": "Questions",
    "layoutalg.cute": "CuTe layouts",
    "layoutalg.cute.symbolic": "CuTe layouts with symbolic sizes",
    "layoutalg.f2": "Linear layouts over F2",
    "layoutalg.integer": "Integer layouts",
    "layoutalg.piecewise": "Piecewise layouts",
    "layoutalg.hierarchy": "Hierarchical layouts",
    "layoutalg.convert": "Conversions between families",
    "layoutalg.draw": "Pictures",
    "layoutalg.interop": "Other systems",
    "layoutalg.interop.triton": "Triton",
    "layoutalg.targets.nvidia.tensormap": "TMA TensorMap",
    "layoutalg.targets.nvidia.wgmma": "wgmma matrix descriptors",
    "layoutalg.targets.nvidia.tcgen05": "tcgen05 descriptors and tensor memory",
    "layoutalg.targets.nvidia.banks": "Banks of shared memory",
    "layoutalg.targets.banks": "Banks of any target",
    "layoutalg.targets.global_memory": "Sectors and lines of global memory",
    "layoutalg.targets.layouts.nvidia": "Layouts that NVIDIA's instructions fix",
    "layoutalg.targets.layouts.amd": "Layouts that AMD's instructions fix",
    "layoutalg.synth": "Finders",
    "layoutalg.synth.search": "Search for the fastest choices",
    "layoutalg.synth.tensormap": "Finder of TensorMap plans",
    "layoutalg.synth.tcgen05": "Finder of tcgen05 operands",
    "layoutalg.synth.wgmma": "Finder of wgmma operands",
    "layoutalg.pipeline": "Pipelines",
    "layoutalg.proofs.certify": "Certificates",
    "layoutalg.proofs.tensormap": "Checker of TensorMap plans",
    "layoutalg.proofs.tcgen05": "Plans of tcgen05 and their check",
    "layoutalg.proofs.wgmma": "Checker of wgmma operands",
    "layoutalg.proofs.handoff": "From the copy to the tensor cores",
    "layoutalg.codegen": "Kernel text, compilation, validation",
    "layoutalg.codegen.kernels": "Kernels on arrays",
    "layoutalg.codegen.pipeline": "Kernels from pipelines",
    "layoutalg.codegen.variants": "Variants of a kernel for classes of sizes",
    "layoutalg.testing": "Assertions for tests",
    "layoutalg.testing.strategies": "Random values for Hypothesis",
    "layoutalg.testing.laws": "Laws for layouts of other libraries",
}
"""Modules whose public names the reference holds, in the order of its pages."""
CHAPTERS = {
    "generated/tutorial/01_first_hour": ["generated/tutorial/0[2-9]*", "generated/tutorial/1*"],
    "clinic/README": ["clinic/[a-z]*"],
    "howto": ["asking", "pictures", "testing", "executing"],
    "use_from_a_pass": ["json", "generated/schemas", "exports"],
    "kernels": ["pipelines", "emission", "schedule", "ragged", "indirect", "search"],
    "command-line": ["generated/commands"],
    "notation": ["families", "glossary"],
    "admission": [
        "banks", "global_memory", "matrices", "tma_admission", "tensormap_modes", "generated/rules", "wgmma",
        "wgmma_reasons", "tcgen05", "census",
    ],
    "architecture": ["bridges", "hierarchical_equations", "rewriting", "symbolic_plans"],
    "swizzles": ["padding", "swizzle_table", "generated/swizzle_tables", "joint"],
    "conversions": ["factorisation"],
    "reliability": [
        "certificates", "checkers", "generated/laws", "generated/operations_campaign", "evidence", "targets",
    ],
    "comparison": ["peers", "benchmarks"],
}  # fmt: skip
"""The pages below each page of the sidebar; index.md lists those of the first level."""


def write(folder: Path) -> None:
    """Write all generated pages into an empty ``folder``."""
    shutil.rmtree(folder, ignore_errors=True)
    found = {
        "errors.md": errors_page((HERE / "errors.md").read_text(encoding="utf-8")),
        "rules.md": rules_page(),
        "schemas.md": schemas_page(),
        "commands.md": commands_page(),
        "laws.md": laws_page(),
        "operations_campaign.md": operations_page(),
        "swizzle_tables.md": swizzle_tables_page(),
        **dict(reference_pages()),
    }
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        found |= notebook_page(path)
    for name, text in found.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def errors_page(table: str) -> str:
    """The table of docs/errors.md as one section per code, so that each has an address."""
    head, _, _ = table.partition("| Code")
    parts = [head.strip()]
    for code, raised, means in re.findall(r"^\| (LA\d{3}) \| (.*?) \| (.*?) \|$", table, re.MULTILINE):
        parts.append(f"({code.lower()})=\n## {code}\n\n*Raised as:* {raised}\n\n{means}")
    return "\n\n".join(parts) + "\n"


def operations_page() -> str:
    """The stored result of the campaign of operations."""
    from campaign_operations import FAULTS
    from operations.page import page

    return page(json.loads((ROOT / "tests/data/measured/operations.json").read_text(encoding="utf-8")), FAULTS)


def swizzle_tables_page() -> str:
    """The stored universal swizzles, one table for each class of accesses."""
    from swizzle_table import CLASSES, SETS

    from layoutalg.proofs.universal import ClassPlan

    stored = json.loads((ROOT / "tests/data/swizzle_table.json").read_text(encoding="utf-8"))
    formula: Any = ClassPlan.formula
    parts = ["# Tables of universal swizzles"]
    for said, classes in CLASSES.items():
        lines = [f"## {said[0].upper()}{said[1:]}", "", f"`{json.dumps(classes)}`", ""]
        lines += ["| row | targets | swizzle | turns | least without conflicts | proved |", "|---|---|---|---|---|---|"]
        for row in stored["swizzles"]:
            if row["classes"] != classes:
                continue
            plan = SimpleNamespace(**row, chunk_bytes=stored["chunk_bytes"])
            name = next(name for name, targets in SETS.items() if targets == plan.targets)
            proved = "least" if plan.optimal else f">= {plan.bound}"
            cells = (plan.row_bytes, name, f"`{formula.fget(plan)}`", plan.turns, plan.ideal, proved)
            lines.append(f"| {' | '.join(map(str, cells))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def rules_page() -> str:
    """The rules of TensorMaps and the reasons for which ``wgmma`` operands are refused, each with an anchor."""
    from layoutalg.targets.nvidia.tensormap import RULES

    parts = [
        "# Rules of TensorMap",
        "Each rule has an id that violations, refusals and JSON documents name. What a document states and what a "
        "device enforced are kept apart; where they differ, both are shown. Rules of *values* are broken by the map "
        "alone, rules of *use* by an instruction that uses it. `tensormap.RULES` holds the same as data.",
    ]
    for rule in RULES.values():
        lines = [f"(rule-{rule.id.lower().replace('_', '-')})=\n## {rule.id}", rule.statement, f"- Limit: {rule.limit}"]
        lines[-1] += f"\n- Of {'the value' if rule.scope == 'value' else 'its use'}"
        stated = "; ".join(map(str, rule.sources)) or "no document"
        lines[-1] += f"\n- Stated by: {stated}" + ("" if rule.documented else " (not documented as a rule)")
        for seen in rule.evidence:
            lines[-1] += f"\n- {seen.chip}, driver {seen.driver}: **{seen.finding}**. {seen.text}"
        if not rule.evidence:
            lines[-1] += "\n- Not tested on a device"
        parts.append("\n\n".join(lines))
    return "\n\n".join(parts) + "\n"


def schemas_page() -> str:
    """The JSON Schemas that the package ships: for each its keys, and the schema itself."""
    from layoutalg.cli.schemas import schema_names, schema_text

    parts = [
        "# JSON Schemas",
        "`layoutalg schema NAME` prints them; [JSON documents](../json.md) shows how they are used.",
    ]
    for name in schema_names():
        schema = json.loads(schema_text(name))
        parts.append(f"(schema-{name})=\n## {schema['title']}\n\n{schema['description']}")
        needed = set(schema.get("required", ()))
        rows = [
            f"| `{key}` | {_kind(entry)} | {'yes' if key in needed else 'no'} | {_cell(entry.get('description', ''))} |"
            for key, entry in schema.get("properties", {}).items()
        ]
        if rows:
            parts.append("\n".join(["| key | type | required | meaning |", "|---|---|---|---|", *rows]))
        parts.append(f"```json\n{schema_text(name).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _kind(entry: Any) -> str:
    """What a value of a JSON Schema may be, in short."""
    if "const" in entry:
        return _cell(f"`{json.dumps(entry['const'])}`")
    if "enum" in entry:
        return _cell(", ".join(f"`{value}`" for value in entry["enum"]))
    if "$ref" in entry:
        return f"`{entry['$ref'].rpartition('/')[2]}`"
    kind = entry.get("type", "any" if "oneOf" not in entry else "one of several")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


LAWS = """\
# Laws

Sentences about the library's own functions. Solvers run a function on symbols, way by way through its branches, and
prove the law for all values of its scope; other laws are judged in every case up to a bound, in tests/laws. What
tests/property judges by enumeration is not repeated there, and the mutants of tests/mutants test the tests.

`python -m layoutalg.proofs.laws` lists the proved laws, `python -m layoutalg.proofs.laws --prove [NAME ...]` proves
them again (`pip install cvc5 bitwuzla` for the second solvers; without them their part is reported as not installed).

To add a law: write a claim, a function of a `Trial` that asks for integers, calls the library and claims what must
hold, and decorate it with `@law` in its file of proofs/laws; or write a judge with its cases in tests/laws.
"""


def laws_page() -> str:
    """The laws that solvers prove, and those that the tests judge case by case."""
    from layoutalg.proofs.laws import SUBJECTS, laws

    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    tables = importlib.import_module("laws").tables()
    proved = {law.name: law for law in laws()}
    always = [{each.engine for each in law.obligations} for law in proved.values()]
    listed = {row.name for table in tables for row in table.LAWS}
    parts = [LAWS.rstrip(), "\n".join(["| | laws |", "|---|---|", f"| all | {len(listed | set(proved))} |"])]
    parts[-1] += f"\n| proved for all values | {len(always)} |"
    parts[-1] += f"\n| proved for all values by two solvers | {sum(len(engines) > 1 for engines in always)} |"
    parts[-1] += f"\n| judged case by case | {len(listed)} |"
    for subject in SUBJECTS:
        rows = []
        for law in subject.LAWS:
            scopes: dict[str, list[str]] = {}
            for each in law.obligations:
                scopes.setdefault(each.scope, []).append(each.engine)
            by = "; ".join(f"{', '.join(engines)}: {scope}" for scope, engines in scopes.items())
            rows.append((law.name, law.statement, by))
        parts.append(_laws_table(subject, "proved by", rows))
    for table in tables:
        rows = []
        for row in table.LAWS:
            cases = f"{row.scope}: {row.count:,} case{'s' * (row.count != 1)}" if row.count else row.scope
            rows.append((row.name, row.says or proved[row.name].statement, cases))
        parts.append(_laws_table(table, "cases", rows))
    return "\n\n".join(parts) + "\n"


def _laws_table(module: Any, last: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f"| `{name}` | {_cell(says)} | {_cell(text)} |" for name, says, text in rows]
    title = (module.__doc__ or "").partition(".")[0]
    return "\n".join([f"## {title}", "", f"| law | says | {last} |", "|---|---|---|", *lines])


def commands_page() -> str:
    """What ``--help`` says, of the program and of each command."""
    whole = _help()
    listed = re.search(r"\{([\w,]+)\}", whole)
    if listed is None:
        raise ValueError("the help lists no commands")
    parts = ["# Commands and their options", f"```text\n{whole}\n```"]
    helps = {command: _help(command) for command in listed[1].split(",")}
    for command, text in helps.items():
        if text.startswith(f"usage: layoutalg {command}"):  # not another name of a command
            parts.append(f"(command-{command})=\n## {command}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def _help(*command: str) -> str:
    from layoutalg.cli import main

    said = io.StringIO()
    narrow = mock.patch.dict(os.environ, COLUMNS="100", NO_COLOR="1")
    with narrow, contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return said.getvalue().rstrip()


def _names(module: Any) -> list[str]:
    """The public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return sorted(listed, key=lambda name: (name.islower(), name.lower()))


def reference_pages() -> Iterator[tuple[str, str]]:
    """One page per module of ``DOORS``; a name is described where it comes first and referred to elsewhere."""
    described: dict[int, str] = {}
    order = [name for name in DOORS if name != "layoutalg"]
    texts = {}
    for door in [*order, "layoutalg"]:
        module = importlib.import_module(door)
        title = f"{DOORS[door]}: ``{door}``"
        parts = [title + "\n" + "=" * len(title)]
        parts.append(f".. automodule:: {door}\n   :no-members:\n   :no-index:")
        data = []
        for name in _names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            if inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
                place = f"{door}.{name}"
                first = described.setdefault(id(value), place)
                if first != place:
                    parts.append(f"``{place}`` is :py:obj:`{first}`.")
                elif inspect.isclass(value):
                    parts.append(f".. autoclass:: {place}\n   :members:\n   :special-members: __call__")
                else:
                    parts.append(f".. autofunction:: {place}")
            else:
                data.append(f"* ``{name}``: ``{type(value).__name__}``")
        if data:
            parts.append("Data\n----\n\n" + "\n".join(data))
        texts[f"reference/{door}.rst"] = "\n\n".join(parts) + "\n"
    yield from texts.items()
    listed = "\n".join(f"   {door}" for door in DOORS)
    yield (
        "reference/index.rst",
        "API\n===\n\nThe public names of the front door and of each family. Every example is run by the tests.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n",
    )


def joined_refusals(_app: object, _what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Put what a function raises into one paragraph, so that long lists of codes may break anywhere."""
    for start in [number for number, line in enumerate(lines) if line.strip() == "Raises:"]:
        end = start + 1
        while end < len(lines) and lines[end].strip():
            end += 1
        said = " ".join(line.strip() for line in lines[start:end])
        lines[start:end] = [said, *[""] * (end - start - 1)]


def plain_marks(_app: object, _what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Make a docstring plain reStructuredText: error codes become links, stray marks stay what they are."""
    example = False
    words: list[str] = []
    done: list[str] = []
    for line in [*lines, ">>>"]:
        example = line.lstrip().startswith((">>>", "...")) or (example and bool(line.strip()))
        if not example:
            words.append(line)
            continue
        done += _plain("\n".join(words)).split("\n") if words else []
        words = []
        done.append(line)
    lines[:] = done[:-1]


def _plain(words: str) -> str:
    pieces = re.split(r"(``.*?``|:\w+(?::\w+)?:`.*?`)", words, flags=re.DOTALL)
    for place in range(0, len(pieces), 2):
        text = re.sub(r"(?<!\\)([*|])", r"\\\1", pieces[place])
        text = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
        text = "\\ " + text if place and text[:1].isalnum() else text  # a plural after a literal
        pieces[place] = re.sub(r"\b(LA\d{3})\b", lambda code: f":ref:`{code[1]} <{code[1].lower()}>`", text)
    return "".join(pieces)


def with_pages_below(_app: object, page: str, text: list[str]) -> None:
    """Add the pages of a chapter to the page that opens it, so that the files read well without Sphinx."""
    if page in CHAPTERS:
        listed = "\n".join(f"/{name}" for name in CHAPTERS[page])
        text[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{listed}\n```\n"


def notebook_page(path: Path) -> dict[str, str]:
    """A notebook as a page: its words, its code, and under it what it printed or drew."""
    document = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    parts = []
    for cell in document["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\((\d\d_\w+)\.ipynb\)", r"(\1.md)", source))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                picture = f"{path.stem}-{len(found)}.svg"
                found[f"tutorial/{picture}"] = "".join(data["image/svg+xml"])
                parts.append(f"![what the cell drew]({picture})")
            else:
                said = "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n")
                parts.append(f"```text\n{said}\n```")
    return {f"tutorial/{path.stem}.md": "\n\n".join(parts) + "\n", **found}
