"""The tables of docs/targets.md are the data; ``--update-golden`` writes them again."""

from __future__ import annotations

import re

import pytest
from docs.executed import ROOT, run

from layoutalg.targets import model_of
from layoutalg.targets.banks import AMD_RULES
from layoutalg.targets.nvidia.tensormap.versions import FIRST
from layoutalg.targets.registry import TARGETS
from layoutalg.targets.target_model import CONSUMERS, LIMITS, Fact

PAGE = "docs/targets.md"
MODELS = {arch: model_of(arch) for arch in TARGETS}


def table(head, rows):
    lines = [" | ".join(row) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def limits():
    """One table per vendor: limits by target, those measured in bold."""
    tables = []
    for vendor in ("nvidia", "amd"):
        archs = [arch for arch, target in TARGETS.items() if target.vendor == vendor]
        names = list(dict.fromkeys(name for arch in archs for name in LIMITS[arch]))
        rows = []
        for name in names:
            found = [MODELS[arch].limit(name) for arch in archs]
            cells = [
                ("**{}**" if one.grade == "measured" else "{}").format(one.value)
                if isinstance(one, Fact)
                else "unknown"
                for one in found
            ]
            rows.append([name, *cells])
        tables.append(table(["limit", *archs], rows))
    return "\n\n".join(tables)


def consumers():
    rows = []
    for name, rule in CONSUMERS.items():
        has = ", ".join(arch for arch in TARGETS if isinstance(MODELS[arch].consumer(name), Fact))
        rows.append([f"`{name}`", has, f"`{rule.rule}`", str(rule.source)])
    return table(["consumer", "targets", "rule elsewhere", "source"], rows)


def others():
    rows = []
    for arch, target in TARGETS.items():
        turns = [operation for where, operation in AMD_RULES if where == arch]
        if target.vendor == "nvidia":
            turns = (
                ["ld, st, ldmatrix, stmatrix"]
                if target.measured
                else ["up to 32 bits; wider ones and ldmatrix assumed as on sm_90a"]
            )
        measured = ", ".join(device.chip for device in target.measured) or "none"
        count = str(len(MODELS[arch].instructions))
        rows.append([arch, target.isa, measured, count, ", ".join(turns) or "unknown", FIRST.get(arch, "")])
    return table(["target", "ISA", "measured device", "fragments", "bank turns known", "first toolkit, for maps"], rows)


def renewed(text):
    for name, made in (("limits", limits()), ("consumers", consumers()), ("others", others())):
        text = re.sub(rf"<!-- {name} -->.*?<!-- end -->", f"<!-- {name} -->\n{made}\n<!-- end -->", text, flags=re.S)
    return text


def test_the_tables_are_the_data(request: pytest.FixtureRequest) -> None:
    path = ROOT / PAGE
    update = request.config.getoption("--update-golden")
    if update:
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert text == renewed(text), f"{PAGE} differs from the data; after review, --update-golden"
    assert run(PAGE, update) == 5
    for rule in CONSUMERS.values():
        assert f"`{rule.rule}`" in text
