"""Exports of plans for all sizes and of families: C++ compiled and run, patches run on the bytes."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit.test_exports import STUB, patched

import layoutalg as la
from layoutalg.codegen import export
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.proofs.ragged_clip import ClipPlan, moved_base
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia.tensormap import encode

SMEM = "Sw<3,3,3> o 0 o (64,64):(64,1)"
PLANS = {
    "batched": la.tensormap(la.Tensor(("B", "M", "K"), assume=("K % 8 == 0",)), (1, 64, 64)),
    "pitched": la.tensormap(la.Tensor(("M", 512), ("P", 1), dtype="f32", assume=("P % 4 == 0",)), (64, 32)),
    "pool": la.tensormap(la.Tensor(("M", "8*N", 64)), (64, 1, 64), "Sw<3,3,3> o 0 o (64,1,64):(64,0,1)"),
}


def drawn(chance: random.Random, plan: Any) -> dict[str, int]:
    """Sizes of any magnitude, many of them multiples."""
    found = {}
    for name in plan.names:
        whole = chance.choice((1, 8, 64)) * chance.randrange(1, 1 << chance.randrange(1, 22))
        found[name] = whole + chance.choice((0, 0, 0, 1))
    return found


@pytest.mark.parametrize("case", PLANS)
def test_a_header_tests_the_guard_and_writes_the_bytes(case: str, tmp_path: Path) -> None:
    compiler, plan = shutil.which("g++") or shutil.which("clang++"), PLANS[case]
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    (tmp_path / "map.h").write_text(export(plan, "cpp", "wanted"), encoding="utf-8")
    listed = ", ".join([f"std::atoll(given[{place} + i])" for place in range(len(plan.names))])
    (tmp_path / "main.cpp").write_text(
        '#include "map.h"\n#include <cstdio>\n#include <cstdlib>\nint main(int count, char** given) {\n'
        f"    for (int i = 1; i < count; i += {len(plan.names)}) {{\n        unsigned words[32] = {{}};\n"
        f'        std::printf("%d", wanted::encode(words, 0x10000ull, {listed}));\n'
        '        for (unsigned word : words) std::printf(" %x", word);\n        std::puts("");\n    }\n}\n'
    )
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *strict, "main.cpp", "-o", "main"], cwd=tmp_path, check=True, timeout=120)
    chance = random.Random(case)
    sizes = [drawn(chance, plan) for _ in range(300)]
    words = [str(each[name]) for each in sizes for name in plan.names]
    out = subprocess.run([tmp_path / "main", *words], capture_output=True, text=True, check=True, timeout=20).stdout
    held = 0
    for each, line in zip(sizes, out.splitlines(), strict=True):
        which, *found = line.split()
        try:
            number = plan.cases.index(plan.case_of(each))
        except AdmissibilityError:
            assert which == "-1"
            continue
        raw = b"".join([int(word, 16).to_bytes(4, "little") for word in found])
        base = int.from_bytes(raw[:8], "little") - 0x10000
        assert (int(which), base.to_bytes(8, "little") + raw[8:]) == (number, plan.encode(each))
        held += 1
    assert 30 < held < 300


@pytest.mark.parametrize("case", PLANS)
def test_patches_of_the_template_lead_to_the_bytes(case: str) -> None:
    plan, chance = PLANS[case], random.Random(case)
    assert len(plan.cases) == 1
    lines = export(plan, "ptx", "wanted").splitlines()
    constant = next(line for line in lines if line.startswith(".visible"))
    template = bytes(map(int, re.search(r"\{(.*)\}", constant)[1].split(", ")))  # type: ignore[index]
    assert template == plan.template
    for _ in range(100):
        sizes = drawn(chance, plan)
        if not plan.guard.holds(sizes):
            continue
        tm = plan.tensor_map.at(sizes)
        values = {"base": tm.base_address} | {f"dim{place}": value for place, value in enumerate(tm.dims)}
        values |= {f"stride{place}": value for place, value in enumerate(tm.strides_bytes)}
        calls = [line.partition(";  // ")[0].rpartition(" ") for line in lines if line.startswith("tensormap")]
        text = "\n".join([f"{call} {values[register]};" for call, _, register in calls])
        assert patched(template, text) == plan.encode(sizes)


def test_families_are_written_map_by_map() -> None:
    family = la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM, "exact_pool")
    text = export(family, "cpp", "rows")
    assert "rows_rows[7] = {64, 32, 16, 8, 4, 2, 1}" in text
    assert text.count("#pragma once") == 1
    for number, plan in enumerate(family.plans):
        assert f"rows_{number}_bytes" in text
        listed = re.search(rf"rows_{number}\[128\] = \{{(.*)\}}", export(family, "ptx", "rows"))
        assert listed is not None
        assert bytes(map(int, listed[1].split(", "))) == plan.raw
    named = export(la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM, "descriptors"), "ptx")
    assert "global_dim.global.b1024.b32 [map], 1, dim1;  // n" in named
    if compiler := shutil.which("g++"):
        subprocess.run(
            [compiler, "-std=c++17", "-fsyntax-only", "-isystem", str(STUB), "-x", "c++", "-"], input=text, text=True,
            check=True, timeout=60, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def test_clipped_maps_are_written_with_their_base() -> None:
    over = la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM, "overfetch")
    document = over.plans[0].problem.to_json() | {"direction": "store"}
    document.pop("oob_fill")
    plan = ClipPlan.of(synthesize_tensormap(document), 0, "write_only")
    family = replace(over, strategy="clip", stated="", plans=(plan,))
    family = replace(family, rules=la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM, "descriptors").rules)
    text = export(family, "ptx", "clipped")
    assert f"less {1 << 40} bytes" in text
    assert moved_base("write_only", plan.pitch) == -(1 << 40)
    assert ", ".join(map(str, encode(plan.tensor_map))) in text


def test_other_forms_and_wrong_families_are_refused() -> None:
    for value in (PLANS["batched"], la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM)):
        for form in ("mlir", "gluon", "cute_dsl"):
            with pytest.raises(MalformedError, match="LA893"):
                export(value, form)
    family = la.ragged(la.Tensor((1024, 512)), None, (64, 64), SMEM, "exact_pool")
    wrong = replace(family, rules=(*family.rules[:-1], family.rules[0]))
    with pytest.raises(MalformedError, match="LA503"):
        export(wrong, "cpp")
    plan = PLANS["batched"]
    with pytest.raises(MalformedError, match="LA503"):
        export(replace(plan, expect_tx_bytes=plan.expect_tx_bytes + 16), "cpp")
