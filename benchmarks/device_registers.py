"""What happens between registers: residuals of factored layouts, conversions, and the cycles of their instructions.

*factor*: every case is a random layout of registers, lanes and warps. Its factors' kernels run once, and every element
of every register is compared with the one that the layout asks for; then the residual is repeated to be timed.
*conversions*: each plan's kernel converts random data once, and every word is compared. Then it is timed: a loop whose
turns convert there and back three times, by the clock around it, minus one whose turns do it once, so that nothing of
the loop itself remains. Words are changed before every conversion by one instruction each, whose cycles are measured in
the same way and taken off. *costs*: one kernel text holds a kernel for every instruction, way of conflict and number of
streams; ``cycles[warps]`` are those of one instruction of one warp while so many warps of one block execute the same:
the difference of a long and a short loop. One stream is a chain in which every instruction needs the last (loads: with
one addition); eight are independent. Stores go to places of their own. Triton's conversions of the same pairs are timed
in the same call (``device_triton``).
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from device import Fault, Launch, Run, cuda, here
from device_conversion_pairs import cases, linear
from instruments.conversion_loop import conversion_loop

from layoutalg.codegen import launch
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.factored import factored_kernel
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Through
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.synth import conversion, factorise

# ------------------------------------------------------------------------------------------------------------- factors

FLIPS: dict[int, tuple[tuple[int, int], ...]] = {
    16: (), 32: ((4, 7),), 64: ((4, 7), (5, 8)), 128: ((4, 7), (5, 8), (6, 9)),
}  # fmt: skip
DTYPES = ("bf16", "f32", "u8")
BYTES = {"u8": 1, "bf16": 2, "f32": 4}
WAYS = ("exchanges", "shuffles", "shared")
KINDS = ("swap1", "swap2", "swap3", "bits", "dense")
REPEATS, RUNS = 512, 5


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


def run_factor(case: int) -> dict[str, Any]:
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


def triton_time(case: tuple[Any, ...]) -> dict[str, Any]:
    """Triton's time of a case."""
    import device_triton

    return device_triton.factor_time(case)


def factor_job(run: Run) -> None:
    """Run the cases one by one; then Triton's conversions between the same layouts of registers."""
    run.compile(factored_kernel(found, way) for case in range(run.options.cases if run.options.rehearse else 0)
                if isinstance(found := factorise(layout_of(case)[2], dtype=layout_of(case)[1]), Factorisation)
                for way in found.costs)  # fmt: skip
    asked = range(run.options.cases)
    rows = [
        {"case": case, "error": row.text} if isinstance(row, Fault) else row
        for case, row in zip(asked, run.each(run_factor, asked, group=8, seconds=40, workers=1), strict=True)
    ]
    drawn = [layout_of(case) for case in asked]
    given = [(dtype, dict(layout.in_axes), columns) for _, dtype, layout, columns in drawn]
    given = given if importlib.util.find_spec("triton") else []
    peers = run.each(triton_time, given, seconds=max(20.0, run.options.seconds - run.spent), workers=1)
    for row, peer in zip(rows, peers, strict=False):
        row["triton"] = {"error": peer.text} if isinstance(peer, Fault) else peer
    ways = [row[way] for row in rows for way in WAYS if way in row]

    def medians(one: str, other: str, unit: str) -> dict[str, float]:
        """The median ratio of two ways, by kind."""
        found: dict[str, list[float]] = {}
        for row in rows:
            if unit in row.get(one, {}) and unit in row.get(other, {}):
                found.setdefault(row["kind"], []).append(row[one][unit] / max(row[other][unit], 0.01))
        return {kind: round(statistics.median(values), 4) for kind, values in found.items()}

    run.write("factor_exchanges_dev", {
        "cases": len(rows), "kernels": len(ways), "equal": sum(way["equal"] and way["status"] == 1 for way in ways),
        "errors": sum("error" in row or "refused" in row for row in rows), "repeats": REPEATS,
        "exchanges_to_shared": medians("exchanges", "shared", "cycles"),
        "shuffles_to_shared": medians("shuffles", "shared", "cycles"),
        "exchanges_to_triton": medians("exchanges", "triton", "ns"),
        "shared_to_triton": medians("shared", "triton", "ns"),
    }, rows=rows)  # fmt: skip


# --------------------------------------------------------------------------------------------------------- conversions

FEW, MANY = 32, 288
PAIRS = (1, 3)
"""Conversions there and back in a turn of the two loops."""
LEAST = 0.5
"""Cycles of a conversion, at least: what loops that differ by renamed registers measure may be below nothing."""
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


