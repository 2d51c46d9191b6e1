"""The judges of bridges: an answer must have the enumerated values, a refusal a true witness and no form that exists.

``operations.door`` draws the layouts and asks; the values and the search for forms are those of ``bridge_judges``.
"""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import bridge_judges as judge
import numpy as np
from bridge_sources import read, require
from operations.record import NeedlessError, Refusal

from layoutalg import convert
from layoutalg.bridges.equal import equivalent
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout

BRIDGES = {
    "cute": convert.to_cute,
    "linear": convert.to_linear,
    "integer": convert.to_integer,
    "piecewise": convert.to_piecewise,
}
SEARCHED = 512  # greatest table for which every swizzle is tried
MODULI = 2**38  # values from here on are searched for strides only, as documented


def bridge(target: str, layout: Any, expected: judge.Ints) -> None:
    """One bridge, judged."""
    try:
        answer = BRIDGES[target](layout)
    except BudgetError as error:
        _budget(target, error.diagnostic.code, layout, expected)
        raise Refusal(f"declined {error.diagnostic.code}") from None
    except LayoutError as error:
        refusal(target, layout, expected, error)
        raise Refusal(f"refused {error.diagnostic.code}") from None
    kinds = {"cute": CuteLayout | ComposedLayout, "linear": LinearLayout, "integer": IntegerLayout}
    require(isinstance(answer, kinds.get(target, PiecewiseLayout)), f"{target} gave a {type(answer).__name__}")
    found = read(answer)
    same = expected.reshape(-1) if target in ("cute", "linear") else expected
    if target == "integer" or target == "piecewise":
        found = found.reshape(same.shape) if found.size == same.size else found
    require(np.array_equal(found, same), f"{target} gave {answer} with other values")
    if target == "cute" and isinstance(answer, ComposedLayout) and not isinstance(layout, ComposedLayout):
        require(len(answer.stages) == 1, "more than one swizzle")


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


def recognized(expected: judge.Ints, rng: random.Random) -> None:
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
    plain = bool(judge.strided(expected).any())
    try:
        answer = convert.recognize(table)
    except LayoutError as error:
        refusal("cute", None, expected, error)
        require(len(expected).bit_count() != 1 or expected.min() < 0 or not judge.affine(expected), "it is affine")
        raise Refusal(f"refused {error.diagnostic.code}") from None
    require(np.array_equal(read(answer), expected), "recognize gave other values")
    if plain:
        flat = answer.base if isinstance(answer, ComposedLayout) else answer
        require(isinstance(answer, CuteLayout) == (expected[0] == 0), "an offset and only an offset makes it composed")
        modes = list(zip(judge.leaves(flat.shape), judge.leaves(flat.stride), strict=True))
        merges = any(a * s == b for (a, s), (_, b) in itertools.pairwise(modes))
        require(not merges and (modes == [(1, 0)] or all(n > 1 for n, _ in modes)), "not coalesced")


def compared(f: Any, g: Any, left: judge.Ints, right: judge.Ints) -> None:
    """``equivalent`` of two layouts whose values are known."""
    verdict = equivalent(f, g)
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
        require(f.size > 2**20, f"unknown: {verdict.reason}")


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
