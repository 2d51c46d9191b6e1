"""Time conversions between layouts of registers on a GPU, beside Triton's of the same pair in the same call.

Run on a machine with an sm_90a GPU, torch and Triton, from the root of the repository (about a minute):

    python3 benchmarks/device_conversions.py --out DIRECTORY [--processes 16] [--set fitted]

First all kernels are compiled, in many processes; then one process runs them one after the other. Each plan's kernel
converts random data once, and every word is compared with the definition of the layouts. Then it is timed: a loop whose
turns convert there and back three times, by the clock around it, minus one whose turns do it once, so that nothing of
the loop itself remains. Words are changed before every conversion by one instruction each, whose cycles are measured in
the same way and taken off, as many for all kernels of a pair. This for every alternative that the planner thinks of,
and for Triton, of the set ``kernels``. Writes ``conversions_dev.json``.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from device_conversion_pairs import SETS, cases, linear  # noqa: E402
from instruments.conversion_loop import conversion_loop  # noqa: E402

from layoutalg.codegen import launch  # noqa: E402
from layoutalg.codegen.compile import to_cubin  # noqa: E402
from layoutalg.codegen.conversion import conversion_kernel  # noqa: E402
from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.proofs.conversion import ConversionPlan  # noqa: E402
from layoutalg.proofs.conversion_steps import Through  # noqa: E402
from layoutalg.synth import conversion  # noqa: E402

FEW, MANY, RUNS = 32, 288, 5
PAIRS = (1, 3)
"""Conversions there and back in a turn of the two loops."""
LEAST = 0.5
"""Cycles of a conversion, at least: what loops that differ by renamed registers measure may be below nothing."""
FAULT = 3
TARGET = "sm_90a"


def plans(case: dict[str, Any]) -> dict[str, tuple[ConversionPlan, ConversionPlan]]:
    """The plan there and the plan back; and each alternative's that goes both ways."""
    ends = [linear(case[end], case["size"]) for end in ("source", "destination")]
    there = conversion(ends[0], ends[1], case["bits"], target=TARGET, exhaustive=True)
    back = conversion(ends[1], ends[0], case["bits"], target=TARGET, exhaustive=True)
    found = {"plan": (there, back)}
    for one in there.alternatives:
        for other in back.alternatives:
            if one.mechanism == other.mechanism and one.cost is not None and other.cost is not None and one.steps:
                found[one.mechanism] = tuple(
                    dataclasses.replace(plan, mechanism=each.mechanism, steps=each.steps, cost=each.cost)
                    for plan, each in ((there, one), (back, other))
                )
    return found


def said(plan: ConversionPlan) -> dict[str, Any]:
    """What a plan costs, and the instructions of shared memory that it uses."""
    through = [step for step in plan.steps if isinstance(step, Through)]
    accesses = [
        [each.instruction, len(each.starts), each.turns] for step in through for each in (step.store, step.load)
    ]
    return plan.cost.to_json() | {"shared": accesses, "barrier": [step.barrier for step in through]}


def build(number: int, processes: int, folder: Path, chosen: str) -> None:
    """Compile the kernels of some cases."""
    for case in cases(chosen)[number::processes]:
        row: dict[str, Any] = {"case": case["case"], "kernels": {}}
        try:
            made = plans(case)
            there, back = made["plan"]
            row |= {"mechanism": there.mechanism, "back": back.mechanism, "plan": str(there).splitlines()[0]}
            row["modelled"] = {key: (pair[0].cost.cycles + pair[1].cost.cycles) / 2 for key, pair in made.items()}
            row["costs"] = {key: [said(each) for each in pair] for key, pair in made.items() if key != "plan"}
            kernels: dict[str, KernelSource] = {"once": conversion_kernel(there)}
            for pairs in PAIRS:
                kernels |= {f"{key} x{pairs}": conversion_loop(*pair, pairs=pairs) for key, pair in made.items()}
                kernels[f"nothing x{pairs}"] = conversion_loop(there, back, converts=False, pairs=pairs)
            names: dict[str, str] = {}
            for key, kernel in kernels.items():
                name = names.setdefault(kernel.text, f"{case['case']}_{len(names)}.cubin")
                (folder / name).write_bytes(to_cubin(kernel))
                row["kernels"][key] = [name, kernel.name, kernel.threads, kernel.dynamic_smem_bytes]
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:600]
        (folder / f"{case['case']}.json").write_text(json.dumps(row | {"triton_error": "did not compile"}))
        if chosen != "kernels":
            continue
        try:
            import device_conversions_triton

            device_conversions_triton.build(case, PAIRS)
        except Exception as error:
            row["triton_error"] = f"{type(error).__name__}: {error}"[:300]
        (folder / f"{case['case']}.json").write_text(json.dumps(row))


