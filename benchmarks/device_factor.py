"""Run factored layouts on a GPU: the copy engine, then the residual by exchanges, by shuffles, through shared memory.

Run on a machine with an sm_90a GPU, from the root of the repository:

    python3 benchmarks/device_factor.py --out DIRECTORY [--cases 60] [--seconds 160]

Every case is a random layout of registers, lanes and warps. Its factors' kernels run once, and every element of every
register is compared with the one that the layout asks for; then the residual is repeated to be timed. Cases run in
processes of their own, eight to a process. Where Triton is installed, its own conversion between the same two layouts
of registers is timed in the same call (``device_factor_triton.py``). Writes ``factor_dev.json``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from layoutalg.codegen import launch  # noqa: E402
from layoutalg.codegen.factored import factored_kernel  # noqa: E402
from layoutalg.f2 import LinearLayout, matrix  # noqa: E402
from layoutalg.proofs.factorisation import Factorisation  # noqa: E402
from layoutalg.synth import factorise  # noqa: E402

FLIPS: dict[int, tuple[tuple[int, int], ...]] = {
    16: (), 32: ((4, 7),), 64: ((4, 7), (5, 8)), 128: ((4, 7), (5, 8), (6, 9)),
}  # fmt: skip
DTYPES = ("bf16", "f32", "u8")
BYTES = {"u8": 1, "bf16": 2, "f32": 4}
WAYS = ("exchanges", "shuffles", "shared")
KINDS = ("swap1", "swap2", "swap3", "bits", "dense")
REPEATS, RUNS, GROUP = 512, 5, 8


def layout_of(case: int) -> tuple[str, str, LinearLayout, tuple[int, ...]]:
    """The case's kind, type, layout, a descriptor's map after a residual of that kind, and the residual's columns."""
    rng = random.Random(case)
    kind, dtype = KINDS[case % len(KINDS)], DTYPES[case // len(KINDS) % len(DTYPES)]
    registers, warps = rng.randint(3, 5), rng.randint(0, 3)
    inner, n = registers + 5, registers + 5 + warps
    local = [1 << bit for bit in range(inner)]
    if kind.startswith("swap"):
        count = int(kind[4:])
        for one, other in zip(
            rng.sample(range(registers), count), rng.sample(range(registers, inner), count), strict=True
        ):
            local[one], local[other] = local[other], local[one]
    elif kind == "bits":
        rng.shuffle(local)
    else:
        while matrix.rank(local := [rng.randrange(1, 1 << inner) for _ in range(inner)]) < inner:
            pass
    span = rng.choice(tuple(FLIPS))
    size = BYTES[dtype].bit_length() - 1
    run = (span >> size).bit_length() - 1
    order = [*range(run), *rng.sample(range(run, n), n - run)]
    carried = [1 << bit for bit in order]
    carried = [u ^ sum((u >> (s - size) & 1) << (t - size) for t, s in FLIPS[span]) for u in carried]
    upper = [(rng.randrange(1 << inner) if kind == "dense" else 0) | 1 << bit for bit in range(inner, n)]
    columns = tuple(matrix.apply(carried, column) for column in (*local, *upper))
    axes = (("register", registers), ("lane", 5), ("warp", warps))
    layout = LinearLayout(axes, (("offset", n),), columns, columns[0] if rng.random() < 0.3 else 0)
    return kind, dtype, layout, (*local, *upper)


def run_case(case: int) -> dict[str, Any]:
    """Run one case every way."""
    kind, dtype, layout, _ = layout_of(case)
    found = factorise(layout, dtype=dtype)
    row: dict[str, Any] = {"case": case, "kind": kind, "dtype": dtype, "layout": str(layout)}
    if not isinstance(found, Factorisation):
        return row | {"refused": str(found)}
    plan, steps = found.plan.descriptor, found.shuffles
    row |= {"registers": steps.registers, "warps": steps.warps, "rounds": found.rounds, "cheapest": found.cheapest}
    row |= {"packed": found.exchange.packed if found.exchange else 1}
    row["costs"] = {way: cost.to_json() for way, cost in found.costs.items()}
    number = {1: np.uint8, 2: np.uint16, 4: np.uint32}[BYTES[dtype]]
    elements = plan.problem.byte_span()[1] // BYTES[dtype]
    values = np.random.default_rng(case).integers(0, 1 << 8 * BYTES[dtype], elements, dtype=number)
    tensor = launch.upload(values.view(np.uint8))
    carried, wanted = np.asarray(found.carried.table()), np.asarray(layout.table())
    at_offset = np.empty(carried.size, dtype=number)
    at_offset[carried] = values[: carried.size]
    expected = at_offset[wanted].astype(np.uint32)
    for way in found.costs:
        kernel = factored_kernel(found, way)

        def once(repeats: int, kernel: Any = kernel) -> tuple[np.ndarray, np.ndarray, int]:
            words, times = np.zeros(carried.size, dtype=np.uint32), np.zeros(2, dtype=np.uint64)
            status = np.zeros(1, dtype=np.int32)
            placed = launch.place_map(plan.raw, tensor.pointer)
            launch.run(kernel, [placed, *[0] * plan.problem.rank, words, times, repeats, status])
            return words, times.astype(np.int64), int(status[0])

        words, _, status = once(1)
        same = bool(np.array_equal(words, expected))
        pairs = [(once(1)[1], once(1 + REPEATS)[1]) for _ in range(RUNS)]
        cycles = statistics.median(int(many[0] - one[0]) / REPEATS for one, many in pairs)
        nanoseconds = statistics.median(int(many[1] - one[1]) / REPEATS for one, many in pairs)
        row[way] = {"equal": same, "status": status, "cycles": round(cycles, 2), "ns": round(nanoseconds, 2)}
    for way in ("exchanges", "shuffles"):
        row[f"{way}_ratio"] = round(row[way]["cycles"] / max(row["shared"]["cycles"], 0.01), 4)
    return row


def peer(cases: int, seconds: float) -> dict[str, Any]:
    """Triton's conversions of the cases, in a process of its own: nanoseconds by case, and what went wrong."""
    asked = []
    for case in range(cases):
        _, dtype, layout, columns = layout_of(case)
        registers, warps = dict(layout.in_axes)["register"], dict(layout.in_axes)["warp"]
        asked.append({"case": case, "dtype": dtype, "registers": registers, "warps": warps, "columns": columns})
    command = [sys.executable, str(Path(__file__).with_name("device_factor_triton.py"))]
    try:
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=seconds, check=False
        )
        lines, note = done.stdout, done.stderr[-400:] if done.returncode else ""
    except subprocess.TimeoutExpired as late:
        lines, note = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else "", "timed out"
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return {"rows": rows, "error": note}


