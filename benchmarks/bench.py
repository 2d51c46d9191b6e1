"""Times of this library, and of its peers in the same run: ``make bench``, or a part of it.

    python benchmarks/bench.py [--only cute f2] [--peers DIRECTORY] [--json] [--rounds 15]

A part yields rows: what is timed, the same by a peer where one is installed, and the bar. All calls of a row take
turns, so that other load on the machine falls on all of them alike; shown are medians of processor time, and their
ratio. *cold*: every cache of the library is cleared before each of our calls, outside the time. A row of many calls is
a distribution: the median, the 95th percentile and the slowest of their least times.

Peers: pycute (the site-packages of ``nvidia-cutlass==4.2.0.0`` are ``--peers``), tensor-layouts, ``triton==3.9.0``,
python-flint. A part of another state of the library that lacks a name skips its rows (``compare.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests")]
SAMPLE_SECONDS = 0.002
"""Calls of one sample take about so long."""
LONG_SECONDS = 0.25
"""A call that takes longer is timed fewer times."""
Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One figure.

    Args:
        what: What is timed.
        ours: The call; several calls are a distribution; a number is seconds that were measured elsewhere.
        peer: The same by a peer.
        bar: What the figure is held to.
        cold: Clear the caches of the library before each call.
        clock: Seconds; of the wall where another process works.
        more: What is shown with it.
    """

    what: str
    ours: Call | Sequence[Call] | float
    peer: Call | None = None
    bar: str = ""
    cold: bool = False
    clock: Callable[[], float] = time.process_time
    more: dict[str, object] = field(default_factory=dict)

    def figures(self, rounds: int) -> dict[str, object]:
        """Time the row; microseconds."""
        found: dict[str, object] = {"what": self.what, "bar": self.bar} | self.more
        if isinstance(self.ours, float):
            return found | {"us": 1e6 * self.ours, "least_us": 1e6 * self.ours}
        if not callable(self.ours):
            times = sorted(min(self.samples(call, 1, rounds // 3 or 1)) for call in self.ours)
            at = {"us": 0.5, "p95_us": 0.95, "slowest_us": 1.0}
            taken = {name: 1e6 * times[min(len(times) - 1, int(part * len(times)))] for name, part in at.items()}
            return found | taken | {"least_us": 1e6 * statistics.fmean(times)}
        calls = [self.ours] if self.peer is None else [self.ours, self.peer]
        seconds = [min(self.samples(call, 1, 2)) for call in calls]
        clear = clearers() if self.cold else []
        taken: list[list[float]] = [[] for _ in calls]
        for _ in range(rounds if max(seconds) < LONG_SECONDS else 2):
            for call, once, held in zip(calls, seconds, taken, strict=True):
                if self.cold and call is self.ours:
                    held += self.samples(call, 1, 20, clear)
                else:
                    held += self.samples(call, max(1, int(SAMPLE_SECONDS / max(once, 1e-7))), 1)
        ours = taken[0]
        found |= {"us": 1e6 * statistics.median(ours), "least_us": 1e6 * min(ours)}
        if self.peer is not None:
            found |= {"peer_us": 1e6 * statistics.median(taken[1])}
            found |= {"ratio": statistics.median(ours) / statistics.median(taken[1])}
        return found

    def samples(self, call: Call, count: int, times: int, clear: Sequence[Call] = ()) -> list[float]:
        """Seconds of one call, from ``times`` samples of ``count`` calls; a refusal is an answer."""
        from layoutalg.ground.errors import LayoutError

        found = []
        for _ in range(times):
            for empty in clear:
                empty()
            began = self.clock()
            with contextlib.suppress(LayoutError):
                for _ in range(count):
                    call()
            found.append((self.clock() - began) / count)
        return found


def clearers() -> list[Call]:
    """The functions that clear the caches of the library."""
    found = {}
    for name in [name for name in sys.modules if name.startswith("layoutalg.")]:
        for value in list(vars(sys.modules[name]).values()):
            clear = getattr(value, "cache_clear", None)
            if clear is not None and not isinstance(value, type):
                found[id(value)] = clear
    return list(found.values())


def peer_module(name: str) -> Any:
    """A peer, None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# ---------------------------------------------------------------------------------------------------------- the program


def program() -> Iterator[Row]:
    """Import and the whole demo, in fresh interpreters."""
    for what, modules, bar in (("import numpy", "numpy", ""), ("import layoutalg", "layoutalg, numpy", "<= 150 ms")):
        text = f"import time\nt = time.perf_counter()\nimport {modules}\nprint(time.perf_counter() - t)"
        runs = [subprocess.run([sys.executable, "-c", text], capture_output=True, check=True) for _ in range(7)]
        yield Row(what, min(float(run.stdout) for run in runs), bar=bar)
    tile = "Sw<3,4,3> o 0 o (64,64):(64,1)"
    problem = str(ROOT / "tests/data/examples/problem.json")
    for words in (
        ("--help",), ("explain", tile), ("banks", "ldmatrix", tile), ("equal", "(4,8):(1,4)", "32:1"),
        ("admissible", tile, "wgmma.A"), ("transactions", "(32,4):(4,1)", "4096,4096"),
        ("synth", "tensormap", problem, "--json"),
    ):  # fmt: skip
        start = [sys.executable, "-m", "layoutalg", *words]
        taken = []
        for _ in range(10):  # the first may compile the modules
            done = subprocess.run(start, capture_output=True, check=False, cwd=ROOT)
            if done.returncode not in (0, 1):  # answered: proved, or refuted
                raise SystemExit(done.stderr.decode())
            taken.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
        spent = statistics.median(after - before for before, after in itertools.pairwise(taken))
        yield Row(f"layoutalg {words[0]}, from its start to its end", spent, bar="<= 450 ms")
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "layoutalg", "demo"], capture_output=True, check=False)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    more = {"exit": done.returncode, "peak_mb": ended.ru_maxrss // 1024}
    yield Row("the demo", ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, bar="<= 60 s", more=more)


def planner() -> Iterator[Row]:
    """Plans of TensorMaps with certificates: the tiles of the demo, and random problems with repairs."""
    from judges.planner_problems import random_problem

    from layoutalg.synth import synthesize_tensormap

    tiles = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    calls = [functools.partial(synthesize_tensormap, tile["problem"]) for tile in tiles]
    yield Row("synthesize_tensormap, real tiles", calls, bar="<= 5 ms, 95 % <= 50 ms")
    rng = random.Random(7)
    calls = [functools.partial(synthesize_tensormap, random_problem(rng)) for _ in range(200)]
    yield Row("synthesize_tensormap with repairs, random problems", calls, bar="<= 5 ms, all <= 1 s")


def passes() -> Iterator[Row]:
    """The ways in which another compiler asks: a process for one problem and for many, a call; processor time."""
    from layoutalg.synth import InadmissibleError, synthesize_tensormap

    tiles = json.loads((ROOT / "layoutalg/cli/data/real_tiles.json").read_text(encoding="utf-8"))["tiles"]
    problems = []
    for tile in tiles:
        with contextlib.suppress(InadmissibleError):
            synthesize_tensormap(tile["problem"])
            problems.append(tile["problem"])

    def asked(documents: object) -> None:
        command = [sys.executable, "-m", "layoutalg", "synth", "tensormap", "-", "--json"]
        subprocess.run(command, input=json.dumps(documents).encode(), capture_output=True, check=True, cwd=ROOT)

    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    bare = functools.partial(subprocess.run, [sys.executable, "-c", "import json"], check=True)
    one = functools.partial(asked, problems[0])
    yield Row("process, 1 problem, to one that imports json", one, bare, clock=children)
    yield Row(f"process, {len(problems)} problems", functools.partial(asked, problems), clock=children)
    text = (
        "import json, sys, time\nt = time.process_time()\nfrom layoutalg.synth import synthesize_tensormap\n"
        "problem = json.load(sys.stdin)\njson.dumps(synthesize_tensormap(problem).to_json())\n"
        "print(time.process_time() - t)"
    )
    command = functools.partial(subprocess.run, [sys.executable, "-c", text], capture_output=True, check=True, cwd=ROOT)
    first = min(float(command(input=json.dumps(problems[0]).encode()).stdout) for _ in range(5))
    yield Row("call in Python, the first with its imports", first)
    calls = [lambda each=each: json.dumps(synthesize_tensormap(each).to_json()) for each in problems]  # type: ignore[misc]
    yield Row("call in Python, JSON to JSON", calls)


def ragged() -> Iterator[Row]:
    """The copies of many groups, with and without their maps; boxes of segments."""
    import layoutalg as la
    from layoutalg.synth.ragged import boxes

    tensor, smem = la.Tensor((1 << 19, 512)), "Sw<3,3,3> o 0 o (128,64):(64,1)"
    family = la.ragged(tensor, None, (128, 64), smem)
    sizes = np.random.default_rng(0).integers(0, 1000, 1000)
    yield Row("maps of a ragged tensor, proved", lambda: la.ragged(tensor, None, (128, 64), smem))
    yield Row("copies of 1,000 groups", lambda: family.copies(sizes), bar="<= 10 ms")
    yield Row("copies of 1,000 groups, each as a value", lambda: list(family.copies(sizes)))
    yield Row("boxes of 1,000 segments", lambda: boxes(sizes.tolist(), 128, "overlap_pool"))


def descriptors() -> Iterator[Row]:
    """Encode, decode, verdicts and tile loads."""
    from layoutalg.targets.nvidia import tensormap

    tm = tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")
    raw = tensormap.encode(tm)
    with np.load(ROOT / "tests/data/measured/tensormap_dev.npz") as data:
        many = np.concatenate([data["params"]] * 3)[:100_000]
    memory = np.random.default_rng(0).integers(0, 256, 1 << 21, dtype=np.uint8)
    image = np.zeros(16384, dtype=np.uint8)
    load = tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 96), swizzle="128B")
    yield Row("tensormap.encode", lambda: tensormap.encode(tm), bar="<= 20 us")
    yield Row("tensormap.decode", lambda: tensormap.decode(raw))
    yield Row("tensormap.violations", lambda: tensormap.violations(tm))
    both = lambda: (tensormap.batch.verdicts(many), tensormap.batch.encode_many(many))  # noqa: E731
    yield Row("100,000 verdicts and encodings, batched", both, bar="< 60 s")
    yield Row("a tile load of 12 KB, model", lambda: tensormap.tile_load(load, (64, 7), memory, image), bar="some ms")


def questions() -> Iterator[Row]:
    """Suggestions, admissibility and operand descriptors."""
    import layoutalg as la
    from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma

    rng, asked = random.Random(5), []
    for index in range(30):
        shape = rng.choice((256, 512, 1000, 1024, 4096)), rng.choice((256, 512, 1000, 1024, 4096))
        tensor = shape, None if rng.random() < 0.7 else (1, shape[0]), rng.choice(("bf16", "f16"))
        tile = rng.choice((8, 16, 32, 64, 80, 96, 128)), rng.choice((8, 16, 32, 48, 64, 72, 128))
        consumer = ("wgmma.A", "wgmma.B", "ldmatrix.x4")[index % 3]
        asked.append(functools.partial(la.suggest, tensor, tile, [consumer]))
    yield Row("suggest, 30 random questions", asked, bar="<= 50 ms")
    sizes = [(m, k) for m in (16, 64, 128) for k in (16, 64)]
    layouts = [f"{swizzle}({m},{k}):({first},{second})" for m, k in sizes for first, second in ((k, 1), (1, m))
               for swizzle in ("", "Sw<3,3,3> o 0 o ")]  # fmt: skip
    layouts += [f"({m},{k}):({k + 8},1)" for m, k in sizes]
    asked = [functools.partial(la.admissible, smem, "tma", dtype="f16") for smem in layouts]
    yield Row(f"admissible for tma, {len(layouts)} layouts", asked, bar="<= 5 ms")
    for operand, shape, major in (("A", (64, 16), "K"), ("A", (128, 64), "K"), ("B", (128, 64), "MN")):
        tile = canonical_operand(operand, shape, major=major)
        what = f"operand {operand} {shape[0]} x {shape[1]}, {major}-major"
        yield Row(f"{what}: descriptors, proved", functools.partial(synthesize_wgmma, tile))


# ---------------------------------------------------------------------------------------------------------- the algebra

CUTE: dict[str, tuple[Any, Any]] = {
    "row tile (128,64)": ((128, 64), (64, 1)),
    "TV m16n8k16 A": (((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),
    "smem ((8,16),(8,8))": (((8, 16), (8, 8)), ((8, 512), (1, 64))),
    "3-level nested": (((2, (2, 4)), ((2, 2), (4, 2))), ((1, (64, 8)), ((2, 128), (256, 4)))),
}


def cute_calls(library: Any, layout: Any, tile: Any, point: Any) -> dict[str, Call]:
    """The operations that are timed, over one library's values."""
    named = {name: getattr(library, name, None) for name in
             ("coalesce", "composition", "complement", "right_inverse", "left_inverse", "logical_divide",
              "zipped_divide", "logical_product")}  # fmt: skip
    given = dict.fromkeys(named, (layout,)) | dict.fromkeys(
        ("composition", "logical_divide", "zipped_divide"), (layout, tile)
    )
    given |= {"complement": (tile, 8192), "logical_product": (tile, tile)}
    found: dict[str, Call] = {name: functools.partial(call, *given[name]) for name, call in named.items() if call}
    return found | {"value at a coordinate": lambda: layout(*point), "value at an index": lambda: layout(37)}


def ones(shape: Any) -> Any:
    """The coordinate of ones."""
    return 1 if isinstance(shape, int) else tuple(map(ones, shape))


def cute() -> Iterator[Row]:
    """CuTe operations beside pycute, exactness decided; whole tables beside tensor-layouts too."""
    from layoutalg import cute as library

    peer, other = peer_module("pycute"), peer_module("tensor_layouts")
    for title, (shape, stride) in CUTE.items():
        point = ones(shape)
        ours = cute_calls(library, library.CuteLayout(shape, stride), library.CuteLayout(4, 2), point)
        theirs = cute_calls(peer, peer.Layout(shape, stride), peer.Layout(4, 2), point) if peer else {}
        for name, call in ours.items():
            yield Row(f"{name}, {title}", call, usable(theirs.get(name)), "<= 1.0 of pycute", cold=True)
            yield Row(f"{name}, {title}, repeated", call, bar="<= 2 us")
    side = library.CuteLayout(((8, 16), (8, 16)), ((8, 1024), (1, 64)))
    for name, module in (("pycute", peer), ("tensor-layouts", other)):
        pairs = module.Layout(side.shape, side.stride) if module else None
        listed = pairs and (lambda pairs=pairs: [pairs(index) for index in range(128 * 128)])
        yield Row(f"table of a blocked 128x128 layout, beside {name}", side.table, listed)


def usable(call: Call | None) -> Call | None:
    """A peer's call, None where it refuses."""
    try:
        return call if call is None or call() is not None else None
    except (AssertionError, TypeError, ZeroDivisionError):
        return None


def dense_f2(bits: int, seed: int) -> Any:
    """A random invertible map over one axis."""
    from layoutalg.f2 import LinearLayout, matrix

    rng = random.Random(seed)
    while True:
        columns = tuple(rng.randrange(1 << bits) for _ in range(bits))
        if matrix.rank(columns) == bits:
            return LinearLayout((("x", bits),), (("y", bits),), columns)


def register_layouts(bits: int) -> tuple[Any, Any, Any]:
    """A blocked layout, a tensor-core accumulator layout and a swizzled offset layout of one square tensor."""
    from layoutalg.f2 import LinearLayout

    half = bits // 2
    dims = {"dim0": 1 << half, "dim1": 1 << half}
    row, col = [(1 << i, 0) for i in range(half)], [(0, 1 << i) for i in range(half)]
    blocked = {"register": col[:2] + col[5:] + row[4:], "lane": col[2:5] + row[:2], "warp": row[2:4]}
    mma = {"register": [col[0], row[3], *col[3:], *row[6:]], "lane": col[1:3] + row[:3], "warp": row[4:6]}
    shared = {"offset": col + [(1 << i, 8 << i if i < 3 else 0) for i in range(half)]}
    return tuple(LinearLayout.from_bases(bases, dims) for bases in (blocked, mma, shared))  # type: ignore[return-value]


def f2() -> Iterator[Row]:
    """Linear layouts beside the Triton binding: compose, invert, invert and compose; inverses beside python-flint."""
    from layoutalg import f2 as library
    from layoutalg.f2 import matrix

    triton, flint = peer_module("triton._C.libtriton.linear_layout"), peer_module("flint")

    def given(layout: Any) -> Any:
        bases = [(axis, [list(image) for image in images]) for axis, images in layout.bases.items()]
        return triton.LinearLayout.from_bases(bases, list(layout.out_dims), list(layout.out_dims.values()), False)

    for bits in (12, 20):
        blocked, mma, shared = register_layouts(bits)
        for name, target, outer in (
            ("blocked and mma", blocked, mma),
            ("blocked and swizzled shared", blocked, shared),
            ("random dense", dense_f2(bits, 2), dense_f2(bits, 1)),
        ):
            back = outer.inverse()
            p_target, p_outer, p_back = map(given, (target, outer, back)) if triton else (None, None, None)
            for what, ours, theirs in (
                ("compose", lambda b=back, t=target: b @ t, lambda b=p_back, t=p_target: t.compose(b)),
                ("invert", outer.inverse, lambda o=p_outer: o.invert()),
                ("invert and compose", functools.partial(library.invert_and_compose, target, outer),
                 lambda o=p_outer, t=p_target: t.invert_and_compose(o)),
            ):  # fmt: skip
                row = f"{what}, {name}, {bits} bits"
                yield Row(row, ours, theirs if triton else None, "<= 0.5 of Triton", cold=True)
                yield Row(f"{row}, repeated", ours, theirs if triton else None)
    yield Row("table of 2^14 points", dense_f2(14, 3).table, bar="<= 50 us")
    wide = dense_f2(24, 4)
    yield Row("invert, random dense, 24 bits", wide.inverse, cold=True)
    entries = [[column >> i & 1 for i in range(24)] for column in wide.columns]
    ready = flint and flint.nmod_mat(entries, 2)
    yield Row("inverse of 24 columns", lambda: matrix.inverse(wide.columns), ready and ready.inv, "<= 2", cold=True)


def integer_matrices(size: int = 16) -> dict[str, tuple[tuple[int, ...], ...]]:
    """One matrix per class."""
    rng = random.Random(1)

    def filled(height: int, width: int, entry: Callable[[int, int], int]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(entry(i, j) for j in range(width)) for i in range(height))

    def dense(height: int, width: int) -> tuple[tuple[int, ...], ...]:
        return filled(height, width, lambda *_: rng.randint(-9, 9))

    def strides(side: int) -> tuple[tuple[int, ...], ...]:
        """One digit a row, mixed radix weights."""
        weights = [1]
        for _ in range(side - 1):
            weights.append(weights[-1] * rng.choice((2, 3, 4)) % 4096 or 1)
        order = rng.sample(range(side), side)
        return filled(side, side, lambda i, j: weights[i % 4] if order[i] == j else int(order[(i + 1) % side] == j))

    few = dense(12, size)
    differences = [tuple(a - b for a, b in zip(few[i], few[i + 4], strict=True)) for i in range(4)]
    sparse, digits, mixed = (0, 1, 2, 3, 4, 6, 8, 12), (1, 2, 3, 4, 8), (0, 6, 12, -12, 18, 4, 3, -9)
    return {
        "16x16 dense": dense(size, size),
        "16x16 sparse": filled(size, size, lambda *_: rng.choice(sparse) if rng.random() < 0.2 else 0),
        "16x16 layout-like": strides(size),
        "16x16 digit permutation": filled(
            size, size, lambda i, j: rng.choice(digits) if j == (5 * i + 3) % size else 0
        ),
        "16x16 zeros and ones": filled(size, size, lambda *_: rng.choice((0, 1))),
        "16x16 multiples of 3 and 4": filled(size, size, lambda *_: rng.choice(mixed)),
        "16x16 rank 12": (*few, *differences),
        "8x16 dense": dense(8, size),
        **{f"{side}x{side} dense": dense(side, side) for side in (4, 8, 32)},
        "8x8 layout-like": strides(8),
    }


def integer() -> Iterator[Row]:
    """Hermite and Smith forms with their transforms, beside python-flint's without."""
    from layoutalg.integer import hnf, snf

    flint = peer_module("flint")
    for name, rows in integer_matrices().items():
        matrix = flint and flint.fmpz_mat([list(row) for row in rows])
        for form, ours, theirs in (("Smith", snf, matrix and matrix.snf), ("Hermite", hnf, matrix and matrix.hnf)):
            yield Row(f"{form} form, {name}", functools.partial(ours, rows), theirs, "<= 100 of python-flint")


def piecewise() -> Iterator[Row]:
    """Through ISL, a process of its own: equality, swizzles, inverses, counts, and where dense maps over F2 end."""
    from layoutalg.bridges.equal import Budget, equivalent
    from layoutalg.convert import to_linear, to_piecewise
    from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
    from layoutalg.f2 import LinearLayout
    from layoutalg.piecewise import PiecewiseLayout, PointSet

    timed = functools.partial(Row, clock=time.perf_counter)
    wide = Budget(isl_operations=500_000)
    by_isl = functools.partial(equivalent, _engines=("isl",))
    left, right = CuteLayout((3, 8, 5, 7), (1, 3, 24, 120)), CuteLayout((24, 35), (1, 24))
    wrong = CuteLayout((24, 5, 7), (1, 24, 121))
    yield timed("4 modes written differently, ISL alone", lambda: by_isl(left, right), bar="<= 10 ms")
    yield timed("4 modes, a false variant, ISL alone", lambda: by_isl(left, wrong), bar="<= 10 ms")
    second = PiecewiseLayout(
        "{ [a, b, c, d] -> [a + 3b + 24c + 120d + 11 - floor((4a + 33)/3) + a + floor(a/3)] : "
        "0 <= a < 3 and 0 <= b < 8 and 0 <= c < 5 and 0 <= d < 7 }"
    )
    yield timed("4 modes, one with floors, is_equal", lambda: to_piecewise(left).is_equal(second))
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((64, 128), (1, 64)))
    linear, function = to_linear(layout), to_piecewise(layout)
    yield timed("128-byte swizzle, 2^13 elements, = matrix", lambda: equivalent(layout, linear), bar="<= 10 ms")
    yield timed("the same through ISL alone", lambda: by_isl(function, linear))
    yield timed("128-byte swizzle, 2^13 elements, to_piecewise", lambda: to_piecewise(layout))
    for bits in (8, 13, 16, 20, 24, 26):
        one = dense_f2(bits, bits)
        other = LinearLayout(one.in_axes, one.out_axes, (*one.columns[:-1], one.columns[-1] ^ 4))
        yield timed(f"dense F2, {bits} bits, to_piecewise", functools.partial(to_piecewise, one))
        yield timed(f"dense F2, {bits} bits, equal, ISL alone", functools.partial(by_isl, one, one, wide))
        yield timed(f"dense F2, {bits} bits, not equal, ISL alone", functools.partial(by_isl, one, other, wide))
    tiles = PiecewiseLayout("[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }")
    yield timed("inverse of a ragged tile", tiles.image_inverse)
    chain = to_piecewise(CuteLayout((7, 3, 5, 11, 13, 17), (1, 7, 21, 105, 1155, 15015)))
    yield timed("inverse of a chain of 6 modes", chain.image_inverse)
    yield timed("count formula of a wedge", PointSet("[N] -> { [i, j] : 0 <= j <= i < N }").count_formula)
    for count in (1, 10, 40):
        yield from against_islpy(count)


def against_islpy(count: int) -> Iterator[Row]:
    """Reading, composing and inverting a function of disjoint pieces, and the same by islpy alone."""
    import islpy

    from layoutalg.piecewise import PiecewiseLayout

    pieces = [f"[i] -> [{2 + k % 3}i + {1000 * k}] : {10 * k} <= i < {10 * k + 5 + k % 5}" for k in range(count)]
    text, outer = f"{{ {'; '.join(pieces)} }}", f"{{ [v] -> [v + floor(v/997)] : 0 <= v < {1000 * count} }}"
    read = functools.partial(islpy.PwMultiAff.read_from_str, islpy.Context())
    ours, theirs = [PiecewiseLayout(side) for side in (text, outer)], [read(side) for side in (text, outer)]
    bar = "<= 3 of islpy"

    def inverse() -> object:
        return islpy.PwMultiAff.from_map(theirs[0].as_map().reverse())

    after = functools.partial(theirs[1].pullback_pw_multi_aff, theirs[0])
    yield Row(f"read, {count} pieces", lambda: PiecewiseLayout(text), lambda: read(text), bar, cold=True)
    yield Row(f"composition, {count} pieces", lambda: ours[1].after(ours[0]), after, bar)
    yield Row(f"inverse, {count} pieces", ours[0].image_inverse, inverse, bar)


def equations() -> Iterator[Row]:
    """The times in docs/hierarchical_equations.md: X o A = B, blocks kept, ranks, exchange plans."""
    from layoutalg import hierarchy
    from layoutalg.hierarchy import Box, DigitMap, HierarchicalLayout, TableMap

    def digits(count: int, seed: int) -> DigitMap:
        """Digits of 2, 3, 4 values in any order, some reversed."""
        chance = random.Random(seed)
        extents, order = [2 + k % 3 for k in range(count)], list(range(count))
        chance.shuffle(order)
        weight, here = [0] * count, 1
        for k in order:
            weight[k], here = here, here * extents[k]
        return DigitMap(tuple([(extent, chance.choice((1, -1)) * weight[k]) for k, extent in enumerate(extents)]))

    def solving(what: str, one: Any, two: Any) -> Row:
        box = Box.of(x=one.size)
        ends = [HierarchicalLayout(box, box, each) for each in (one, two)]
        return Row(f"X o A = B, {what}", functools.partial(hierarchy.solve_conversion, *ends))

    for count in (8, 32, 128):
        mixed, other = (DigitMap.from_bits(dense_f2(count, seed).columns) for seed in (3, 4))
        box = hierarchy.hierarchy(**dict.fromkeys(("register", "lane", "warp", "cta"), 1 << count // 4))
        layout = HierarchicalLayout(box, box, mixed)
        yield solving(f"{count} digits", digits(count, 1), digits(count, 2))
        yield solving(f"{count} mixed bits", mixed, other)
        yield Row(f"blocks kept, {count} bits", functools.partial(hierarchy.preserves_blocks, layout, "lane|warp"))
        ranks = functools.partial(hierarchy.crossing_ranks, mixed, (count // 4,) * 4)
        yield Row(f"ranks, {count} bits", ranks)
        yield Row(f"exchange plan, {count} bits", functools.partial(hierarchy.exchange_plan, layout))
    for count in (8, 12, 16, 20):
        tables = [TableMap(tuple(random.Random(seed).sample(range(1 << count), 1 << count))) for seed in (1, 2)]
        yield solving(f"tables of 2^{count}", *tables)


def conversions() -> Iterator[Row]:
    """Plans of conversions of 16-bit registers between layouts of 4 warps, and the swizzle for the same two layouts."""
    from layoutalg.f2 import LinearLayout, matrix
    from layoutalg.synth import conversion, swizzle

    def pair(rng: random.Random, kind: str, bits: int) -> list[LinearLayout]:
        """Permutations of bits, dense maps, or dense maps inside warps."""

        def columns(count: int) -> list[int]:
            if kind == "units":
                return rng.sample([1 << bit for bit in range(count)], count)
            while matrix.rank(found := [rng.getrandbits(count) for _ in range(count)]) < count:
                pass
            return found

        first, second = columns(bits), columns(bits)
        if kind == "warps":
            second = [*(matrix.apply(first, column) for column in columns(bits - 2)), *first[bits - 2 :]]
        axes = (("register", bits - 7), ("lane", 5), ("warp", 2))
        return [LinearLayout(axes, (("x", bits),), tuple(each)) for each in (first, second)]

    for bits in (12, 13, 14):
        for kind in ("units", "dense", "warps"):
            rng = random.Random(bits)
            pairs = [pair(rng, kind, bits) for _ in range(50)]
            yield Row(f"conversion, {kind}, {bits} bits", [functools.partial(conversion, *two, 16) for two in pairs])
            asked = [functools.partial(swizzle, list(zip(two, ("store", "load"), strict=True))) for two in pairs]
            yield Row(f"swizzle, {kind}, {bits} bits", asked)


def pipelines() -> Iterator[Row]:
    """Rings with one producer: proved for every N, beside all orders of events at N = 2 D + 1; refuted; schedules."""
    from judges.pipeline_judge import explore

    from layoutalg.pipeline import Builder, Pipeline, attention_work, gemm_work, schedule, verify

    def ring(stages: int, consumers: int, behind: int = 0) -> Pipeline:
        block = Builder(stages)
        tiles = block.ring("tiles", A=16384, B=8192)
        tiles.acquire(block.role("load")).load().commit()
        for number in range(consumers):
            tiles.wait(block.role(f"math{number}")).mma().release(behind)
        return block.pipeline()

    for stages, consumers in ((2, 1), (2, 2), (4, 2), (8, 3), (8, 16)):
        made = ring(stages, consumers)
        searched = functools.partial(explore, made.to_json(), 2 * stages + 1, states=10**6)
        what, bar = f"{stages} slots, {consumers} consumers", "5 ms" if consumers < 4 else ""
        yield Row(f"proved, {what}", functools.partial(verify, made), searched if stages == 2 else None, bar)
        proved = verify(made)
        yield Row(f"certificate and check, {what}", lambda proved=proved: proved.to_certificate().check())  # type: ignore[misc]
        document = json.loads(json.dumps(made.to_json()).replace('"mma_wait", "n": 0', '"mma_wait", "n": 1'))
        yield Row(f"refuted, {what}", functools.partial(verify, document))
    yield Row("proved, released 1 behind, 4 slots", functools.partial(verify, ring(4, 2, behind=1)))
    for consumers in (1, 2):
        gemm = gemm_work(64 * consumers, 256, 64, consumers=consumers)
        yield Row(f"scheduled and proved, GEMM, {consumers} consumers", functools.partial(schedule, gemm), bar="500 ms")
    yield Row("scheduled and proved, attention", functools.partial(schedule, attention_work()), bar="10 s")


def variants() -> Iterator[Row]:
    """Keys of symbolic plans, and picks among variants of a kernel: ready ones, and misses while one compiles."""
    import layoutalg as la
    from layoutalg.codegen.kernel import KernelSource
    from layoutalg.codegen.variants import Variants

    plan = la.tensormap(la.Tensor(("M", "K")), (64, 128), "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))")
    yield Row("key of a symbolic plan", lambda: plan.key(M=100, K=72), bar="20 us")

    def build(sizes: Any) -> Any:
        threads = next((each for each in (64, 128) if sizes.holds(f"n <= {each}")), 256)
        width = next((each for each in (128, 8) if sizes.holds(f"n % {each} == 0")), 1)
        text = f'extern "C" __global__ void f(int n) {{ int width = {width}, threads = {threads}; }}'
        return KernelSource("f", text, "sm_90a", threads, 0, (("int", "n"),))

    began = time.perf_counter()
    some = Variants(build, "n", domain="n <= 8192")
    yield Row("variants: the general kernel, with NVRTC", time.perf_counter() - began)
    began = time.perf_counter()
    count = len(some.dispatch.branches)
    yield Row("variants: all guards over 1..8192", time.perf_counter() - began, bar="<= 10", more={"variants": count})
    missed = []
    while not some.pick(n=256).exact:
        began = time.perf_counter()
        some.pick(n=256)
        missed.append(time.perf_counter() - began)
        time.sleep(0.0005)
    yield Row(
        "pick, a miss while the variant compiles", statistics.median(missed), more={"slowest_us": 1e6 * max(missed)}
    )
    yield Row("pick, ready", lambda: some.pick(n=256), bar="20 us")
    some.close()


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    part.__name__: part
    for part in (
        program, planner, passes, ragged, descriptors, questions, cute, f2, integer, piecewise, equations, conversions,
        pipelines, variants,
    )
}  # fmt: skip


def figures(parts: Sequence[str], rounds: int) -> Iterator[dict[str, object]]:
    """Time all rows of some parts."""
    for name in parts:
        rows = PARTS[name]()
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            except (ImportError, AttributeError, TypeError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                break
            yield {"part": name} | row.figures(rounds)


def time_text(microseconds: object) -> str:
    """A time in a unit that suits it."""
    taken = float(microseconds)  # type: ignore[arg-type]
    scale, unit = next(pair for pair in ((1e6, "s"), (1e3, "ms"), (1.0, "us")) if taken >= pair[0] or pair[1] == "us")
    return f"{taken / scale:.3g} {unit}"


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--peers", help="directory that holds pycute")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="one JSON line a row")
    given = parser.parse_args()
    if given.peers:
        sys.path.append(given.peers)
    print(json.dumps({"machine": platform.processor(), "python": platform.python_version()}), file=sys.stderr)
    for figure in figures(given.only, given.rounds):
        if given.json:
            print(json.dumps(figure), flush=True)
            continue
        times = {key: time_text(value) for key, value in figure.items() if key.endswith("us") and key != "least_us"}
        more = {key: value for key, value in figure.items() if key not in ("what", "bar", "part") and key[-2:] != "us"}
        ratio = {key: round(float(value), 3) if key == "ratio" else value for key, value in more.items()}  # type: ignore[arg-type]
        rest = ", ".join(f"{key.removesuffix('_us')} {value}" for key, value in [*times.items(), *ratio.items()][1:])
        print(f"{figure['what']:<62} {times.get('us', ''):>9}  {figure['bar']}  {rest}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