class Runner:
    """Loads machine code and runs it on the memory of torch tensors."""

    def __init__(self, folder: Path) -> None:
        import torch
        from cuda.bindings import driver

        self.torch, self.driver, self.folder = torch, driver, folder
        torch.zeros(1, device="cuda")
        self.cycles = torch.zeros(1, dtype=torch.int64, device="cuda")

    def load(self, said: list[Any]) -> Any:
        """The function of a kernel that was compiled."""
        name, symbol, threads, smem = said
        module = self._call(self.driver.cuModuleLoadData((self.folder / name).read_bytes()))
        function = self._call(self.driver.cuModuleGetFunction(module, symbol.encode()))
        limit = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call(self.driver.cuFuncSetAttribute(function, limit, smem))
        return function, threads, smem

    def run(self, loaded: Any, pointers: list[int], turns: int | None = None) -> None:
        """Launch and wait."""
        import ctypes

        function, threads, smem = loaded
        values = [*pointers] if turns is None else [*pointers, turns]
        types = [ctypes.c_void_p] * len(pointers) + ([] if turns is None else [ctypes.c_int])
        self._call(
            self.driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, smem, 0, (tuple(values), tuple(types)), 0)
        )
        self.torch.cuda.synchronize()

    def took(self, once: Any) -> int:
        """The cycles that a launch wrote."""
        once()
        self.torch.cuda.synchronize()
        return int(self.cycles.item())

    def _call(self, answer: tuple[Any, ...]) -> Any:
        if int(answer[0]):
            raise RuntimeError(str(answer[0]))
        return answer[1] if len(answer) > 1 else None


def words_of(values: np.ndarray[Any, Any], threads: int) -> np.ndarray[Any, Any]:
    """Elements by thread and register as words by word and thread."""
    return np.ascontiguousarray(values.reshape(threads, -1).view(np.uint32).T)


