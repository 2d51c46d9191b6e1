"""Random layouts of every family through every bridge, judged by enumeration that shares no code with the library.

    python3 benchmarks/campaign_bridges.py --count 50000 --families cute [--seed 0] [--jobs 2]
    python3 benchmarks/campaign_bridges.py --small          (the 2,601 CuTe layouts of two modes)
    python3 benchmarks/campaign_bridges.py --only cute:17   (one case again, with its answers)

Every source goes through ``to_cute``, ``to_linear``, ``to_integer``, ``to_piecewise`` and ``recognize``, its answers
through a second bridge, pairs through ``equivalent`` and ``compose``. An answer must have the enumerated values; the
witness of a refusal must be true of them, and no form may exist. Prints one line of JSON per family: ``wrong`` (a
wrong value, verdict or witness), ``needless`` (refused although a form exists), ``gave up`` (BudgetError), answers and
refusals by code. The exit status is 1 where something was wrong or needless.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

import bridge_judges as judge  # noqa: E402
from bridge_sources import WrongError, built, read, require  # noqa: E402

import layoutalg as la  # noqa: E402
from layoutalg import convert  # noqa: E402
from layoutalg.bridges.equal import ENGINES, equivalent  # noqa: E402
from layoutalg.cute import ComposedLayout, CuteLayout  # noqa: E402
from layoutalg.f2 import LinearLayout  # noqa: E402
from layoutalg.ground.errors import BudgetError, LayoutError  # noqa: E402
from layoutalg.ground.verdict import Proved, Refuted  # noqa: E402
from layoutalg.integer import IntegerLayout  # noqa: E402
from layoutalg.piecewise import PiecewiseLayout  # noqa: E402

BRIDGES = {
    "cute": convert.to_cute,
    "linear": convert.to_linear,
    "integer": convert.to_integer,
    "piecewise": convert.to_piecewise,
}
SEARCHED = 512  # greatest table for which every swizzle is tried
MODULI = 2**38  # values from here on are searched for strides only, as documented
COMPOSED = tuple(family for family in judge.FAMILIES if family not in ("outputs", "partial"))


class NeedlessError(Exception):
    """The library refused what exists."""


# ------------------------------------------------------------------------------------------------------------ judging


def bridge(target: str, layout: Any, expected: judge.Ints, tally: Counter[str]) -> Any:
    """One bridge, judged; the answer or None."""
    try:
        answer = BRIDGES[target](layout)
    except BudgetError as error:
        code = error.diagnostic.code
        tally[f"{target}: gave up {code}"] += 1
        _budget(target, code, layout, expected)
        return None
    except LayoutError as error:
        tally[f"{target}: {error.diagnostic.code}"] += 1
        refusal(target, layout, expected, error)
        return None
    kinds = {"cute": CuteLayout | ComposedLayout, "linear": LinearLayout, "integer": IntegerLayout}
    require(isinstance(answer, kinds.get(target, PiecewiseLayout)), f"{target} gave a {type(answer).__name__}")
    found = read(answer)
    same = expected.reshape(-1) if target in ("cute", "linear") else expected
    if target == "integer" or target == "piecewise":
        found = found.reshape(same.shape) if found.size == same.size else found
    require(np.array_equal(found, same), f"{target} gave {answer} with other values")
    if target == "cute" and isinstance(answer, ComposedLayout) and not isinstance(layout, ComposedLayout):
        require(len(answer.stages) == 1, "more than one swizzle")
    tally[f"{target}: exact"] += 1
    return answer


def _budget(target: str, code: str, layout: Any, expected: judge.Ints) -> None:
    if target == "piecewise" and code == "LA222":
        return
    if target == "piecewise" and code == "LA662":
        require(judge.runs(expected) > 64, "no more than 64 runs")
        needless = judge.strided(expected).any() or (expected.size.bit_count() == 1 and judge.affine(expected))
        if needless or (expected.size <= SEARCHED and judge.behind_a_swizzle(expected)):
            raise NeedlessError("to_piecewise gave up on a table that has a form")
        return
    if target == "integer" and code == "LA233" and np.ptp(expected) >= 2**62:
        return
    raise NeedlessError(f"{target} gave up ({code}) on {layout.size} points")


def refusal(target: str, layout: Any, expected: judge.Ints, error: LayoutError) -> None:
    """A refusal must be true, with a true witness, and there must be no form."""
    code, witness = error.diagnostic.code, dict(error.diagnostic.witness or {})
    size = len(expected)
    if code == "LA661":
        require(expected.ndim == 1 and expected[witness["coordinate"]] == judge.HOLE, "the witness is no hole")
        return
    require(expected.ndim > 1 or not (expected == judge.HOLE).any(), "a partial tile was refused for another reason")
    if code == "LA234":
        require(target in ("cute", "linear") and expected.ndim == 2, "LA234 on one output")
        return
    if target == "linear":
        _linear_refusal(code, witness, expected)
        return
    if target == "piecewise":
        require(code == "LA236" and size == 0, f"to_piecewise refused with {code}")
        return
    require(code == {"cute": "LA235", "integer": "LA660"}[target], f"{target} refused with {code}")
    if expected.ndim == 2:
        require(target == "integer" and isinstance(layout, PiecewiseLayout), "several outputs refused")
        return
    numbers = expected.tolist()
    if "x" in witness:
        x, y = witness["x"], witness["y"]
        require(x != y and x.bit_count() == y.bit_count() == 1, "x and y are not two bits")
        require(numbers[x + y] == witness["f(x+y)"] != witness["f(x)+f(y)-f(0)"], "f(x+y) is wrong")
        require(numbers[x] + numbers[y] - numbers[0] == witness["f(x)+f(y)-f(0)"], "f(x)+f(y)-f(0) is wrong")
        require(size.bit_count() == 1, "bits of a size that is no power of two")
    else:
        at = witness["coordinate"]
        require(numbers[at] == witness["value"] != witness["strided"], "the witness is not the value")
        if at < SEARCHED:
            require(not _prefix_strided(numbers, at), "a strided layout agrees up to the witness")
    if judge.strided(expected).any():
        raise NeedlessError(f"{target} refused a strided function")
    if target == "cute" and size <= SEARCHED and judge.behind_a_swizzle(expected):
        raise NeedlessError("to_cute refused a swizzled layout")
    if target == "integer":
        sought = "no modulus helps" in error.diagnostic.because or expected.min() < 0 or expected.max() >= MODULI
        if size <= SEARCHED and not sought:
            raise NeedlessError("moduli were not tried")
        if size <= SEARCHED and expected.max() < MODULI and judge.modular(expected):
            raise NeedlessError("to_integer refused a residue")


def _prefix_strided(numbers: list[int], at: int) -> bool:
    """Whether some strided layout of the whole size takes the values up to and including a coordinate."""
    size = len(numbers)
    stack = [(1, 0)]
    seen = set()
    while stack:
        weight, _ = stack.pop()
        if weight in seen:
            continue
        seen.add(weight)
        if weight > at:
            return True
        for prime in judge.primes(size // weight):
            step = numbers[weight] - numbers[0]
            stop = min(weight * prime, at + 1)
            if all(numbers[i] == numbers[i % weight] + i // weight * step for i in range(stop)):
                stack.append((weight * prime, 0))
    return False


def _linear_refusal(code: str, witness: dict[str, Any], expected: judge.Ints) -> None:
    size = len(expected)
    if size.bit_count() != 1:
        require(code == "LA231" and witness["size"] == size, f"{code} where the size is no power of two")
        return
    if code == "LA232":
        at = witness["coordinate"]
        require(expected[at] == witness["value"] < 0, "the value is not negative")
        require(not (expected[:at] < 0).any() and judge.affine(expected), "not the first negative value, or not affine")
        return
    require(code == "LA230", f"to_linear refused with {code}")
    x, y = witness["x"], witness["y"]
    value, forced = (int(expected[x ^ y]), int(expected[x] ^ expected[y] ^ expected[0]))
    require((value, forced) == (witness["f(x^y)"], witness["f(x)^f(y)^f(0)"]), "the witness has other values")
    require(value != forced, "the witness shows nothing")
    if judge.affine(expected):
        raise NeedlessError("to_linear refused an affine map")


def recognized(expected: judge.Ints, tally: Counter[str], rng: random.Random) -> None:
    """``recognize`` of the table, of other integer types and strides in memory, and with a shape."""
    table: Any = expected
    if rng.random() < 0.2:
        table = expected.tolist()
    elif rng.random() < 0.2:
        wide = np.zeros((len(expected), 3), dtype=np.int64)
        wide[:, 1] = expected
        table = wide[:, 1]
    elif rng.random() < 0.2 and expected.size and np.abs(expected).max() < 2**15:
        table = expected.astype(rng.choice((np.int16, ">i4", np.int32, np.int64)))
    if len(expected) == 0:
        try:
            convert.recognize(table)
        except la.MalformedError:
            tally["recognize: LA234"] += 1
            return
        raise WrongError("an empty table was recognised")
    plain = bool(judge.strided(expected).any())
    try:
        answer = convert.recognize(table)
    except LayoutError as error:
        tally[f"recognize: {error.diagnostic.code}"] += 1
        refusal("cute", None, expected, error)
        require(len(expected).bit_count() != 1 or expected.min() < 0 or not judge.affine(expected), "it is affine")
        return
    require(np.array_equal(read(answer), expected), "recognize gave other values")
    tally[f"recognize: {type(answer).__name__}"] += 1
    if plain:
        flat = answer.base if isinstance(answer, ComposedLayout) else answer
        require(isinstance(answer, CuteLayout) == (expected[0] == 0), "an offset and only an offset makes it composed")
        modes = list(zip(judge.leaves(flat.shape), judge.leaves(flat.stride), strict=True))
        merges = any(a * s == b for (a, s), (_, b) in itertools.pairwise(modes))
        require(not merges and (modes == [(1, 0)] or all(n > 1 for n, _ in modes)), "not coalesced")


def compared(f: Any, g: Any, left: judge.Ints, right: judge.Ints, tally: Counter[str], engines: Any) -> None:
    """``equivalent`` of two layouts whose values are known."""
    verdict = equivalent(f, g, _engines=engines)
    same = left.shape == right.shape and np.array_equal(left, right)
    if isinstance(verdict, Proved):
        require(same, f"{verdict.engine} proved two functions equal")
    elif isinstance(verdict, Refuted):
        require(not same, f"{verdict.engine} refuted what is equal")
        at = verdict.witness.get("coordinate")
        if at is None:
            require(left.shape != right.shape, "sizes or outputs differ, it says")
        else:
            shown = []
            for numbers in (left, right):
                value = numbers[at].tolist()  # type: ignore[index]
                shown.append(None if value == judge.HOLE else tuple(value) if isinstance(value, list) else value)
            require(shown == [verdict.witness["f"], verdict.witness["g"]], "the witness has other values")
            require(shown[0] != shown[1], "the witness shows nothing")
    else:
        require(engines != ENGINES or f.size > 2**20, f"unknown: {verdict.reason}")
        tally["equivalent: unknown, engines restricted"] += 1
        return
    tally[f"equivalent: {type(verdict).__name__} {verdict.engine}"] += 1


def altered(source: judge.Source, rng: random.Random) -> judge.Source | None:
    """The source with one number changed, or None where that makes no valid one."""
    other = copy.deepcopy(source)
    for key in rng.sample(["columns", "constant", "points", "entries", "modes", "rows", "offsets", "stages"], 8):
        part = other.get(key)
        if key == "constant" and part is not None and source["family"] == "linear" and sum(source["outs"]):
            other[key] = part ^ 1 << rng.randrange(sum(source["outs"]))
            return other
        if not isinstance(part, list) or not part:
            continue
        place = rng.randrange(len(part))
        if key == "columns" and source["family"] == "linear" and sum(source["outs"]):
            part[place] ^= 1 << rng.randrange(sum(source["outs"]))
            return other
        if key in ("points", "offsets"):
            part[place] += rng.choice((1, -1))
            return other
        if key == "entries":
            to = rng.randrange(len(part))
            part[place], part[to] = part[to], part[place]
            return other
        if key == "modes":
            if isinstance(part[place][1], tuple):
                other["flips"] = tuple(set(other.get("flips", ())) ^ {part[place][1][0]})
            else:
                part[place] = (part[place][0], -part[place][1])
            return other
        if key == "rows" and part[place]:
            part[place][rng.randrange(len(part[place]))] += rng.choice((1, -1, 2))
            return other
        if key == "stages":
            part[place] = (*part[place][:3], part[place][3] + rng.choice((1, -1, 8)))
            return other
    if source["family"] == "cute":
        steps = judge.leaves(source["stride"])
        steps[rng.randrange(len(steps))] += rng.choice((1, -1, 2))
        return {**source, "shape": tuple(judge.leaves(source["shape"])), "stride": tuple(steps)}
    return None


def composed(f: Any, g: Any, left: judge.Ints, right: judge.Ints, tally: Counter[str]) -> None:
    """``compose`` with ``widen`` of two layouts whose values are known: f after g."""
    inside = right.size == 0 or (right.min() >= 0 and right.max() < len(left))
    try:
        answer = la.compose(f, g, widen=True)
    except BudgetError as error:
        tally[f"compose: gave up {error.diagnostic.code}"] += 1
        return
    except LayoutError as error:
        tally[f"compose: {error.diagnostic.code}"] += 1
        if right.size == 0 or len(left) == 0:
            return
        if inside:
            raise NeedlessError(f"compose refused with {error.diagnostic.code}") from error
        return
    require(inside, "a composition that leaves the domain was answered")
    require(np.array_equal(read(answer).reshape(-1), left[right]), f"compose gave {answer} with other values")
    tally[f"compose: {type(answer).__name__}"] += 1


def inverted(layout: Any, expected: judge.Ints, tally: Counter[str]) -> None:
    """The inverses that may widen against their contracts."""
    for name, operation in (("right", la.right_inverse), ("left", la.left_inverse)):
        try:
            answer = operation(layout, widen=True)
        except LayoutError as error:
            tally[f"{name} inverse: {error.diagnostic.code}"] += 1
            continue
        found = read(answer).reshape(-1)
        if name == "right":
            require(((found >= 0) & (found < len(expected))).all(), "an inverse leaves the domain")
            require(np.array_equal(expected[found], np.arange(len(found))), "not a right inverse")
        elif len(set(expected.tolist())) == len(expected):
            require(expected.max() < len(found), "the left inverse is too short")
            require(np.array_equal(found[expected], np.arange(len(expected))), "not a left inverse")
        else:
            within = expected[expected < len(found)]
            require(np.array_equal(expected[found[within]], within), "not an inverse on the values")
        tally[f"{name} inverse: answered"] += 1


# ------------------------------------------------------------------------------------------------------------ running


def generator(family: str, index: int, seed: int) -> random.Random:
    return random.Random(f"{seed}:{family}:{index}")


def case(source: judge.Source, rng: random.Random, tally: Counter[str], show: bool = False) -> None:
    expected = judge.values(source)
    layout = built(source, tally)
    if layout is None:
        return
    if show:
        print(source, layout, expected.tolist()[:64], sep="\n")
    table = np.asarray(layout.table(), dtype=np.int64)
    if source["family"] == "partial":
        table = np.where(table < 0, judge.HOLE, table)
    require(np.array_equal(table, expected), "the source itself has other values")
    if source["family"] == "outputs" and expected.shape[1:] == (1,):
        expected = expected.reshape(-1)
    answers = []
    for target in BRIDGES:
        answer = bridge(target, layout, expected, tally)
        if answer is not None:
            answers.append(answer)
            other = rng.choice(sorted(BRIDGES))
            back = bridge(other, answer, expected, tally)
            if back is not None and rng.random() < 0.3:
                compared(answer, back, expected, expected, tally, ENGINES)
    if expected.ndim == 1 and source["family"] != "partial":
        recognized(expected, tally, rng)
    for answer in answers:
        if rng.random() < 0.4:
            compared(layout, answer, expected, expected, tally, ENGINES)
    _pairs(source, layout, expected, rng, tally)


def _pairs(source: judge.Source, layout: Any, expected: judge.Ints, rng: Any, tally: Any) -> None:
    """A slightly different layout, one of another family and of the same size, restricted engines, compositions."""
    changed = altered(source, rng)
    if changed is not None:
        engines = ENGINES if rng.random() < 0.8 else (rng.choice(ENGINES[:3]),)
        g, values = built(changed, tally), judge.values(changed)
        if g is None:
            return
        compared(layout, g, expected, values, tally, engines)
        for target in rng.sample(sorted(BRIDGES), 1):
            try:
                other = BRIDGES[target](g)
            except LayoutError:
                continue
            compared(layout, other, expected, values, tally, engines)
    family = rng.choice(judge.FAMILIES)
    sized = max(len(expected), 1)
    if sized <= 64 and rng.random() < 0.3:
        other_source = judge.random_source(family, rng, sized)
        other = built(other_source, tally)
        if other is not None:
            compared(layout, other, expected, judge.values(other_source), tally, ENGINES)
    if source["family"] in COMPOSED and len(expected) and len(expected) <= 64 and rng.random() < 0.06:
        inner = judge.random_source(rng.choice(COMPOSED), rng)
        numbers = judge.values(inner)
        fits = numbers.size and numbers.min() >= 0 and numbers.max() < len(expected)
        if len(numbers) <= 64 and (fits or rng.random() < 0.02):
            first = built(inner, tally)
            if first is not None:
                composed(layout, first, expected, numbers, tally)
        chain = judge.random_source("cute", rng, rng.choice([n for n in (1, 2, 3, 4, 6, 8) if n <= len(expected)]))
        numbers = judge.values(chain) % len(expected)
        table = PiecewiseLayout(judge.piecewise_text({"family": "pieces", "points": numbers.tolist()}), ("y",))
        composed(layout, table, expected, numbers, tally)
    if source["family"] in COMPOSED[:3] and 0 < len(expected) <= 64 and expected.max() < 2**16 and rng.random() < 0.04:
        inverted(layout, expected, tally)


class Totals:
    """What happened to the cases of one family."""

    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.failures: list[str] = []
        self.slowest = 0.0

    def run(self, name: str, source: judge.Source, rng: random.Random) -> None:
        began = time.perf_counter()
        try:
            case(source, rng, self.tally)
        except NeedlessError as error:
            self.tally["needless"] += 1
            self.failures.append(f"needless {name} {error}")
        except Exception as error:
            self.tally["wrong"] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__} {error!s:.200} ({place.name}:{place.lineno})"
            self.failures.append(f"wrong {name} {said}")
        self.tally["cases"] += 1
        self.slowest = max(self.slowest, time.perf_counter() - began)

    def add(self, other: Totals) -> None:
        self.tally.update(other.tally)
        self.slowest = max(self.slowest, other.slowest)
        for failure in other.failures:
            print(failure, file=sys.stderr, flush=True)

    def line(self, family: str) -> dict[str, Any]:
        first = {"family": family, "cases": self.tally["cases"], "wrong": self.tally["wrong"]}
        first |= {"needless": self.tally["needless"], "slowest_s": round(self.slowest, 2)}
        return first | {key: self.tally[key] for key in sorted(self.tally) if key not in first}


def batch(arguments: tuple[str, int, int, int]) -> tuple[str, Totals]:
    """Cases start to stop of a family."""
    family, seed, start, stop = arguments
    totals = Totals()
    for index in range(start, stop):
        rng = generator(family, index, seed)
        totals.run(f"{family}:{index}", judge.random_source(family, rng), rng)
    return family, totals


def small() -> tuple[str, Totals]:
    """The 2,601 layouts of two modes with extents 2, 4, 8 and strides 0 to 16."""
    totals = Totals()
    for shape in itertools.product((2, 4, 8), repeat=2):
        for stride in itertools.product(range(17), repeat=2):
            source = {"family": "cute", "shape": shape, "stride": stride, "stages": []}
            totals.run(f"{shape}:{stride}", source, random.Random(str(source)))
    return "small", totals


def results(options: argparse.Namespace) -> Iterator[tuple[str, Totals]]:
    """Totals as they come in."""
    if options.small:
        yield small()
        return
    step = max(1, min(100, options.count // options.jobs))
    work = [
        (family, options.seed, start, min(start + step, options.count))
        for family in options.families
        for start in range(0, options.count, step)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        yield from pool.map(batch, work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="cases per family")
    parser.add_argument("--families", nargs="+", default=judge.FAMILIES, choices=judge.FAMILIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", help="family:index, one case again")
    options = parser.parse_args()
    if options.only:
        family, index = options.only.split(":")
        tally: Counter[str] = Counter()
        rng = generator(family, int(index), options.seed)
        case(judge.random_source(family, rng), rng, tally, show=True)
        print(dict(tally))
        return 0
    began = time.perf_counter()
    bad = 0
    for family, parts in itertools.groupby(results(options), key=lambda result: result[0]):
        whole = Totals()
        for _, part in parts:
            whole.add(part)
            if whole.tally["cases"] % 2000 == 0:
                print(f"{family}: {whole.tally['cases']} cases", file=sys.stderr, flush=True)
        bad += whole.tally["wrong"] + whole.tally["needless"]
        print(json.dumps(whole.line(family)), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - began, 1), "wrong or needless": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