def build(case: dict[str, Any], chosen: str) -> tuple[dict[str, Any], dict[str, tuple[str, KernelSource]]]:
    """Compile the kernels of a case; equal texts are one file."""
    row: dict[str, Any] = {key: case[key] for key in ("case", "name", "bits", "size", "warps")}
    made = plans(case)
    there, back = made["plan"]
    row |= {"mechanism": there.mechanism, "back": back.mechanism, "plan": str(there).splitlines()[0]}
    row["modelled"] = {key: (pair[0].cost.cycles + pair[1].cost.cycles) / 2 for key, pair in made.items()}
    row["costs"] = {key: [said(each) for each in pair] for key, pair in made.items() if key != "plan"}
    kernels: dict[str, KernelSource] = {"once": conversion_kernel(there)}
    for pairs in PAIRS:
        kernels |= {f"{key} x{pairs}": conversion_loop(*pair, pairs=pairs) for key, pair in made.items()}
        kernels[f"nothing x{pairs}"] = conversion_loop(there, back, converts=False, pairs=pairs)
    files: dict[str, str] = {}
    for kernel in kernels.values():
        name = files.setdefault(kernel.text, f"{case['case']}_{len(files)}")
        (here() / f"{name}.cubin").write_bytes(to_cubin(kernel))
    if chosen == "kernels":
        try:
            import device_triton

            device_triton.build(case, PAIRS)
        except Exception as error:
            row["triton_error"] = f"{type(error).__name__}: {error}"[:300]
    return row, {key: (files[kernel.text], kernel) for key, kernel in kernels.items()}


def words_of(values: np.ndarray[Any, Any], threads: int) -> np.ndarray[Any, Any]:
    """Elements by thread and register as words by word and thread."""
    return np.ascontiguousarray(values.reshape(threads, -1).view(np.uint32).T)


def time_case(work: tuple[Any, ...], peers: bool) -> dict[str, Any]:
    """Run one case: correct first, then every loop in turn."""
    import torch

    case, row, kernels = work
    number = {8: np.uint8, 16: np.uint16, 32: np.uint32}[case["bits"]]
    values = np.random.default_rng(case["case"]).integers(0, 1 << case["bits"], case["size"], dtype=number)
    threads = 32 * case["warps"]
    tables = [
        np.asarray(linear(case[end], case["size"]).table()).reshape(threads, -1) for end in ("source", "destination")
    ]
    before, after = (words_of(np.ascontiguousarray(values[table]), threads) for table in tables)
    cycles = torch.zeros(1, dtype=torch.int64, device="cuda")
    source = torch.from_numpy(before.view(np.int32).copy()).cuda()
    into = torch.zeros(max(before.size, after.size), dtype=torch.int32, device="cuda")
    file, kernel = kernels["once"]
    cuda().launch(kernel, [source.data_ptr(), into.data_ptr()], file=file)
    row["equal"] = bool(np.array_equal(into[: after.size].cpu().numpy().view(np.uint32).reshape(after.shape), after))
    first = {file: key for key, (file, _) in reversed(kernels.items())}
    same = {key: first[file] for key, (file, _) in kernels.items() if first[file] != key}
    given = [source.data_ptr(), into.data_ptr(), cycles.data_ptr()]
    loops: dict[str, Any] = {
        key: lambda turns, kernel=kernel, file=file: cuda().launch(kernel, [*given, turns], file=file)
        for key, (file, kernel) in kernels.items() if key not in same and key != "once"
    }  # fmt: skip
    if peers and "triton_error" not in row:
        import device_triton

        kind, signed = {8: (torch.int8, np.int8), 16: (torch.int16, np.int16), 32: (torch.int32, np.int32)}[
            case["bits"]
        ]
        held = torch.from_numpy(values.view(signed).copy()).to(kind).cuda()
        target = torch.zeros_like(held)
        for pairs in PAIRS:
            loops[f"triton x{pairs}"] = lambda turns, pairs=pairs: device_triton.launch(
                case, pairs, held, target, cycles, turns
            )
        loops[f"triton x{PAIRS[0]}"](FEW)
        torch.cuda.synchronize()
        row["triton_equal"] = bool(torch.equal(held, target))

    def took(once: Any, turns: int) -> int:
        once(turns)
        torch.cuda.synchronize()
        return int(cycles.item())

    for once in loops.values():
        took(once, MANY)
    samples: dict[str, list[int]] = {key: [] for key in loops}
    for _ in range(RUNS):
        for key, once in loops.items():
            few = took(once, FEW)
            samples[key].append(took(once, MANY) - few)
    turn = {key: statistics.median(found) / (MANY - FEW) for key, found in samples.items()}
    turn |= {key: turn[other] for key, other in same.items()}
    few, many = (f" x{pairs}" for pairs in PAIRS)
    of_one = {
        key.removesuffix(few): (turn[key.removesuffix(few) + many] - value) / (2 * (PAIRS[1] - PAIRS[0]))
        for key, value in turn.items()
        if key.endswith(few)
    }
    row["changing"] = round(of_one.pop("nothing"), 2)
    row["cycles"] = {key: round(value - row["changing"], 2) for key, value in of_one.items()}
    row["turns"] = {key: round(value, 2) for key, value in turn.items()}
    return row