def main() -> None:
    """Run the cases in groups, each in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--first", type=int)
    parser.add_argument("--seconds", type=float, default=160, help="no group of cases starts after half of them")
    given = parser.parse_args()
    if given.first is not None:
        for case in range(given.first, min(given.first + GROUP, given.cases)):
            try:
                row = run_case(case)
            except Exception as error:
                row = {"case": case, "error": f"{type(error).__name__}: {error}"[:400]}
            print(json.dumps(row), flush=True)
        return
    rows: list[dict[str, Any]] = []
    begun = time.monotonic()
    for first in range(0, given.cases, GROUP):
        if time.monotonic() - begun > given.seconds / 2:
            rows.append({"first": first, "error": "not begun: out of time"})
            continue
        command = [sys.executable, __file__, "--out", str(given.out), "--cases", str(given.cases)]
        command += ["--first", str(first)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
            lines, note = done.stdout, done.stderr[-400:] if done.returncode else ""
        except subprocess.TimeoutExpired as late:
            lines, note = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else "", "timed out"
        rows += [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
        if note:
            rows.append({"first": first, "error": note})
    write(given, rows, {"rows": [], "error": "not begun"})
    write(given, rows, peer(given.cases, max(20.0, given.seconds - (time.monotonic() - begun))))


def write(given: argparse.Namespace, rows: list[dict[str, Any]], triton: dict[str, Any]) -> None:
    """Write what is known, and print its summary."""
    theirs = {row["case"]: row for row in triton["rows"] if "ns" in row}
    for row in rows:
        if row.get("case") in theirs:
            row["triton"] = theirs[row["case"]]
    ways = [row[way] for row in rows for way in WAYS if way in row]

    def medians(ratio: Any) -> dict[str, float]:
        """The median over the rows of each kind for which there is a ratio."""
        found = {kind: [ratio(row) for row in rows if row.get("kind") == kind and "shared" in row] for kind in KINDS}
        kept = {kind: [value for value in values if value is not None] for kind, values in found.items()}
        return {kind: round(statistics.median(values), 4) for kind, values in kept.items() if values}

    summary = {
        "date": datetime.date.today().isoformat(), "device": str(launch.device()), "cases": given.cases,
        "kernels": len(ways), "equal": sum(way["equal"] and way["status"] == 1 for way in ways),
        "errors": sum("error" in row or "refused" in row for row in rows), "repeats": REPEATS,
        "exchanges_to_shared": medians(lambda row: row.get("exchanges_ratio")),
        "shuffles_to_shared": medians(lambda row: row["shuffles_ratio"]),
        "exchanges_to_triton": medians(
            lambda row: row["exchanges"]["ns"] / row["triton"]["ns"] if "triton" in row and "exchanges" in row else None
        ),
        "shared_to_triton": medians(lambda row: row["shared"]["ns"] / row["triton"]["ns"] if "triton" in row else None),
        "triton_cases": len(theirs), "triton_errors": [row for row in triton["rows"] if "ns" not in row][:4],
        "triton_note": triton["error"],
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "factor_dev.json").write_text(
        json.dumps({"summary": summary, "rows": rows}, indent=1), encoding="utf-8"
    )
    print(json.dumps(summary, indent=1), flush=True)


if __name__ == "__main__":
    main()
