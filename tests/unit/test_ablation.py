"""The ablation of layout and schedule: choices, kernels of all of them on the CPU, and the table."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instruments.attention_runs import on_the_cpu
from judges.attention_judge import compared

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import ablation_orders as orders  # noqa: E402
import device_ablation  # noqa: E402

from layoutalg.codegen import hostsim  # noqa: E402
from layoutalg.codegen.compile import to_cubin  # noqa: E402
from layoutalg.codegen.kernels import Form, attention_kernel, gemm_kernel  # noqa: E402

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
STORED = orders.stored()
PROBLEMS = {str(problem): problem for problem in (*orders.PRODUCTS, *orders.ATTENTIONS)}


def distinct(kind: str, what: str) -> list[tuple[Any, str]]:
    """The options of all choices of a kind, each with what else its kernel depends on."""
    found = {
        (getattr(PROBLEMS[name], what), json.dumps(choice.options))
        for name, of in STORED.items()
        if name.startswith(kind)
        for choice in of.values()
    }
    return sorted(found)


FORMS = distinct("gemm", "majors")
HEADS = sorted({(shape[3], options) for shape, options in distinct("attention", "shape")})


def test_every_problem_has_its_choices() -> None:
    assert list(STORED) == list(PROBLEMS)
    assert all(tuple(found) == orders.ORDERS for found in STORED.values())


@pytest.mark.nightly(one_of=6)
@pytest.mark.parametrize("name", PROBLEMS)
def test_choices_are_those_of_the_planners(name: str) -> None:
    assert orders.choices(PROBLEMS[name]) == STORED[name]


def test_the_joint_choice_is_predicted_to_be_no_slower() -> None:
    for found in STORED.values():
        assert all(found["joint"].cycles <= orders.EQUAL * choice.cycles for choice in found.values())


def test_each_order_is_alone_somewhere() -> None:
    """There are problems on which the orders differ, and one on which none does."""
    kinds = set()
    for found in STORED.values():
        layout, schedule, joint = (found[order].options for order in orders.ORDERS)
        kinds.add((layout == joint, schedule == joint, layout == schedule))
    assert kinds >= {(True, True, True), (True, False, False), (False, False, True), (False, False, False)}


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 256 bytes."""
    room = np.zeros(array.nbytes + 256, dtype=np.uint8)
    copy = room[-room.ctypes.data % 256 :][: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@needs_compiler
@pytest.mark.parametrize(("majors", "options"), FORMS)
def test_products_of_all_choices_are_exact(majors: str, options: str) -> None:
    """Two tiles, the second and the last step not full."""
    form = Form(**json.loads(options))
    m, n, k = form.rows + 40, form.columns - 8, form.step_bytes + 48
    made = gemm_kernel((m, n, k), "f16", form=form, result="f16", major_a="K" if majors[0] == "K" else "MN",
                       major_b="K" if majors[1] == "K" else "MN")  # fmt: skip
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    left, right = (aligned(each if major == "K" else np.ascontiguousarray(each.T))
                   for each, major in zip((a, b), majors, strict=True))  # fmt: skip
    d, status = aligned(np.full((m, n), np.nan, dtype=np.float16)), np.zeros(1, dtype=np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in (left, right, d)]
    fault = hostsim.run(made.kernel, made.arguments(left, right, d, 1, status), blocks=1, regions=regions)
    assert (hostsim.FAULTS[fault], status.tolist()) == ("none", [1])
    assert np.array_equal(d, (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16))


@pytest.mark.nightly(one_of=3)
@needs_compiler
@pytest.mark.parametrize(("columns", "options"), HEADS)
@pytest.mark.parametrize("causal", [False, True])
def test_attentions_of_all_choices_are_those_of_wide_floats(columns: int, options: str, causal: bool) -> None:
    given: dict[str, Any] = json.loads(options)
    rows, keys = given["tile"]
    made = attention_kernel((1, rows + 20, 2 * keys + 30, columns), "f16", causal=causal, **given)
    compared(on_the_cpu, made, "f16")


def test_a_name_says_what_a_problem_is() -> None:
    for name, problem in PROBLEMS.items():
        kind = (problem.shape, getattr(problem, "dtype", "bf16"), getattr(problem, "majors", "KK"))
        assert device_ablation.parsed(name) == (*kind, getattr(problem, "causal", False))


@pytest.mark.compile
def test_instructions_are_counted_from_machine_code() -> None:
    text = 'extern "C" __global__ void f(int* a) {{ {} }}'
    few, many = (to_cubin(text.format("".join(f"a[{at}] *= {at + 3};" for at in range(count))), "sm_90a")
                 for count in (1, 100))  # fmt: skip
    assert 8 <= device_ablation.instructions(few) < 64
    assert 100 <= device_ablation.instructions(many) - device_ablation.instructions(few) < 400


def test_the_page_has_the_choices() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert (
        page.partition("<!-- choices -->\n")[2].partition("\n<!-- /choices -->")[0] == device_ablation.choices_table()
    )


def test_the_page_has_the_table_of_the_record() -> None:
    rows = json.loads(gzip.decompress((ROOT / "tests/data/measured/ablation_dev.json.gz").read_bytes()))["rows"]
    assert device_ablation.table(rows) in (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert all(row["right"] for row in rows)


def test_the_table_of_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    name = next(iter(STORED))
    ncu = {device_ablation.LATENCY: 20.0, device_ablation.IDLE: 71.2,
           "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 3.0,
           "smsp__average_warps_issue_stalled_barrier_not_issued_per_issue_active.ratio": 2.5,
           "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 9.0}  # fmt: skip
    common = {"problem": name, "right": True, "ms": 0.2, "ncu": ncu, "registers": 168, "sass": 900, "compile_s": 1.0}
    rows = [
        common | {"what": "ours", "options": json.dumps(STORED[name]["joint"].options), "orders": ["layout", "joint"]},
        common | {"what": "triton", "options": json.dumps(device_ablation.configs(name)[0]), "orders": [], "ms": 0.25},
        {"problem": name, "what": "ours", "options": "{}", "orders": ["schedule"], "fault": "no\nmore", "ncu": {}},
    ]
    path = tmp_path / "ablation_dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"rows": rows}).encode()))
    monkeypatch.setattr(sys, "argv", ["device_ablation.py", "--table", str(path)])
    device_ablation.main()
    ours, theirs, failed = capsys.readouterr().out.splitlines()[2:]
    assert "| layout = joint | 128x256, 128 bytes of K in 128B, leaving 128, 4 stages, 1 + 2 roles |" in ours
    assert ours.endswith("| 0.2000 | 1.000 | 71% | 15% | long_scoreboard 45%, barrier 15% | 168 | 900 | 1.0 |")
    assert "| Triton | 128x256x64, 3 stages, 8 warps | 0.2500 | 1.250 |" in theirs
    assert "| schedule | no |" in failed