def time_case(runner: Runner, case: dict[str, Any], row: dict[str, Any], without: list[int]) -> None:
    """Run one case: correct first, then every loop in turn."""
    torch = runner.torch
    number = {8: np.uint8, 16: np.uint16, 32: np.uint32}[case["bits"]]
    values = np.random.default_rng(case["case"]).integers(0, 1 << case["bits"], case["size"], dtype=number)
    threads = 32 * case["warps"]
    tables = [
        np.asarray(linear(case[end], case["size"]).table()).reshape(threads, -1) for end in ("source", "destination")
    ]
    before, after = (words_of(np.ascontiguousarray(values[table]), threads) for table in tables)
    loops: dict[str, Any] = {}
    same: dict[str, str] = {}
    source = torch.from_numpy(before.view(np.int32).copy()).cuda()
    into = torch.zeros(max(before.size, after.size), dtype=torch.int32, device="cuda")
    if row.get("kernels"):
        runner.run(runner.load(row["kernels"]["once"]), [source.data_ptr(), into.data_ptr()])
        found = into[: after.size].cpu().numpy().view(np.uint32).reshape(after.shape)
        row["equal"] = bool(np.array_equal(found, after))
        first = {said[0]: key for key, said in reversed(row["kernels"].items())}
        for key, said in row["kernels"].items():
            if first[said[0]] != key:
                same[key] = first[said[0]]
            elif key != "once":
                loops[key] = _ours(runner, runner.load(said), source, into)
    if "triton_error" not in row and case["case"] not in without:
        import device_conversions_triton

        kind = {8: torch.int8, 16: torch.int16, 32: torch.int32}[case["bits"]]
        signed = {8: np.int8, 16: np.int16, 32: np.int32}[case["bits"]]
        given = torch.from_numpy(values.view(signed).copy()).to(kind).cuda()
        target = torch.zeros_like(given)
        for pairs in PAIRS:
            loops[f"triton x{pairs}"] = _theirs(runner, device_conversions_triton, case, pairs, given, target)
        runner.took(lambda: loops[f"triton x{PAIRS[0]}"](FEW))
        row["triton_equal"] = bool(torch.equal(given, target))
    samples: dict[str, list[int]] = {key: [] for key in loops}
    for once in loops.values():
        runner.took(lambda once=once: once(MANY))
    for _ in range(RUNS):
        for key, once in loops.items():
            few, many = (runner.took(lambda once=once, turns=turns: once(turns)) for turns in (FEW, MANY))
            samples[key].append(many - few)
    turn = {key: statistics.median(found) / (MANY - FEW) for key, found in samples.items()}
    turn |= {key: turn[other] for key, other in same.items()}
    few, many = (f" x{pairs}" for pairs in PAIRS)
    cycles = {
        key.removesuffix(few): (turn[key.removesuffix(few) + many] - value) / (2 * (PAIRS[1] - PAIRS[0]))
        for key, value in turn.items()
        if key.endswith(few)
    }
    row["changing"] = round(cycles.pop("nothing"), 2)
    row["cycles"] = {key: round(value - row["changing"], 2) for key, value in cycles.items()}
    row["turns"] = {key: round(value, 2) for key, value in turn.items()}


def _ours(runner: Runner, loaded: Any, source: Any, into: Any) -> Any:
    pointers = [source.data_ptr(), into.data_ptr(), runner.cycles.data_ptr()]
    return lambda turns: runner.run(loaded, pointers, turns)


def _theirs(runner: Runner, module: Any, case: dict[str, Any], pairs: int, given: Any, target: Any) -> Any:
    return lambda turns: module.launch(case, pairs, given, target, runner.cycles, turns)


def time_all(folder: Path, first: int, without: list[int], chosen: str) -> None:
    """Time the cases from one on, a line for each; a fault ends the process."""
    runner = Runner(folder)
    for case in cases(chosen)[first:]:
        there = folder / f"{case['case']}.json"
        row = json.loads(there.read_text()) if there.exists() else {"case": case["case"], "error": "not compiled"}
        row |= {"name": case["name"], "bits": case["bits"], "size": case["size"], "warps": case["warps"]}
        fault = False
        if "kernels" in row:
            try:
                time_case(runner, case, row, without)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"[:160]
                fault = "CUDA" in row["error"]
        row.pop("kernels", None)
        print(json.dumps(row), flush=True)
        if fault:
            sys.exit(FAULT)


def timed(given: argparse.Namespace, command: list[str], folder: Path, begun: float) -> list[dict[str, Any]]:
    """The rows of all cases; one that faults runs again without Triton, in a process of its own as those behind it."""
    rows: dict[int, dict[str, Any]] = {}
    without: list[int] = []
    first, total = 0, len(cases(given.set))
    while first < total:
        more = ["--folder", str(folder), "--first", str(first), "--without", ",".join(map(str, without))]
        try:
            done = subprocess.run(
                [*command, *more], capture_output=True, text=True, check=False,
                timeout=max(1.0, given.seconds - (time.monotonic() - begun)),
            )  # fmt: skip
            lines, late = done.stdout, False
        except subprocess.TimeoutExpired as error:
            lines, late = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else "", True
        found = [json.loads(line) for line in lines.splitlines() if line.startswith("{") and line.endswith("}")]
        for row in found:
            rows[row["case"]] = row
        if late or not found:
            break
        last = found[-1]["case"]
        again = "CUDA" in found[-1].get("error", "") and last not in without
        without += [last] if again else []
        first = last if again else last + 1
    for case in without:
        rows[case]["triton_error"] = "its kernel faulted"
    return [rows[case] for case in sorted(rows)]


