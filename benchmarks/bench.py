"""The figures of docs/benchmarks.md, measured: ``make bench`` (or ``python benchmarks/bench.py --json``).

Each line names what was timed, the median and the 95th percentile, and the bar it is held to. Where a peer is installed
the same work is timed in the same run and the ratio is shown; nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 7


def seconds(call: Callable[[], object], repeats: int = REPEATS, number: int = 1) -> float:
    """Median wall-clock seconds of one call."""
    call()
    samples = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(number):
            call()
        samples.append((time.perf_counter() - began) / number)
    return statistics.median(samples)


def fresh(code: str, repeats: int = REPEATS) -> float:
    """Median seconds a statement takes in a fresh interpreter, as it measures itself."""
    program = f"import time\nt = time.perf_counter()\n{code}\nprint(time.perf_counter() - t)"
    run = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(repeats)
    ]
    return statistics.median(float(done.stdout) for done in run)


def planner() -> list[dict[str, object]]:
    """Plan with certificate over the real tiles, after import."""
    from layoutalg.synth import InadmissibleError, synthesize_tensormap

    tiles = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    times = []
    for tile in tiles:

        def plan(problem: dict[str, object] = tile["problem"]) -> None:
            with contextlib.suppress(InadmissibleError):
                synthesize_tensormap(problem)

        times.append(seconds(plan, 5))
    times.sort()
    return [
        line("synthesize_tensormap with certificate, median over the real tiles", times[len(times) // 2], "<= 5 ms"),
        line("the same, 95th percentile", times[int(0.95 * len(times))], "<= 50 ms"),
        line("the same, slowest tile", times[-1], ""),
    ]


def descriptors() -> list[dict[str, object]]:
    """Encode, decode, verdicts and tile loads."""
    from layoutalg.targets.nvidia import tensormap

    tm = tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")
    raw = tensormap.encode(tm)
    with np.load(ROOT / "tests/data/measured/tensormap_dev.npz") as data:
        params = data["params"]
    many = np.concatenate([params, params, params])[:100_000]
    memory = np.random.default_rng(0).integers(0, 256, 1 << 21, dtype=np.uint8)
    image = np.zeros(16384, dtype=np.uint8)
    load = tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 96), swizzle="128B")

    def thousand() -> None:
        for index in range(1000):
            tensormap.tile_load(load, (64 * (index % 8), index), memory, image)

    return [
        line("tensormap.encode", seconds(lambda: tensormap.encode(tm), number=2000), "<= 20 us"),
        line("tensormap.decode", seconds(lambda: tensormap.decode(raw), number=2000), ""),
        line("tensormap.violations", seconds(lambda: tensormap.violations(tm), number=2000), ""),
        line(
            "100,000 verdicts and encodings, batched",
            seconds(lambda: (tensormap.batch.verdicts(many), tensormap.batch.encode_many(many)), 3),
            "< 60 s",
        ),
        line("1,000 tile loads of 12 KB, model", seconds(thousand, 3), "a few s"),
    ]


def processor_times(calls: list[Callable[[], object]]) -> list[float]:
    """Processor seconds of each call, sorted; a refusal is an answer."""
    from layoutalg import LayoutError

    times = []
    for call in [calls[0], *calls]:
        began = time.process_time()
        with contextlib.suppress(LayoutError):
            call()
        times.append(time.process_time() - began)
    return sorted(times[1:])


def questions() -> list[dict[str, object]]:
    """Suggestions, operand descriptors, random TensorMap problems and admissibility for TMA, in processor time."""
    import layoutalg as la
    from layoutalg.synth import synthesize_tensormap
    from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
    from layoutalg.synth.wgmma.plan import find

    sys.path.insert(0, str(ROOT))
    from tests.judges.planner_problems import random_problem

    rng = random.Random(5)
    asked: list[Callable[[], object]] = []
    for index in range(30):
        shape = rng.choice((256, 512, 1000, 1024, 4096)), rng.choice((256, 512, 1000, 1024, 4096))
        tensor = shape, None if rng.random() < 0.7 else (1, shape[0]), rng.choice(("bf16", "f16"))
        tile = rng.choice((8, 16, 32, 64, 80, 96, 128)), rng.choice((8, 16, 32, 48, 64, 72, 128))
        consumer = ("wgmma.A", "wgmma.B", "ldmatrix.x4")[index % 3]
        asked.append(lambda tensor=tensor, tile=tile, consumer=consumer: la.suggest(tensor, tile, [consumer]))
    suggested = processor_times(asked)
    rng = random.Random(7)
    problems = [random_problem(rng) for _ in range(200)]
    planned = processor_times([lambda problem=problem: synthesize_tensormap(problem) for problem in problems])
    rows = [
        (m, k, text) for m in (16, 64, 128) for k in (16, 64) for text in ("({m},{k}):({k},1)", "({m},{k}):(1,{m})")
    ]
    layouts = [swizzle + text.format(m=m, k=k) for m, k, text in rows for swizzle in ("", "Sw<3,3,3> o 0 o ")]
    layouts += [f"({m},{k}):({k + 8},1)" for m, k, _ in rows]
    admitted = processor_times([lambda smem=smem: la.admissible(smem, "tma", dtype="f16") for smem in layouts])
    entries = [
        line("suggest, median of 30 random questions", suggested[15], "<= 50 ms"),
        line("the same, slowest", suggested[-1], ""),
        line("synthesize_tensormap with repairs, median of 200 random problems", planned[100], "<= 5 ms"),
        line("the same, 99th percentile", planned[198], "<= 1 s"),
        line(f"admissible for tma, median of {len(layouts)} layouts", admitted[len(layouts) // 2], "<= 5 ms"),
    ]
    for operand, shape, major in (("A", (64, 16), "K"), ("A", (128, 64), "K"), ("B", (128, 64), "MN")):
        tile = canonical_operand(operand, shape, major=major)
        what = f"operand {operand} {shape[0]} x {shape[1]}, {major}-major"
        found = processor_times([lambda tile=tile: find(tile)] * 51)[25]
        proved = processor_times([lambda tile=tile: synthesize_wgmma(tile)] * 51)[25]
        entries += [line(f"{what}: descriptors found", found, "<= 50 us"), line("the same, proved", proved, "")]
    return entries


def algebra() -> list[dict[str, object]]:
    """A table beside tensor-layouts, where it is installed; the operations are timed by bench_cute.py."""
    from layoutalg import cute

    square = cute.CuteLayout(((8, 16), (8, 16)), ((128, 1), (16, 1024)))
    mine = {
        "table of a blocked 128x128 layout": square.table,
    }
    theirs: dict[str, Callable[[], object]] = {}
    try:
        import tensor_layouts as peer

        ps = peer.Layout(((8, 16), (8, 16)), ((128, 1), (16, 1024)))
        theirs = {
            "table of a blocked 128x128 layout": lambda: [ps(index) for index in range(128 * 128)],
        }
    except ImportError:
        pass
    lines = []
    for name, call in mine.items():
        number = 1 if "table" in name else 500
        spent = seconds(call, number=number)
        entry = line(name, spent, "")
        if name in theirs:
            entry["ratio_to_tensor_layouts"] = round(spent / seconds(theirs[name], 3, number), 4)
        lines.append(entry)
    return lines


def program() -> list[dict[str, object]]:
    """Import and the whole demo, in fresh interpreters."""
    numpy_alone = fresh("import numpy")
    package = fresh("import layoutalg, numpy")
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "layoutalg", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    spent = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return [
        line("import layoutalg", package, "<= 150 ms with numpy") | {"of_which_numpy_ms": round(1e3 * numpy_alone, 1)},
        line("the demo", spent, "<= 60 s") | {"exit": done.returncode},
        {"what": "peak memory of any child process", "value": f"{peak / 1024:.0f} MB", "bar": "<= 400 MB"},
    ]


def line(what: str, spent: float, bar: str) -> dict[str, object]:
    """One figure, in a unit that suits it."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if spent * scale >= 1 or unit == "us":
            return {"what": what, "value": f"{spent * scale:.3g} {unit}", "bar": bar}
    raise ValueError(spent)


def main() -> None:
    """Measure everything and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    lines = [*program(), *planner(), *descriptors(), *questions(), *algebra()]
    if arguments.json:
        print(
            json.dumps(
                {"machine": platform.processor(), "python": platform.python_version(), "figures": lines}, indent=1
            )
        )
        return
    for entry in lines:
        more = ", ".join(f"{key} {value}" for key, value in entry.items() if key not in ("what", "value", "bar"))
        print(f"{entry['what']:<72} {entry['value']:>10}  {entry['bar']}  {more}".rstrip())


if __name__ == "__main__":
    main()
