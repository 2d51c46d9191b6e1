"""Explanations of kernels in TTGIR: addresses against numpy, sectors against sets of bytes, stored files of Triton."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ask.kernel_addresses import Addresses, Affine, Mask
from layoutalg.cli import main
from layoutalg.ground.errors import MalformedError
from layoutalg.interop import triton
from layoutalg.notation.mlir import read_mlir
from layoutalg.notation.ttgir import Types
from layoutalg.targets.roofs import roofs

FOLDER = Path(__file__).parents[1] / "data" / "ttgir"
FILES = sorted(FOLDER.glob("*.ttgir")) + sorted((FOLDER / "explained").glob("*.*ir"))
BLOCKED = "#b = #ttg.blocked<{sizePerThread = [%d], threadsPerWarp = [32], warpsPerCTA = [%d], order = [0]}>"
WIDE = "#w = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>"
ORDERS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}
Array = np.ndarray[Any, Any]


class Program:
    """Integer arithmetic on tensors as TTGIR, and its values by numpy for some values of the arguments."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.lines, self.shape = draw, list[str](), (4, 8)
        self.values: dict[str, Array] = {}
        self.arguments = {f"%n{place}": draw(st.sampled_from([1, 2, 4, 8, 16])) for place in range(3)}
        for name, divisor in self.arguments.items():
            self.values[name] = np.array(divisor * draw(st.integers(1, 9)))

    def add(self, words: str, value: Array) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {words}")
        self.values[name] = value
        return name

    def scalar(self) -> str:
        if self.draw(st.booleans()):
            return self.draw(st.sampled_from(sorted(self.arguments)))
        value = self.draw(st.integers(0, 40))
        return self.add(f"arith.constant {value} : i32", np.array(value))

    def leaf(self, least: int = 0, most: int = 3) -> str:
        kind = f"tensor<{self.shape[0]}x{self.shape[1]}xi32, #w>"
        how = self.draw(st.integers(least, most))
        if how == 0:
            value = self.draw(st.integers(0, 40))
            return self.add(f"arith.constant dense<{value}> : {kind}", np.full(self.shape, value))
        if how == 1:
            one = self.scalar()
            return self.add(f"tt.splat {one} : i32 -> {kind}", np.broadcast_to(self.values[one], self.shape))
        axis = how - 2
        extent = 1 if self.draw(st.integers(0, 4)) == 0 else self.shape[1 - axis]
        start = self.draw(st.integers(0, 5))
        part = f"#ttg.slice<{{dim = {axis}, parent = #w}}>"
        words = f"tt.make_range {{end = {start + extent} : i32, start = {start} : i32}} : tensor<{extent}xi32, {part}>"
        line = self.add(words, np.arange(start, start + extent))
        sizes = "x".join("1" if dim == axis else str(extent) for dim in range(2))
        words = (
            f"tt.expand_dims {line} {{axis = {axis} : i32}} : tensor<{extent}xi32, {part}> -> tensor<{sizes}xi32, #w>"
        )
        wide = self.add(words, np.expand_dims(self.values[line], axis))
        words = f"tt.broadcast {wide} : tensor<{sizes}xi32, #w> -> {kind}"
        return self.add(words, np.broadcast_to(self.values[wide], self.shape))

    def tree(self, depth: int) -> str:
        if depth == 0:
            return self.leaf()
        name = self.draw(st.sampled_from(["addi", "addi", "subi", "muli", "remsi", "divsi", "maxsi"]))
        first, second = self.tree(depth - 1), self.tree(depth - 1)
        a, b = self.values[first], self.values[second]
        if name in ("remsi", "divsi") and (b == 0).any():
            name = "addi"
        with np.errstate(all="raise"):
            found = {
                "addi": a + b, "subi": a - b, "muli": a * b, "maxsi": np.maximum(a, b),
                "remsi": np.fmod(a, np.where(b == 0, 1, b)),
                "divsi": np.trunc(a / np.where(b == 0, 1, b)).astype(np.int64),
            }[name]  # fmt: skip
        kind = f"tensor<{self.shape[0]}x{self.shape[1]}xi32, #w>"
        return self.add(f"arith.{name} {first}, {second} : {kind}", found)

    def text(self, last: str) -> str:
        arguments = [f"{name}: i32 {{tt.divisibility = {by} : i32}}" for name, by in self.arguments.items()]
        lines = [*self.lines, f"use.it {last} : i32"]
        return "\n".join([WIDE, f"tt.func @f({', '.join(arguments)}) {{", *lines, "}"])


