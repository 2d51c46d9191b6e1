"""Counts of whole kernels in TTGIR against a second reading: arithmetic by numpy, layouts by loops over threads."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg.notation.mlir import Operation, Region, read_mlir

FOLDER = Path(__file__).parents[1] / "data" / "ttgir"
FILES = [FOLDER / f"{name}.ttgir" for name in (
    "explained/updated", "explained/rows", "explained/summed", "gemm_cp_async_3_sm90", "explained/normalized",
    "explained/softmax",
)]  # fmt: skip
Array = np.ndarray[Any, Any]
SCALARS = {"n": 1 << 14, "stride": 1 << 12, "M": 1 << 10, "N": 1 << 10, "K": 1 << 10}
BINARY = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.remsi": np.fmod,
    "arith.divsi": np.floor_divide, "arith.andi": np.bitwise_and, "arith.minsi": np.minimum, "arith.maxsi": np.maximum,
}  # fmt: skip
SIGNS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}


def shape_of(types: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"tensor<((?:\d+x)+)", types)[-1][:-1].split("x"))


class Numbers:
    """The integers of a kernel for one block and the first trip of each loop; addresses count bytes."""

    def __init__(self, function: Operation) -> None:
        self.accesses: list[tuple[Operation, Array]] = []
        scope: dict[str, Any] = {}
        for place, (name, kind) in enumerate(function.regions[0].arguments):
            pointer = kind.startswith("!tt.ptr")
            scope[name] = np.array((place + 1) << 40 if pointer else SCALARS.get(name[1:], 1 << 10))
        self.run(function.regions[0], scope)

    def run(self, region: Region, scope: dict[str, Any]) -> None:
        for one in region.operations:
            values = [scope.get(name) for name in one.operands()]
            if one.name in ("tt.load", "tt.store", "ttg.async_copy_global_to_local", "tt.atomic_rmw", "tt.atomic_cas"):
                self.accesses.append((one, values[0]))
            if one.name.startswith("amdg.buffer"):
                base, offset = re.search(r"(%\w+)\[(%\w+)\]", one.head).groups()  # type: ignore[union-attr]
                self.accesses.append((one, scope[base] + scope[offset] * self.size(one)))
            for inner in one.regions if one.name in ("scf.for", "scf.if") else ():
                counter = re.search(r"(%[\w#]+) = (\S+) to", inner.header)
                carried = re.findall(r"(%[\w#]+) = (%[\w#]+)", inner.header.partition("iter_args")[2])
                own = {counter[1]: scope.get(counter[2])} if counter else {}
                self.run(inner, scope | own | {name: scope.get(value) for name, value in carried})
            found = self.result(one, values)
            for name in one.results:
                scope[name] = found

    @staticmethod
    def size(one: Operation) -> int:
        return int(re.search(r"ptr<[a-z]+(\d+)", one.types)[1]) // 8  # type: ignore[index]

    def result(self, one: Operation, values: list[Any]) -> Any:
        constant = re.match(r"(?:dense<)?(-?\d+|true|false)(?![\d.])", one.head)
        if one.name == "arith.constant" and constant and not re.search(r"f\d+", one.types.partition("#")[0]):
            value = {"true": 1, "false": 0}.get(constant[1]) if constant[1].isalpha() else int(constant[1])
            return np.full(shape_of(one.types) if "tensor" in one.types else (), value)
        if one.name == "tt.get_program_id":
            return np.array(3)
        if one.name == "tt.make_range":
            return np.arange(one.attribute("start") or 0, one.attribute("end"))
        if any(value is None for value in values) or not values:
            return None
        if one.name in ("tt.splat", "tt.broadcast"):
            return np.broadcast_to(values[0], shape_of(one.types))
        if one.name == "tt.expand_dims":
            return np.expand_dims(values[0], one.attribute("axis") or 0)
        if one.name in ("ttg.convert_layout", "arith.extsi", "arith.extui"):
            return values[0]
        if one.name == "tt.addptr":
            return values[0] + values[1] * self.size(one)
        if one.name == "arith.cmpi":
            return SIGNS[one.head.split(",")[0][1:]](*values).astype(int) if one.head[:2] != "ne" else None
        return BINARY[one.name](*values) if one.name in BINARY else None


def held(attribute: str, shape: tuple[int, ...], names: dict[str, str]) -> Array:
    """The element of every register of a blocked layout, row-major: [warp, lane, register]."""
    attribute = names.get(attribute, attribute)
    if cut := re.match(r"#ttg\.slice<\{dim = (\d), parent = (.*)\}>$", attribute):
        dim = int(cut[1])
        return held(cut[2], (*shape[:dim], 1, *shape[dim:]), names)
    each, lanes, warps, order = (
        [int(size) for size in re.search(rf"{key} = \[([\d, ]+)\]", attribute)[1].split(",")]  # type: ignore[index]
        for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    )
    again = [max(1, size // (a * b * c)) for size, a, b, c in zip(shape, each, lanes, warps, strict=True)]

    def places(sizes: list[int]) -> list[dict[int, int]]:
        digits = product(*[range(sizes[dim]) for dim in reversed(order)])
        return [dict(zip(reversed(order), digit, strict=True)) for digit in digits]

    found = np.zeros((prod(warps), prod(lanes), prod(again) * prod(each)), dtype=np.int64)
    for (w, warp), (t, lane) in product(enumerate(places(warps)), enumerate(places(lanes))):
        for r, (high, low) in enumerate(product(places(again), places(each))):
            at = [
                (low[d] + each[d] * (lane[d] + lanes[d] * (warp[d] + warps[d] * high[d]))) % shape[d]
                for d in range(len(shape))
            ]
            found[w, t, r] = np.ravel_multi_index(tuple(at), shape)
    return found


def counted(one: Operation, addresses: Array, elements: Array, wide: int, unit: int) -> tuple[int, int, int]:
    """Instructions, sectors, and sectors of all passes of lanes with one address, for accesses of ``wide`` bytes."""
    size = Numbers.size(one)
    atomic, load = "atomic" in one.name, "load" in one.name
    many, seen, rows = wide // size, set[int](), list[list[int]]()
    for warp in elements:
        fresh: list[list[int]] = []
        met: set[int] = set(seen)
        for lane in warp:
            own = list(dict.fromkeys(int(element) for element in lane))
            fresh.append([element for element in own if element not in met])
            met |= set(own) if atomic else set()
        mine = [list(dict.fromkeys(int(element) for element in lane)) for lane in warp] if load else fresh
        if not load and not atomic:
            mine = mine if any(mine) else []
        seen |= {int(element) for element in warp.reshape(-1)}
        for first in range(0, max(map(len, mine), default=0), many):
            rows.append([int(addresses.reshape(-1)[lane[first]]) for lane in mine if len(lane) > first])
    sectors = [len({place // unit for at in row for place in (at, at + wide - 1)}) for row in rows]
    passes = 0
    for row in rows:
        left = Counter(row)
        while left:
            passes += len({place // unit for at in left for place in (at, at + wide - 1)})
            left -= Counter(dict.fromkeys(left, 1))
    return len(rows), sum(sectors), passes


def test_sectors_of_accesses_are_those_of_their_addresses(portion: Any) -> None:
    assert sum(map(compared, portion(FILES))) > 0


def compared(path: Path) -> int:
    """Compare every access of a kernel; return how many."""
    text = path.read_text()
    names = dict(re.findall(r"^(#\w+) = (.*)$", text, re.MULTILINE))
    function = next(one for top in read_mlir(text).operations for one in top.walk() if one.name == "tt.func")
    told = {line["line"]: line for line in la.explain(text).to_json()["lines"]}
    count = 0
    for one, addresses in Numbers(function).accesses:
        if addresses is None or not addresses.ndim:
            continue
        kinds = re.findall(r"tensor<(?:\d+x)+[^#]*?, (#ttg\.slice<.*?\}>|#\w+)>", one.types)
        answer = told[one.line]["answers"][0]
        vector = re.search(r"\.v(\d)", answer["instruction"])
        unit = 32 if "cuda:" in text else 128 if "load" in one.name else 64
        wide = answer.get("lane_bytes") or Numbers.size(one) * int(vector[1] if vector else 1)
        found = counted(one, addresses, held(kinds[0], addresses.shape, names), wide, unit)
        passes = answer.get("sectors_of_all_passes", answer["sectors"])
        wanted = (answer["accesses"], answer["sectors"], passes)
        assert (*found[:2], found[2] if "atomic" in one.name else found[1]) == wanted, (path, one.line)
        count += 1
    return count


TRITONS: dict[str, dict[str, int]] = {
    "normalized": {"ld.global.v4.b32": 9, "st.global.b32": 16, "shuffles": 28},
    "updated": {"ld.global.v4.b32": 3, "st.global.b32": 1, "fadd.v8.f16": 2, "add.i32": 26, "cas.i32": 1},
    "summed": {
        "ld.global.v4.b32": 8, "st.global.v4.b32": 12, "st.global.b32": 3, "shuffles": 48, "redux.sync": 4,
    },
    "rows": {"ld.global.v4.b32": 2, "gather4": 2, "scatter4": 2},
    "softmax": {"global_load_dwordx4": 2, "global_store_dwordx4": 2, "fadd.v2.f16": 4, "shuffles": 16},
}  # fmt: skip
"""Instructions of a thread in the PTX that Triton 3.9.0 makes of the kernels, trips of loops included; ``softmax``: in
the assembly for gfx942. Those of scans are lower bounds and left out."""


@pytest.mark.parametrize("name", TRITONS)
def test_instructions_are_those_of_tritons_own_code(name: str) -> None:
    found: Counter[str] = Counter()
    for line in la.explain((FOLDER / "explained" / f"{name}.ttgir").read_text()).to_json()["lines"]:
        times = prod(loop["trips"] or 1 for loop in line["around"])
        for answer in line["answers"]:
            if "instruction" in answer and "accesses" in answer:
                warps = len({each["warp"] for each in answer["each"]}) if "each" in answer else 4
                found[answer["instruction"]] += times * max(1, answer["accesses"] // warps)
        for told in line["told"] if line["op"] == "tt.reduce" else ():
            for many, what in re.findall(r"then (\d+) (shuffles|redux\.sync)", told):
                found[what] += int(many)
        for many, what in re.findall(r"^(\d+) x (gather4|scatter4)", line["told"][0]):
            found[what] += int(many) // 4
    assert dict(found) == TRITONS[name]


PART = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 1], order = [0, 1]}>"


@pytest.mark.parametrize("shared", [1, 2, 8, 32])
@pytest.mark.parametrize("kind", ["f32", "i32", "f16"])
def test_lanes_of_one_address_take_turns(shared: int, kind: str) -> None:
    """Counted by a device for f32: 128 sectors of a block of 32 instructions with 4 lanes each, 1,024 with 32."""
    shape = f"{64 // shared}x{shared}"
    layout = PART.replace("[32, 1]", f"[{32 // shared}, {shared}]")
    rows, one = f"tensor<{64 // shared}x1xi32, #b>", f"tensor<{64 // shared}xi32, #ttg.slice<{{dim = 1, parent = #b}}>>"
    pointers = f"tensor<{shape}x!tt.ptr<{kind}>, #b>"
    text = f"""#b = {layout}
module attributes {{ttg.target = "cuda:90"}} {{
tt.func @f(%p: !tt.ptr<{kind}> {{tt.divisibility = 128 : i32}}) {{
%0 = tt.make_range {{end = {64 // shared} : i32, start = 0 : i32}} : {one}
%1 = tt.expand_dims %0 {{axis = 1 : i32}} : {one} -> {rows}
%2 = tt.broadcast %1 : {rows} -> tensor<{shape}xi32, #b>
%3 = tt.splat %p : !tt.ptr<{kind}> -> {pointers}
%4 = tt.addptr %3, %2 : {pointers}, tensor<{shape}xi32, #b>
%5 = tt.atomic_rmw fadd, relaxed, gpu, %4, %v, %m : ({pointers}, tensor<{shape}x{kind}, #b>, tensor<{shape}xi1, #b>)
}}
}}"""
    answer = la.explain(text)["lines"][0]["answers"][0]
    assert (answer["accesses"], answer["lanes_of_one_address"]) == (2, shared)
    size = 2 if kind == "f16" else 4
    assert answer["sectors_of_all_passes"] == shared * answer["sectors"] == 2 * shared * -(-32 * size // shared // 32)
