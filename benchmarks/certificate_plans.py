"""Random TensorMap certificates, and their judges: the tests' copy engine, and the tests' search of all maps."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from certificate_judges import NoClaimError, function, wgmma_operand
from judges import planner_judge, tma_engine
from judges.map_search import search_maps
from judges.planner_problems import random_problem

from layoutalg.proofs import certify
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.handoff import operand_view
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma

ORIGINS = 60
ATOMS = {"NONE": 8, "32B": 16, "64B": 32, "128B": 64}
"""Elements of 16 bits in a row of each swizzle."""


def plan(rng: random.Random) -> Certificate | None:
    """The certificate of a planned problem, or that there is no plan."""
    problem = TensorMapProblem.from_json(random_problem(rng))
    try:
        found = synthesize_tensormap(problem, repair=False)
    except InadmissibleError:
        return certify.no_plan(problem)
    return certify.plan(found)


def handoff(rng: random.Random) -> Certificate:
    """The certificate of a copy and of the operand that is read from its tile, one atom wide or two."""
    swizzle, rows, count = rng.choice(list(ATOMS)), rng.choice((64, 128)), rng.choice((1, 2))
    atom, steps = ATOMS[swizzle], rng.choice((None, [64, 16]))
    problem = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [rng.choice((256, 300, 1024)), 512], "stride": [rng.choice((512, 1024)), 1],
                   "dtype": rng.choice(("f16", "bf16")), "base_align_bytes": rng.choice((16, 128, 256))},
        "tile": [rows, count * atom],
        "smem": {"modes": [[[rows, atom]], [[atom, 1], [2, atom * rows]][:count]], "swizzle": swizzle},
    }  # fmt: skip
    if steps is not None:
        problem["origin_multiple"] = steps
    copy = synthesize_tensormap(TensorMapProblem.from_json(problem), repair=False)
    view = operand_view(copy.problem, rng.choice("AB"), rng.choice(("K", "MN")))
    return certify.handoff(copy, view, synthesize_wgmma(view.problem))


def _tile(problem: dict[str, Any]) -> tuple[list[int], np.ndarray[Any, Any]]:
    """The shared byte of every tile element, the first axis fastest, and its steps along the axes, one row each."""
    tile = [axis[0] for axis in problem["axes"]]
    size, _, shared = function(problem["shared"])
    if size != np.prod(tile, dtype=object):
        raise NoClaimError("shared has another size than the tile")
    at = [value[0] for index in range(size) if (value := shared(index)) is not None and len(value) == 1]
    steps = np.indices(tile[::-1]).reshape(len(tile), -1)[::-1].astype(object)
    return at, np.array([axis[1] for axis in problem["axes"]], dtype=object)[:, None] * steps


def holds_plan(statement: dict[str, Any]) -> tuple[bool, bool]:
    """Every element of every box at sampled origins, by the engine that knows the 128 bytes alone."""
    problem = statement["problem"]
    axes, storing = problem["axes"], problem["direction"] == "store"
    tm = tma_engine.read_map(bytes.fromhex(statement["bytes"]))
    size, span = tma_engine.SIZES[problem["dtype"]], 128 << tma_engine.SWIZZLES.index(tm.swizzle)
    at, steps = _tile(problem)
    sizes = len(statement["issues"]) * tm.bytes_moved, max(s for _, s in statement["issues"]) + tm.footprint
    align = statement["smem_align_bytes"]
    if (statement["expect_tx_bytes"], statement["smem_bytes"]) != sizes or align < span or align & (align - 1):
        return False, True
    if len(set(at)) < len(at) or tm.size != size or tm.dtype != problem["dtype"] or problem["base_align_bytes"] % 16:
        return False, True
    if not storing and tm.nan != (problem["oob_fill"] == "NAN"):
        return False, True
    element, met = {byte: index for index, byte in enumerate(at)}, set()
    for u in _origins(axes):
        origin = [axis[2] * part for axis, part in zip(axes, u, strict=True)]
        close = all(low <= x < high or not m for x, (*_, m, _, low, high) in zip(origin, axes, strict=True))
        if statement["oob"] == "weak" and not close:
            continue
        for start, offset in statement["issues"]:
            moved = [sum(a * b for a, b in zip(row, u, strict=True)) for row in statement["moves"]]
            coords = [c + move for c, move in zip(start, moved, strict=True)]
            try:
                touch = tma_engine.reach(tm, coords, offset, storing=storing)
            except tma_engine.FaultError:
                if close:
                    return False, True
                continue
            for byte, address, inside in zip(touch.shared, touch.address, touch.inside, strict=True):
                if int(byte) not in element:
                    return False, True
                index = element[int(byte)]
                met.add(index)
                x = [o + int(step) for o, step in zip(origin, steps[:, index], strict=True)]
                wanted = all(axis[4] <= here < axis[5] for here, axis in zip(x, axes, strict=True))
                place = problem["base_elem_offset"] + sum(axis[3] * here for here, axis in zip(x, axes, strict=True))
                if bool(inside) != wanted or (wanted and int(address) != size * place):
                    return False, True
    return not met or len(met) == len(at), False


def _origins(axes: list[list[int]]) -> list[tuple[int, ...]]:
    """Multiples at the bounds, across them and far away."""
    choices = []
    for tile, step, multiple, _, low, high in axes:
        ends = (low, high, low - tile * step, high - tile * step, 0)
        near = {end // multiple + by for end in ends for by in (0, 1)} if multiple else {0}
        choices.append(sorted(near))
    every = itertools.islice(itertools.product(*choices), 20_000)
    return random.Random(0).sample(found := list(every), min(ORIGINS, len(found)))


def holds_handoff(statement: dict[str, Any]) -> tuple[bool, bool]:
    """Both parts by their judges, and each element's two shared bytes compared one by one."""
    operand, problem, (mn, k) = statement["operand"], statement["plan"]["problem"], statement["axes"]
    rows, columns = operand["shape"]
    tile = [axis[0] for axis in problem["axes"]]
    if mn == k or max(mn, k) >= len(tile) or [tile[mn], tile[k]] != [rows, columns]:
        return False, True
    if np.prod(tile, dtype=object) != rows * columns or problem["dtype"] not in ("f16", "bf16"):
        return False, True
    if problem["direction"] != "load":
        return False, True
    for part, judge in (("plan", holds_plan), ("operand", wgmma_operand)):
        true, whole = judge(statement[part])
        if not true:
            return False, whole
    at, _ = _tile(problem)
    bases = range(0, 4096, max(1, statement["plan"]["smem_align_bytes"]))
    if any(base % operand["align"] for base in bases):
        return False, True
    step = {axis: int(np.prod(tile[:axis], dtype=object)) for axis in (mn, k)}
    _, _, layout = function(operand["layout"])
    for base in bases:
        for column, row in itertools.product(range(columns), range(rows)):
            byte = base + layout(row + rows * column)[0]
            read = byte ^ (byte >> 7) % (1 << operand["swizzle"]) << 4
            if read != base + at[row * step[mn] + column * step[k]]:
                return False, True
    return True, False


def holds_no_plan(statement: dict[str, Any]) -> tuple[bool, bool]:
    """By the tests' search of all maps, boxes and moves."""
    problem = statement["problem"]
    tile, steps, multiples, strides, lows, highs = (tuple(part) for part in zip(*problem["axes"], strict=True))
    at, _ = _tile(problem)
    stated = planner_judge.Statement(
        problem["dtype"], highs, strides, tile, ((),) * len(tile), "NONE", problem["direction"] == "store",
        problem["base_align_bytes"], problem["base_elem_offset"], tuple(zip(lows, highs, strict=True)), steps,
        problem["oob_fill"] == "NAN" and problem["direction"] == "load", multiples, "lost",
    )  # fmt: skip
    table = np.array(at, dtype=np.int64).reshape(tile[::-1])
    stated.__dict__["shared"] = table.transpose(range(len(tile))[::-1]).reshape(-1)
    return search_maps(stated).answer() is None, True