def summarised(rows: list[dict[str, Any]], chosen: str) -> dict[str, Any]:
    """Ratios to Triton, and how often the cost model puts the cheapest first."""
    both = [row for row in rows if row.get("cycles", {}).keys() >= {"plan", "triton"} and row["cycles"]["triton"] > 2]
    ratios = {
        f"{row['name']} {row['bits']} bits": max(row["cycles"]["plan"], LEAST) / row["cycles"]["triton"] for row in both
    }
    ranked = right = 0
    for row in rows:
        cycles = row.get("cycles", {})
        measured = {key: max(value, LEAST) for key, value in cycles.items() if key not in ("plan", "triton")}
        if len(measured) > 1:
            ranked += 1
            least = min(measured, key=lambda key, of=row: of["modelled"][key])
            right += measured[least] <= 1.05 * min(measured.values())
    return {
        "set": chosen, "pairs": len(rows), "equal": sum(row.get("equal", False) for row in rows),
        "triton_equal": sum(row.get("triton_equal", False) for row in rows), "compared": len(both),
        "geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios.values()))), 4) if ratios else None,
        "max": max(ratios.values(), default=None), "worst": max(ratios, key=lambda key: ratios[key], default=None),
        "above_1.05": sorted(key for key, value in ratios.items() if value > 1.05),
        "ranked": ranked, "ranked_right": right,
        "errors": [row["error"] for row in rows if "error" in row][:6],
        "triton_errors": [row["triton_error"][:100] for row in rows if "triton_error" in row],
    }  # fmt: skip


def main() -> None:
    """Compile in many processes, then run in one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--set", choices=SETS, default="kernels")
    parser.add_argument("--build", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--first", type=int)
    parser.add_argument("--without", default="")
    given = parser.parse_args()
    if given.build is not None:
        build(given.build, given.processes, given.folder, given.set)
        return
    if given.first is not None:
        time_all(given.folder, given.first, [int(case) for case in given.without.split(",") if case], given.set)
        return
    begun = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="layoutalg-") as name:
        folder = Path(name)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
        command = [sys.executable, __file__, "--out", str(given.out), "--processes", str(given.processes)]
        command += ["--set", given.set]
        running = [
            subprocess.Popen(
                [*command, "--folder", name, "--build", str(number)], stderr=(folder / f"{number}.err").open("w")
            )
            for number in range(given.processes)
        ]
        notes = []
        for number, process in enumerate(running):
            try:
                process.wait(timeout=max(1.0, 0.7 * given.seconds - (time.monotonic() - begun)))
                notes += [(folder / f"{number}.err").read_text()[-300:]] if process.returncode else []
            except subprocess.TimeoutExpired:
                process.kill()
                notes.append("compiling took too long")
        compiled = time.monotonic() - begun
        rows = timed(given, command, folder, begun)
    try:
        import triton

        version = triton.__version__
    except ImportError:
        version = None
    summary = {
        "date": datetime.date.today().isoformat(), "device": str(launch.device()), "triton": version,
        "seconds": [round(compiled, 1), round(time.monotonic() - begun, 1)], "notes": notes[:3],
        **summarised(rows, given.set),
    }  # fmt: skip
    (given.out / "conversions_dev.json").write_text(json.dumps({"summary": summary, "rows": rows}))
    print(json.dumps(summary, indent=1))
    for row in rows:
        print(row["case"], row["name"], row["bits"], row.get("mechanism"), row.get("cycles"), row.get("error", ""))


if __name__ == "__main__":
    main()