def agrees(number: Any, value: int) -> bool:
    """Whether what is known of a number holds of its value."""
    return bool((value - number.rest) % number.divisor == 0 if number.divisor else value == number.rest)


@settings(max_examples=400)
@given(st.data())
def test_addresses_are_what_numpy_computes(data):
    program = Program(data.draw)
    last = program.tree(data.draw(st.integers(0, 3)))
    text = program.text(last)
    function = next(one for one in read_mlir(text).operations if one.name == "tt.func")
    found = Addresses(function, Types(text)).operands[function.regions[0].operations[-1]][0]
    if isinstance(found, str) or found.assumed:
        return
    values = program.values[last]
    assert agrees(found.base, int(values[0, 0])), text
    for dim, stride in enumerate(found.strides):
        steps = np.unique(np.diff(values, axis=dim))
        assert len(steps) == 1, text
        assert agrees(stride, int(steps[0])), text


@settings(max_examples=400)
@given(st.data())
def test_masks_are_equal_in_their_runs(data):
    program = Program(data.draw)
    kind, found = "tensor<4x8xi32, #w>", list[str]()
    for _ in range(data.draw(st.integers(1, 2))):
        first, second = program.tree(data.draw(st.integers(0, 2))), program.leaf(0, 1)
        if data.draw(st.booleans()):
            factor, end = data.draw(st.sampled_from([1, 2, 4])), 4 * data.draw(st.integers(0, 8))
            scale = program.add(f"arith.constant dense<{factor}> : {kind}", np.full(program.shape, factor))
            second = program.add(f"arith.constant dense<{end}> : {kind}", np.full(program.shape, end))
            place = program.leaf(2, 3)
            first = program.add(f"arith.muli {place}, {scale} : {kind}", program.values[place] * factor)
        name = data.draw(st.sampled_from(sorted(ORDERS)))
        a, b = program.values[first], program.values[second]
        found.append(program.add(f"arith.cmpi s{name}, {first}, {second} : {kind}", ORDERS[name](a, b)))
    if len(found) == 2:
        found.append(program.add(f"arith.andi {found[0]}, {found[1]} : tensor<4x8xi1, #w>", np.logical_and(
            program.values[found[0]], program.values[found[1]])))  # fmt: skip
    text = program.text(found[-1])
    function = next(one for one in read_mlir(text).operations if one.name == "tt.func")
    mask = Addresses(function, Types(text)).operands[function.regions[0].operations[-1]][0]
    if not isinstance(mask, Mask) or mask.assumed:
        return
    for dim, run in enumerate(stride.value for stride in mask.strides):
        values = np.moveaxis(program.values[found[-1]], dim, 0)
        for first in range(0, len(values), run or len(values)):
            part = values[first : first + (run or len(values))]
            assert (part == part[0]).all(), text


def test_the_judge_meets_every_kind_of_value():
    lines = ["%0 = arith.muli %n, %n : i32", "use.it %0 : i32"]
    text = "\n".join(["tt.func @f(%n: i32 {tt.divisibility = 4 : i32}) {", *lines, "}"])
    function = read_mlir(text).operations[0]
    found = Addresses(function, Types(text)).operands[function.regions[0].operations[-1]][0]
    assert isinstance(found, Affine)
    assert (found.base.rest, found.base.divisor) == (0, 16)


def copy(size: int, per_thread: int, warps: int, stride: int, start: int, bits: int) -> str:
    """A kernel that loads one tensor."""
    one, pointers = f"tensor<{size}xi32, #b>", f"tensor<{size}x!tt.ptr<i{bits}>, #b>"
    return "\n".join(
        [
            BLOCKED % (per_thread, warps),
            'module attributes {ttg.target = "cuda:90"} {',
            f"tt.func @f(%p: !tt.ptr<i{bits}> {{tt.divisibility = 128 : i32}}) {{",
            f"%0 = tt.make_range {{end = {size} : i32, start = 0 : i32}} : {one}",
            f"%1 = arith.constant dense<{stride}> : {one}",
            f"%2 = arith.muli %0, %1 : {one}",
            f"%3 = arith.constant dense<{start}> : {one}",
            f"%4 = arith.addi %2, %3 : {one}",
            f"%5 = tt.splat %p : !tt.ptr<i{bits}> -> {pointers}",
            f"%6 = tt.addptr %5, %4 : {pointers}, {one}",
            f"%7 = tt.load %6 : {pointers}",
            "}",
            "}",
        ]
    )