def conversions_job(run: Run) -> None:
    """Compile in many processes, then time in one; a case that faults runs again without Triton."""
    chosen = run.options.set
    os.environ["TRITON_CACHE_DIR"] = str(run.scratch / "triton")
    pairs = cases(chosen)
    if run.options.rehearse:
        run.compile(conversion_kernel(plans(case)["plan"][0]) for case in pairs)
    built = run.each(build, pairs, chosen, seconds=0.7 * run.options.seconds)
    work = [(case, *each) for case, each in zip(pairs, built, strict=True) if not isinstance(each, Fault)]
    seconds = max(1.0, run.options.seconds - run.spent)
    rows = run.each(time_case, work, True, group=len(work), seconds=seconds, workers=1)
    again = [at for at, row in enumerate(rows) if isinstance(row, Fault)]
    for at, row in zip(again, run.each(time_case, [work[at] for at in again], False, workers=1), strict=True):
        lost = {"case": work[at][0]["case"], "error": getattr(row, "text", "")}
        rows[at] = (lost if isinstance(row, Fault) else row) | {"triton_error": rows[at].text}
    rows += [{"case": case["case"], "error": each.text} for case, each in zip(pairs, built, strict=True)
             if isinstance(each, Fault)]  # fmt: skip
    run.write("conversions_dev", summarised(rows, chosen), rows=rows)


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


# --------------------------------------------------------------------------------------------------------------- costs

SHORT, LONG, TIMES, UNROLL, STREAMS = 8, 72, 3, 16, 8
WARPS = (1, 4, 8)
SMEM_BYTES, SLOT_BYTES = 65536, 2048
BODY = """
extern "C" __global__ void {name}(long long* cycles, la_u32* sink, int turns)
{{
    const la_u32 t = threadIdx.x;
    for (la_u32 byte = 4 * t; byte < {smem}; byte += 128) la_shared_store_b32(byte, 0);
    const la_u32 base = (la_u32)__cvta_generic_to_shared(la_shared());
    la_u32 x[{streams}], y[{streams}];
#pragma unroll
    for (int s = 0; s < {streams}; ++s) {{ x[s] = {first}; y[s] = t ^ s; }}
    const bool asked = (t & 5) == sink[0], other = (t & 3) == sink[1];
    __syncthreads();
    const long long begun = clock64();
    for (int turn = 0; turn < turns; ++turn) {{
{statements}    }}
    __syncthreads();
    const long long took = clock64() - begun;
    la_u32 sum = asked ^ other ^ base;
    for (int s = 0; s < {streams}; ++s) sum ^= x[s] ^ y[s];
    sink[2 + t] = sum;
    if (t == 0) *cycles = took;
}}
"""


@dataclass(frozen=True)
class Cost:
    """One kernel: ``made`` statements of ``streams`` streams; how many instructions each holds."""

    name: str
    statement: str
    streams: int
    first: str = "t ^ s"

    @property
    def turns(self) -> int:
        """How often the loop's body holds the statement of every stream."""
        return UNROLL if self.streams == 1 else 4

    @property
    def text(self) -> str:
        """The kernel."""
        lines = [
            "        "
            + self.statement.replace("$", str(stream)).replace("@", str(SLOT_BYTES * (turn * self.streams + stream)))
            + "\n"
            for turn in range(self.turns)
            for stream in range(self.streams)
        ]
        return BODY.format(
            name=self.name, streams=self.streams, first=self.first, statements="".join(lines), smem=SMEM_BYTES
        )


def costs() -> Iterator[Cost]:
    """Yield every kernel."""
    plain = {
        "shfl_idx": 'asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, -1;" : "+r"(x[$]) : "r"((t ^ 5) % 32));',
        "shfl_bfly": 'asm volatile("shfl.sync.bfly.b32 %0, %0, 3, 31, -1;" : "+r"(x[$]));',
        "select": 'asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; selp.b32 %0, %0, %1, p;}"'
                  ' : "+r"(x[$]) : "r"(y[$] + $), "r"((la_u32)asked));',
        "permute": 'asm volatile("prmt.b32 %0, %0, %1, 0x5140;" : "+r"(x[$]) : "r"(y[$]));',
    }  # fmt: skip
    for name, statement in plain.items():
        for streams in (1, STREAMS):
            yield Cost(f"{name}_s{streams}", statement, streams)
    for words in (1, 2, 4):
        vector = {1: "b32", 2: "v2.b32", 4: "v4.b32"}[words]
        names = ["a", "b", "c", "d"][:words]
        listed = names[0] if words == 1 else f"{{{', '.join(names)}}}"
        for ways in (1, 2, 4):
            first = f"base + t % 32 * {4 * words * ways}u"
            load = (
                f'asm volatile("{{.reg .b32 {", ".join(names)}; ld.shared.{vector} {listed}, [%0]; '
                f'add.u32 %0, %0, {names[-1]};}}" : "+r"(x[$]) :: "memory");'
            )
            values = "%1" if words == 1 else f"{{{', '.join(['%1'] * words)}}}"
            store = f'asm volatile("st.shared.{vector} [%0 + @], {values};" :: "r"(x[$]), "r"(y[$] ^ y[$]) : "memory");'
            for streams in (1, STREAMS):
                yield Cost(f"load_b{32 * words}_w{ways}_s{streams}", load, streams, first)
            yield Cost(f"store_b{32 * words}_w{ways}_s{STREAMS}", store, STREAMS, first)
    for words in (1, 2, 4):
        names = ["a", "b", "c", "d"][:words]
        for trans in ("", ".trans"):
            for ways in (1, 2):
                first = f"base + t % {8 * words} * {16 * ways}u"
                kind = f"sync.aligned.m8n8.x{words}{trans}.shared.b16"
                load = (
                    f'asm volatile("{{.reg .b32 {", ".join(names)}; ldmatrix.{kind} {{{", ".join(names)}}}, [%0]; '
                    f'add.u32 %0, %0, {names[-1]};}}" : "+r"(x[$]) :: "memory");'
                )
                values = ", ".join(["%1"] * words)
                store = (
                    f'asm volatile("stmatrix.{kind} [%0], {{{values}}};" :: "r"(x[$]), "r"(y[$] ^ y[$]) : "memory");'
                )
                end = f"x{words}{trans.replace('.', '_')}_w{ways}"
                for streams in (1, STREAMS):
                    yield Cost(f"ldmatrix_{end}_s{streams}", load, streams, first)
                yield Cost(f"stmatrix_{end}_s{STREAMS}", store, STREAMS, first)
    yield Cost("barrier_s1", "__syncthreads();", 1)
    yield Cost("warp_barrier_s1", "__syncwarp();", 1)
    for wait in ("__syncthreads();", "__syncwarp();"):
        around = (
            'asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" :: "r"(x[$] ^ 64u), "r"(y[$] ^ y[$]) : "memory"); '
            + wait
            + ' asm volatile("{.reg .b32 a, b, c, d; ld.shared.v4.b32 {a, b, c, d}, [%0]; add.u32 %0, %0, a;}"'
            ' : "+r"(x[$]) :: "memory"); ' + wait
        )
        name = "block" if "threads" in wait else "warp"
        yield Cost(f"round_trip_{name}_s1", around, 1, "base + t * 16u")


def cost_kernel(case: Cost, text: str, warps: int) -> KernelSource:
    """The kernel of a case for so many warps."""
    parameters = (("long long*", "cycles"), ("la_u32*", "sink"), ("int", "turns"))
    return KernelSource(case.name, text, "sm_90a", 32 * warps, SMEM_BYTES, parameters)


def run_cost(case: Cost, text: str) -> dict[str, Any]:
    """The cycles of one instruction, by the number of warps."""
    row: dict[str, Any] = {"name": case.name, "streams": case.streams, "cycles": {}}
    for warps in WARPS:
        kernel = cost_kernel(case, text, warps)

        def once(turns: int, kernel: KernelSource = kernel) -> int:
            given = [np.zeros(1, dtype=np.int64), np.zeros(2 + kernel.threads, dtype=np.uint32), turns]
            return int(cuda().run(Launch(kernel.name, kernel, given, (0,), file="costs"))[0][0])

        found = [once(LONG) - once(SHORT) for _ in range(TIMES)]
        row["cycles"][warps] = round(statistics.median(found) / ((LONG - SHORT) * case.turns * case.streams), 3)
    return row


def costs_job(run: Run) -> None:
    """Compile one text, run every kernel."""
    every = list(costs())
    text = portable_prelude("sm_90a") + "".join(case.text for case in every)
    run.compile([cost_kernel(every[0], text, 1)], "costs")
    answers = run.each(run_cost, every, text, group=len(every), workers=1, seconds=run.options.seconds)
    rows = [{"name": case.name, "error": answer.text} if isinstance(answer, Fault) else answer
            for case, answer in zip(every, answers, strict=True)]  # fmt: skip
    said_of = {
        "few": SHORT,
        "many": LONG,
        "unroll": UNROLL,
        "runs": TIMES,
        "errors": sum("error" in row for row in rows),
    }
    run.write("conversion_costs_dev", {"kernels": len(rows)} | said_of, rows=rows)