@settings(max_examples=40)
@given(
    st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.integers(1, 5), st.integers(0, 40),
    st.sampled_from([8, 16, 32, 64]),
)  # fmt: skip
def test_sectors_are_those_of_the_bytes(per_thread, warps, stride, start, bits):
    size, width = 32 * per_thread * warps * 2, bits // 8
    told = la.explain(copy(size, per_thread, warps, stride, start, bits))["lines"][0]
    assert not told["assumed"], told
    answer = told["answers"][0]
    step = answer["lane_bytes"] // width
    count = 0
    for first in range(0, size, 32 * per_thread):  # the elements of one warp, thread after thread
        for register in range(0, per_thread, step):
            lanes = [first + per_thread * lane + register for lane in range(32)]
            count += len(
                {((stride * lane + start) * width + byte) // 32 for lane in lanes for byte in range(step * width)}
            )
    assert answer["sectors"] == count
    rate = roofs("sm_90a").l2_bytes / roofs("sm_90a").units
    cycles = [told["cost_cycles"], told["excess_cycles"]]
    assert cycles == pytest.approx([32 * count / rate, 32 * answer["excess"] / rate])


def accounted(text: str, told: Any) -> None:
    """Every operation is explained, named or passed over, under its own line; the costly ones come first."""
    rows = text.split("\n")
    for entry in [*told["lines"], *told["unknown"]]:
        assert entry["op"] in rows[entry["line"] - 1]
        for line in entry.get("told", ()):
            assert "not counted" not in line or "phases are not published" in line
    names = re.findall(r'^\s*(?:%[^=]*= )?"?((?:arith|math|scf|tt|ttg|ttng|gpu|nvvm|amdg)\.[\w.]+)', text, re.MULTILINE)
    inside = [name for name in names if name not in ("tt.func", "tt.reduce.return", "tt.scan.return")]
    bodies = re.findall(r"\^bb0.*?tt\.(?:reduce|scan)\.return", text, re.DOTALL)
    reduced = sum(part.count("\n") - 1 for part in bodies)
    assert len(told["lines"]) + len(told["unknown"]) + told["passed"] == len(inside) - reduced
    for ranking, name in (("ranking", "cost_cycles"), ("gains", "excess_cycles")):
        costs = {}
        for entry in (entry for entry in told["lines"] if entry[name]):
            known = [loop["trips"] for loop in entry["around"] if loop["trips"] is not None]
            costs[entry["line"]] = (len(known) - entry["loops"], -math.prod(known) * entry[name], entry["line"])
        assert told[ranking] == sorted(costs, key=costs.__getitem__)
    json.dumps(told.to_json(), allow_nan=False)


def test_every_operation_of_stored_kernels_is_accounted_for(portion):
    for path in portion(FILES):
        text = path.read_text()
        accounted(text, la.explain(text))


@pytest.mark.parametrize(
    "name",
    ["gemm_cp_async_3_sm90", "gluon_read_ring_sm90", "every_operation_sm80", "updated", "rows", "attention_sm100"],
)
def test_texts(name, golden):
    path = next(path for path in FILES if path.stem == name)
    told = triton.report(SimpleNamespace(asm={"ttgir": path.read_text()}))
    assert str(told) == str(triton.report(path)) == str(triton.report(path.read_text()))
    accounted(path.read_text(), told)
    golden(f"kernel_lines/{name}.txt", f"{told}\n")


def test_numbers_are_those_of_single_questions():
    text = (FOLDER / "explained" / "every_operation_sm80.mlir").read_text()
    types, lines = Types(text), {entry["line"]: entry for entry in la.explain(text)["lines"]}
    rows = text.split("\n")
    memory, operand = types.of(rows[28])
    report = la.banks(operand, memory, 16, target="sm_80")
    assert (lines[29]["cost_cycles"], lines[29]["excess_cycles"]) == (report.turns, report.conflicts)
    plan = la.conversion(*types.of(rows[26]), 16, "sm_80")
    assert (lines[27]["cost_cycles"], lines[27]["told"][0]) == (plan.cost.cycles, f"{plan.mechanism}: {plan.cost}")
    again = text.replace("tensor<64x64x!tt.ptr<f16>, #blocked>", "tensor<64x64x!tt.ptr<f16>, #col>")
    sectors = [la.explain(each)["lines"][0]["answers"][0]["sectors"] for each in (again, text)]
    alone = text.replace("%24 = tt.reshape %17", "%24 = tt.reshape %20").replace(
        "%25 = arith.fptosi %17", "%25 = u.u %20"
    )
    better = la.explain(alone.replace("tt.gather %17[%25]", "tt.gather %20[%25]"))["lines"][1]["better"]
    assert f"{sectors[0]} sectors (assumed there) in place of {sectors[1]} sectors" in better


def test_loads_of_one_type_are_told_apart_by_their_addresses():
    text = copy(256, 1, 2, 4, 0, 32)
    load = next(row for row in text.split("\n") if "tt.load" in row)
    told = la.explain(text.replace(load, f"{load}\n{load.replace('%7', '%8').replace('%6', '%5')}\n{load}"))["lines"]
    assert [entry["answers"][0]["sectors"] for entry in told] == [128, 2, 128]
    assert [len(entry["assumed"]) for entry in told] == [0, 1, 0]  # one load for registers with one address


def test_reductions_of_one_type_are_told_apart_by_their_bodies():
    reduce = """
    %{name} = "tt.reduce"(%t) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: i32, %c: i32):
      %s = arith.{op} %a, %c : i32
      tt.reduce.return %s : i32
    }}) : (tensor<16x32xi32, #b>) -> tensor<16xi32, #ttg.slice<{{dim = 1, parent = #b}}>>"""
    layout = "sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]"
    bodies = "".join([reduce.format(name=place, op=op) for place, op in enumerate(("muli", "addi", "muli"))])
    head = f"#b = #ttg.blocked<{{{layout}}}>\ntt.func @k() {{\n%t = arith.constant dense<1> : tensor<16x32xi32, #b>"
    lines = la.explain(f"{head}{bodies}\ntt.return\n}}")["lines"]
    assert ["redux.sync" in line["told"][0] for line in lines] == [False, True, False]


def test_offers_are_for_values_of_one_name_and_one_use():
    text = (FOLDER / "explained" / "every_operation_sm80.mlir").read_text().split("\n")
    for row in range(33, 38):  # the other users of the loaded tile
        text[row] = ""
    alone = la.explain("\n".join(text))["lines"][1]["better"]
    assert "line 26 (tt.load)" in alone
    for other, offered in (("%40 = math.exp %17", False), ("%40 = math.exp %16", True), ("%17 = math.exp %16", True)):
        text[33] = f"scf.if %c {{\n{other} : tensor<64x64xf16, #blocked>\n}}"
        better = la.explain("\n".join(text))["lines"][1]["better"]
        assert ("line 26 (tt.load)" in better) == offered, other


def test_a_conversion_that_moves_nothing_costs_nothing():
    text = (FOLDER / "attention_sm90.ttgir").read_text()
    told = next(entry for entry in la.explain(text)["lines"] if entry["op"] == "ttg.convert_layout")
    assert (told["cost_cycles"], told["better"]) == (0, None)


@pytest.mark.parametrize(
    ("head", "target", "named"),
    [
        ('{ttg.target = "cuda:100"}', "sm_90a", "sm_100a"),
        ('{ttg.target = "hip:gfx942"}', "sm_90a", "gfx942"),
        ('{ttg.target = "cuda:75"}', "sm_80", "sm_80"),
        ("{}", "sm_80", "sm_80"),
    ],
)
def test_targets(head, target, named):
    text = f"module attributes {head} {{\ntt.func @f() {{\nstrange.op\n}}\n}}"
    told = la.explain(text, target=target)
    assert told["target"] == named
    assert told["unknown"] == [{"line": 3, "op": "strange.op"}]
    assert ("not known" in str(told)) == ("75" in head)


def test_the_target_of_a_compiled_kernel_serves_where_the_text_names_none():
    text = "module {\ntt.func @f() {\n}\n}"
    ran = SimpleNamespace(
        asm={"ttgir": text}, metadata=SimpleNamespace(target=SimpleNamespace(backend="cuda", arch=80))
    )
    assert triton.report(ran)["target"] == "sm_80"


@pytest.mark.parametrize(
    "value", [None, "", "(4,8):(1,4)", SimpleNamespace(asm={}), SimpleNamespace(asm=3), b"tt.func", Path("none.ttgir")]
)
def test_what_is_no_kernel_is_refused(value):
    with pytest.raises(MalformedError, match="compiled"):
        triton.report(value)
    with pytest.raises(MalformedError, match="sm_90x"):
        triton.report("module {\ntt.func @f() {\n}\n}", "sm_90x")


def test_the_shell_explains_files(capsys):
    assert main(["explain", str(FOLDER / "copy_tma_sm90.ttgir"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["lines"][0]["op"]) == ("kernel", "ttg.local_alloc")


def test_loops_widen_what_they_carry():
    text = (FOLDER / "gemm_cp_async_3_sm90.ttgir").read_text()
    told = {entry["line"]: entry for entry in la.explain(text)["lines"]}
    assert told[98]["loops"] == 1
    assert not any("depend on data" in line for line in told[98]["told"])
    faster = text.replace("tt.addptr %arg8, %cst_3", "tt.addptr %arg8, %22")  # every turn adds to the distances
    assert any("depend on data" in line for line in {e["line"]: e for e in la.explain(faster)["lines"]}[98]["told"])


@given(st.sampled_from([(8, 1, 8), (8, 2, 4), (4, 4, 2), (1, 1, 1)]), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=16)
def test_a_part_of_a_buffer_is_read_where_it_begins(swizzle: tuple[int, int, int], row: int, column: int) -> None:
    vector, per, most = swizzle
    shape, part, begins = (64, 64), (16, 16), (16 * row, 16 * column)
    r, c = np.indices(shape)
    table = r * shape[1] + ((c // vector) ^ (r // per % most)) * vector + c % vector
    registers = "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>"
    text = f"""
#mma = #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}}>
#shared = #ttg.swizzled_shared<{{vec = {vector}, perPhase = {per}, maxPhase = {most}, order = [1, 0]}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @part() {{
    %0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %1 = ttg.memdesc_subslice %0[{begins[0]}, {begins[1]}] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> \
-> !ttg.memdesc<16x16xf16, #shared, #smem, mutable, 64x64>
    %2 = ttg.local_load %1 : !ttg.memdesc<16x16xf16, #shared, #smem, mutable, 64x64> -> tensor<16x16xf16, {registers}>
    tt.return
  }}
}}
"""
    load = next(line for line in la.explain(text).to_json()["lines"] if line["op"] == "ttg.local_load")
    tile = table[begins[0] : begins[0] + part[0], begins[1] : begins[1] + part[1]]
    held = la.parse(text[: text.index("module")] + f"tensor<16x16xf16, {registers}>")
    every = [la.banks(held, tile, 16, "load", target="sm_80")]
    for kind in ("ldmatrix", "ldmatrix.trans"):
        with contextlib.suppress(la.LayoutError):
            every.append(la.banks(held, tile, 16, kind, target="sm_80"))
    wanted = every[0].turns if every[0].conflict_free else min(each.turns for each in every)
    assert load["answers"][0]["turns"] == wanted


@settings(max_examples=30)
@given(st.sampled_from([(16, 4), (32, 1), (64, 8)]), st.integers(1, 4), st.sampled_from(["f16", "f32", "i8"]))
def test_allocations_have_the_bytes_of_their_padding(pair: tuple[int, int], buffers: int, dtype: str) -> None:
    interval, padding = pair
    memory = f"!ttg.memdesc<{buffers}x8x64x{dtype}, #p, #ttg.shared_memory, mutable>"
    lines = [
        f"#p = #ttg.padded_shared<[{interval}:+{padding}] {{order = [1, 0], shape = [8, 64]}}>",
        'module attributes {ttg.target = "cuda:90"} {', "tt.func @f() {", f"%0 = ttg.local_alloc : () -> {memory}", "}",
        "}",
    ]  # fmt: skip
    last = max(at + at // interval * padding for at in range(buffers * 8 * 64))
    width = {"f16": 2, "f32": 4, "i8": 1}[dtype]
    told: Any = la.explain("\n".join(lines))["lines"]
    assert told[0]["told"] == [f"{(last + 1) * width} bytes of shared memory"]
