"""Layout and schedule in three orders, and Triton's own: times, stalls by ncu, registers, instructions, compile time.

The choices are those of ``ablation_orders``, as stored in ``ablation_choices.json``; here nothing is planned. All
kernels of a problem run in turns in one process, beside cuBLAS or cuDNN; then ncu looks at one launch of each.
Triton takes the fastest of its configurations on this device. Compile times are of a process that has compiled before:
ours from the options to machine code (the proof of the pipeline included), Triton's of its fastest configuration.

    python benchmarks/device_ablation.py --choices          (the first table of docs/benchmarks.md)
    python benchmarks/device_ablation.py --table RECORD     (the second)
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import device_products as products
from device import Fault, Run, here

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernels.attention import AttentionKernel, attention_kernel
from layoutalg.codegen.kernels.gemm import MatmulKernel, gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import CLUSTERS, Form

CHOICES = Path(__file__).with_name("ablation_choices.json")
ORDERS = ("layout", "schedule", "joint")
WORKERS, AT_ONCE = 10, 4
STALL = re.compile(r"smsp__average_warps?(?:_latency)?_issue_stalled_(.+?)(?:_per_issue_active)?\.ratio")
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
IDLE, ISSUING = "smsp__issue_inst0.avg.pct_of_peak_sustained_active", "smsp__issue_active.avg.per_cycle_active"
SHARED = 227 * 1024
WRONG = 0.02
"""Of the largest value: an error above this is not one of rounding."""
ONE_LAUNCH = ("--profile-from-start", "off")
SECTIONS = ("--section", "SchedulerStats", "--section", "WarpStateStats")
Problem = tuple[str, dict[str, list[str]]]
"""The name of a problem; options as JSON, and the orders that choose them."""


def problems(kinds: list[str]) -> list[Problem]:
    """The problems of the kinds asked for."""
    found = []
    for name, orders in json.loads(CHOICES.read_text(encoding="utf-8")).items():
        if kinds and name.split()[0] not in kinds:
            continue
        mine: dict[str, list[str]] = {}
        for order in ORDERS:
            mine.setdefault(json.dumps(orders[order]["options"]), []).append(order)
        found.append((name, mine))
    return found


def parsed(name: str) -> tuple[tuple[int, ...], str, str, bool]:
    """Shape, type, majors and mask of a problem by its name."""
    words = name.split()
    majors = next((word[:2] for word in words if word.endswith("-major")), "KK")
    dtype = "e4m3" if "e4m3" in words else "bf16"
    return tuple(map(int, words[1].split("x"))), dtype, majors, "causal" in words


def kernel_of(name: str, options: str, symbol: str = "ablated") -> MatmulKernel | AttentionKernel:
    """The kernel of a choice."""
    shape, dtype, majors, causal = parsed(name)
    given = json.loads(options)
    if name.startswith("attention"):
        return attention_kernel(shape, causal=causal, name=symbol, **given)
    sides = {f"major_{side}": "K" if major == "K" else "MN" for side, major in zip("ab", majors, strict=True)}
    return gemm_kernel(shape, dtype, form=Form(**given), name=symbol, **sides)


# ------------------------------------------------------------------------------------------------------------ compile


def compiled(item: tuple[str, str]) -> dict[str, Any]:
    """The machine code of a choice, or of Triton's configurations of a problem, and the seconds that it took."""
    name, options = item
    try:
        if options.startswith("triton"):
            return triton_compiled(name, json.loads(options.partition(" ")[2]))
        to_cubin('extern "C" __global__ void first() {}', "sm_90a")
        kernel_of("gemm 256x256x128 bf16", json.dumps({"rows": 128, "columns": 64}))
        begun = time.perf_counter()
        kernel = kernel_of(name, options)
        emitted = time.perf_counter()
        cubin = to_cubin(kernel.kernel)
        done = time.perf_counter()
        numbers = {"emit_s": emitted - begun, "compile_s": done - emitted, "sass": instructions(cubin)}
        return {"cubin": cubin, "kernel": kernel, "numbers": numbers}
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {error}"[:400]}


def instructions(cubin: bytes) -> int:
    """How many instructions the code of a kernel has: 16 bytes each, with the padding at its end."""
    first, size, count, names = struct.unpack_from("<Q", cubin, 40)[0], *struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, first + number * size) for number in range(count)]
    table = headers[names][4]
    return sum(each[5] for each in headers if cubin[table + each[0] :].startswith(b".text.")) // 16


def triton_here() -> Any:
    """Triton, with the cache of this run."""
    os.environ["TRITON_CACHE_DIR"] = str(here() / "triton")
    import ablation_triton

    return ablation_triton


def product_configs(size: int) -> list[dict[str, Any]]:
    """What Triton tries for a product: tiles, stages, warps, the result in halves, a flattened loop."""
    tiles = [(128, 256, 8), (128, 128, 8), (128, 128, 4), (64, 256, 4), (256, 128, 8)]
    found = []
    for (bm, bn, warps), stages in itertools.product(tiles, (3, 4)):
        for halves, flat in ((False, True), (True, True), (True, False)):
            if bm * bn == 128 * 128 and halves and not flat:
                continue
            shared = stages * (bm + bn) * 128 + bm * bn * 2 // (1 + halves)
            if shared <= SHARED:
                found.append({"BM": bm, "BN": bn, "BK": 128 // size, "HALVES": halves, "FLAT": flat,
                              "num_stages": stages, "num_warps": warps})  # fmt: skip
    return found


def attention_configs(columns: int) -> list[dict[str, Any]]:
    """What Triton tries for an attention."""
    return [
        {"BM": bm, "BN": bn, "num_stages": stages, "num_warps": warps}
        for bm, bn, stages, warps in itertools.product((64, 128), (64, 128), (2, 3, 4), (4, 8))
        if (bm + 2 * stages * bn) * columns * 2 <= SHARED and (bm, warps) != (64, 8)
    ]


def configs(name: str) -> list[dict[str, Any]]:
    """What Triton tries for a problem."""
    shape, dtype, _, _ = parsed(name)
    return attention_configs(shape[3]) if len(shape) == 4 else product_configs(2 if dtype == "bf16" else 1)


def alike(name: str) -> tuple[object, ...]:
    """What Triton's machine code depends on, besides the configuration: all extents of products are multiples of 16."""
    shape, dtype, majors, causal = parsed(name)
    return (shape, causal) if len(shape) == 4 else (dtype, majors)


def triton_launch(name: str, config: dict[str, Any], tensors: tuple[Any, ...], warm: bool = False) -> Any:
    """Launch Triton's kernel, or compile it alone; return what Triton compiled."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    source, given = triton_here(), dict(config)
    shape, _, majors, causal = parsed(name)
    bm, bn = given["BM"], given["BN"]
    if len(shape) == 4:
        heads, queries, keys, columns = shape
        ends = [TensorDescriptor.from_tensor(each, [1, rows, columns])
                for each, rows in zip(tensors, (bm, bn, bn, bm), strict=True)]  # fmt: skip
        given |= {"COLUMNS": columns, "CAUSAL": causal, "EVEN": keys % bn == 0}
        grid, kernel = (-(-queries // bm), heads), source.attention
        numbers: tuple[Any, ...] = (keys, math.log2(math.e) / math.sqrt(columns))
    else:
        bk, units = given["BK"], products.torch().cuda.get_device_properties(0).multi_processor_count
        boxes = [[rows, bk] if major == "K" else [bk, rows] for rows, major in zip((bm, bn), majors, strict=True)]
        boxes.append([bm, bn // (1 + given["HALVES"])])
        ends = [TensorDescriptor.from_tensor(each, box) for each, box in zip(tensors, boxes, strict=True)]
        given |= {"TOGETHER": 8, "UNITS": units, "A_TURNED": majors[0] != "K", "B_TURNED": majors[1] != "K"}
        grid, kernel, numbers = (min(units, -(-shape[0] // bm) * -(-shape[1] // bn)),), source.product, shape
    if warm:
        return kernel.warmup(*ends, *numbers, grid=grid, **given)
    return kernel[grid](*ends, *numbers, **given)


def triton_compiled(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Compile a configuration into the cache of this run."""
    torch = products.torch()
    shape, dtype, majors, _ = parsed(name)
    if len(shape) == 4:
        heads, queries, keys, columns = shape
        sizes = [(heads, rows, columns) for rows in (queries, keys, keys, queries)]
    else:
        sizes = [(rows, shape[2]) if major == "K" else (shape[2], rows)
                 for rows, major in zip(shape[:2], majors, strict=True)] + [shape[:2]]  # fmt: skip
    kinds = [torch.bfloat16 if dtype == "bf16" or place == 2 else torch.float8_e4m3fn for place in range(len(sizes))]
    tensors = tuple([torch.empty(size, device="cuda", dtype=kind) for size, kind in zip(sizes, kinds, strict=True)])
    first_compilation()
    begun = time.perf_counter()
    made = triton_launch(name, config, tensors, warm=True)
    seconds = time.perf_counter() - begun
    made[1, 1, 1]  # its launcher goes into the cache too; one that needs too much is refused here
    return {"numbers": {"compile_s": seconds, "sass": instructions(made.asm["cubin"])}}


def first_compilation() -> None:
    """Have Triton compile something, so that the next compilation starts as any."""
    source = triton_here()
    source.nothing.warmup(products.torch().int32, grid=(1,))


# ------------------------------------------------------------------------------------------------------------ measure


class Prepared:
    """The operands of a problem, its peer, and what launches each kernel."""

    def __init__(self, name: str) -> None:
        self.name, (shape, dtype, majors, causal) = name, parsed(name)
        torch = products.torch()
        torch.manual_seed(1)
        if len(shape) == 4:
            heads, queries, keys, columns = shape
            self.inputs = tuple(
                torch.randn(heads, rows, columns, device="cuda").bfloat16() for rows in (queries, keys, keys)
            )
            self.peer = attention_peer(self.inputs, causal)
            self.wanted = attention_wanted(self.inputs, causal)
        else:
            left, right, self.peer = products.operands(shape, dtype, majors)  # type: ignore[arg-type]
            self.inputs = left, right
            self.wanted = self.peer()
        self.result = torch.empty(
            self.inputs[0].shape if len(shape) == 4 else shape[:2], device="cuda", dtype=torch.bfloat16
        )
        self.status = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")

    def ours(self, kernel: Any, cubin: bytes) -> tuple[Callable[[], None], dict[str, int]]:
        """What launches one of our kernels, and its registers."""
        self.blocks = kernel.blocks
        where = [each.data_ptr() for each in (*self.inputs, self.result)]
        if isinstance(kernel, MatmulKernel):
            self.blocks = min(kernel.blocks, CLUSTERS[kernel.form.ctas] * kernel.form.ctas)
            arguments = kernel.arguments(*where, self.blocks, self.status.data_ptr())
        else:
            arguments = kernel.arguments(*where, self.status.data_ptr())
        return products.launcher(kernel.kernel, cubin, arguments, self.blocks)

    def triton(self, config: dict[str, Any]) -> Callable[[], Any]:
        """What launches Triton's."""
        return lambda: triton_launch(self.name, config, (*self.inputs, self.result))

    def error(self, act: Callable[[], object], blocks: int = 0) -> float:
        """The largest error of a launch, of the largest value; inf where a block gave up."""
        self.result.fill_(math.nan)
        self.status.zero_()
        act()
        products.torch().cuda.synchronize()
        if blocks and not bool((self.status[:blocks] == 1).all()):
            return math.inf
        found = self.result[0] if self.result.dim() == 3 else self.result
        error = float((found.float() - self.wanted.float()).abs().max() / self.wanted.float().abs().max())
        return math.inf if math.isnan(error) else error


def attention_peer(inputs: tuple[Any, ...], causal: bool) -> Callable[[], Any]:
    """The attention of cuDNN."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (each.unsqueeze(0) for each in inputs)

    def act() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return products.torch().nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return act


def attention_wanted(inputs: tuple[Any, ...], causal: bool) -> Any:
    """The attention of the first head, in floats."""
    torch = products.torch()
    q, k, v = (each[0].float() for each in inputs)
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(scores, -1) @ v


def tuned(one: Prepared, able: list[dict[str, Any]]) -> tuple[dict[str, Any], int] | None:
    """The fastest right configuration of those that compile, and how many ran; None if none did."""
    torch, times = products.torch(), []
    for config in able:
        try:
            act = one.triton(config)
            if one.error(act) > WRONG:
                continue
            graph, events = products.graphed(act, 3), []
            for _ in range(4):
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                graph()
                last.record()
                events.append((first, last))
            torch.cuda.synchronize()
            times.append((sorted(first.elapsed_time(last) for first, last in events)[1], len(times), config))
        except Exception as error:  # too much shared memory, or registers
            if "CUDA error" in str(error):
                raise
    return (min(times)[2], len(times)) if times else None


def measured(item: tuple[str, dict[str, Any], list[dict[str, Any]]], out: str) -> list[dict[str, Any]]:
    """Times of all kernels of a problem, in turns; each problem is written to a file at once.

    Args:
        item: The problem, our kernels by options, the configurations of Triton that compile.
        out: The file.
    """
    name, kernels, able = item
    try:
        rows = list(measure(name, kernels, able))
    except Exception as error:
        rows = [{"problem": name, "what": "all", "fault": f"{type(error).__name__}: {error}"[:400]}]
    with Path(out).open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
    if any("CUDA error" in row.get("fault", "") or "driver:" in row.get("fault", "") for row in rows):
        raise RuntimeError(json.dumps(rows)[:300])  # the context is lost: the next problem takes another child
    return rows


def measure(name: str, kernels: dict[str, Any], able: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a problem."""
    one, acts, rows = Prepared(name), list[Callable[[], None]](), list[dict[str, Any]]()
    flops = next((made["kernel"].flops for made in kernels.values()), 0)
    many = 1 if name.startswith("attention") else max(1, min(20, int(products.FLOPS / max(flops, 1))))

    def add(row: dict[str, Any], act: Callable[[], object], blocks: int = 0) -> dict[str, Any] | None:
        """Take a kernel in if it is right; otherwise return its row."""
        error = one.error(act, blocks)
        row |= {"error": error if math.isfinite(error) else 1e9, "right": error < WRONG}
        if not row["right"]:
            return row
        acts.append(products.graphed(act, many))
        rows.append(row)
        return None

    for options, made in kernels.items():
        row = {"problem": name, "what": "ours", "options": options}
        try:
            act, numbers = one.ours(made["kernel"], made["cubin"])
            refused = add(row | numbers | made["numbers"], act, one.blocks)
        except Exception as error:
            refused = row | {"fault": f"{type(error).__name__}: {error}"[:400]}
        if refused:
            yield refused
    try:
        if (found := tuned(one, able)) is not None:
            config, tried = found
            ran = one.triton(config)()
            numbers = {"registers": ran.n_regs, "local_bytes": ran.n_spills, "tried": tried}
            row = {"problem": name, "what": "triton", "options": json.dumps(config)}
            add(row | numbers, one.triton(config))
    except Exception as error:
        yield {"problem": name, "what": "triton", "fault": f"{type(error).__name__}: {error}"[:400]}
    rows.append({"problem": name, "what": "peer", "right": True})
    acts.append(one.peer if name.startswith("attention") else products.graphed(one.peer, many))
    times = products.milliseconds(acts, many)
    for row, took in zip(rows, times, strict=True):
        yield row | {"ms": took, "tflops": flops / took / 1e9}


# ---------------------------------------------------------------------------------------------------------------- ncu


def profiled(items: list[tuple[str, dict[str, Any], str]], out: str) -> None:
    """Launch every kernel of some problems once, for ncu; what is launched is written before.

    Args:
        items: Problems, our kernels by options, Triton's configuration or "".
        out: The file.
    """
    torch = products.torch()
    for name, kernels, config in items:
        try:
            one = Prepared(name)
            acts = {options: one.ours(made["kernel"], made["cubin"])[0] for options, made in kernels.items()}
            if config:
                acts[config] = one.triton(json.loads(config))
            for options, act in acts.items():
                act()
                torch.cuda.synchronize()
                with Path(out).open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([name, options]) + "\n")
                torch.cuda.profiler.start()
                act()
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()
        except Exception as error:
            print(name, error, flush=True)


def counters(run: Run, items: list[tuple[str, dict[str, Any], str]]) -> dict[tuple[str, str], dict[str, float]]:
    """The counters of ncu of one launch of each kernel; those of a group that fails are asked for one by one."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    groups = [items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE)]
    while groups:
        group = groups.pop(0)
        if run.spent > run.options.seconds:
            run.refused[f"ncu {group[0][0]}"] = "out of time"
            continue
        log = run.out / f"ablation_launched_{len(found)}_{len(groups)}.jsonl"
        log.unlink(missing_ok=True)
        told = run.profile(profiled, [*ONE_LAUNCH, *SECTIONS], group, str(log), seconds=90)
        launched = [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
        if isinstance(told, str) or len(told) != len(launched):
            run.refused[f"ncu {group[0][0]}"] = told if isinstance(told, str) else f"{len(told)} of {len(launched)}"
            groups += [[each] for each in group] if len(group) > 1 else []
            continue
        for key, row in zip(launched, told, strict=True):
            found[key] = numbers_of(row)
        log.unlink(missing_ok=True)
        written = [[*key, numbers] for key, numbers in found.items()]
        (run.out / "ablation_ncu.json").write_text(json.dumps(written), encoding="utf-8")
    return found


def numbers_of(row: dict[str, str]) -> dict[str, float]:
    """The counters of a row that are numbers."""
    found = {}
    for name, text in row.items():
        if name and name.startswith("smsp__") and text:
            try:
                found[name] = float(text.replace(",", ""))
            except ValueError:
                continue
    return found


# ---------------------------------------------------------------------------------------------------------------- job


def ablation_job(run: Run) -> None:
    """Compile, measure, and ask ncu."""
    asked = problems(run.options.kinds)
    mine = [(name, options) for name, orders in asked for options in orders]
    answers = dict(zip(mine, run.each(compiled, mine, group=3, seconds=100, workers=WORKERS), strict=True))
    faults = {f"{name} {options}": text for (name, options), each in answers.items() if (text := fault_of(each))}
    run.refused |= faults
    if run.options.rehearse:
        run.compile(())
    first: dict[tuple[object, ...], str] = {}
    like = {name: first.setdefault(alike(name), name) for name, _ in asked}
    theirs = [(name, f"triton {json.dumps(config)}") for name in first.values() for config in configs(name)]
    theirs = theirs if triton_there() else []
    tried = dict(zip(theirs, run.each(compiled, theirs, group=20, seconds=100, workers=WORKERS), strict=True))
    work = []
    for name, orders in asked:
        kernels = {options: answers[name, options] for options in orders if not fault_of(answers[name, options])}
        able = [
            json.loads(options[7:]) for (of, options), each in tried.items() if of == like[name] and not fault_of(each)
        ]
        work.append((name, kernels, able))
    print(f"compiled after {run.spent:.0f} s: {len(mine)} of ours, {len(theirs)} of Triton's", flush=True)
    lines = run.out / "ablation_rows.jsonl"
    lines.unlink(missing_ok=True)
    run.each(measured, work, str(lines), group=len(work), seconds=run.options.seconds, workers=1)
    rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    print(f"measured after {run.spent:.0f} s: {len(rows)} rows", flush=True)
    theirs_of = {
        (name, options[7:]): each["numbers"]
        for name, of in like.items()
        for (compiled_of, options), each in tried.items()
        if compiled_of == of and not fault_of(each)
    }
    record(run, asked, rows, theirs_of, {})
    best = {row["problem"]: row["options"] for row in rows if row["what"] == "triton" and row.get("right")}
    seen = counters(run, [(name, kernels, best.get(name, "")) for name, kernels, _ in work])
    record(run, asked, rows, theirs_of, seen)


def fault_of(answer: Any) -> str:
    """Why there is no kernel, or nothing."""
    return answer.text if isinstance(answer, Fault) else str(answer.get("fault", ""))


def triton_there() -> bool:
    """Whether Triton is installed."""
    try:
        import triton
    except ImportError:
        return False
    return bool(triton.__version__)


def record(run: Run, asked: list[Problem], rows: list[dict[str, Any]], tried: dict[tuple[str, str], dict[str, Any]],
           seen: dict[tuple[str, str], dict[str, float]]) -> None:  # fmt: skip
    """Write what is known, and print the table."""
    orders = {(name, options): mine for name, each in asked for options, mine in each.items()}
    for row in rows:
        key = row["problem"], row.get("options", "")
        row["orders"] = orders.get(key, [])
        row["ncu"] = seen.get(key, {})
        if row["what"] == "triton":
            row |= tried.get(key, {})
    timed = {(row["problem"], order): row["ms"] for row in rows if "ms" in row for order in row["orders"]}
    own = {row["problem"]: row["ms"] for row in rows if row["what"] == "triton" and "ms" in row}
    run.write("ablation_dev", {
        "kernels": len(rows), "right": sum(row.get("right", False) for row in rows),
        "counted": sum(bool(row["ncu"]) for row in rows), "refused": dict(list(run.refused.items())[:8]),
        "of_joint": {order: mean([timed[name, order] / timed[name, "joint"] for name, _ in asked
                                  if {(name, order), (name, "joint")} <= set(timed)]) for order in ORDERS[:2]},
        "triton_of_joint": mean([own[name] / timed[name, "joint"] for name in own if (name, "joint") in timed]),
    }, rows=rows)  # fmt: skip
    print(table(rows), flush=True)


def mean(ratios: list[float]) -> float | None:
    """The geometric mean."""
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 4) if ratios else None


# -------------------------------------------------------------------------------------------------------------- table


def chosen(row: dict[str, Any]) -> str:
    """A choice in words."""
    if row["what"] == "peer":
        return ""
    given = json.loads(row["options"])
    if row["what"] == "triton":
        tile = "x".join(str(given[name]) for name in ("BM", "BN", "BK") if name in given)
        return f"{tile}, {given['num_stages']} stages, {given['num_warps']} warps" + ", halves" * given.get("HALVES", 0)
    if "tile" in given:
        rows, keys = given["tile"]
        return f"{rows} queries x {keys} keys, {given['stages']} stages, 1 + {given['consumers']} roles"
    tile = f"{given['rows']}x{given['columns']}, {given['depth']} bytes of K in {given['swizzle']}"
    behind = ", 1 behind" * given["behind"]
    return f"{tile}, leaving {given['leaving']}, {given['stages']} stages, 1 + {given['consumers']} roles{behind}"


def stalls(row: dict[str, Any]) -> dict[str, float]:
    """The share of each stall of the cycles between two instructions of a warp, the largest first."""
    numbers = row.get("ncu") or {}
    found = {match[1]: value for name, value in numbers.items() if (match := STALL.fullmatch(name))}
    whole = numbers.get(LATENCY) or sum(found.values())
    shares = {name: value / whole for name, value in found.items() if "not_issued" not in name} if whole else {}
    return dict(sorted(shares.items(), key=lambda each: -each[1]))


def idle(row: dict[str, Any]) -> float | None:
    """The share of cycles in which no warp of a scheduler is eligible."""
    numbers = row.get("ncu") or {}
    if IDLE in numbers:
        return float(numbers[IDLE]) / 100
    return 1 - float(numbers[ISSUING]) if ISSUING in numbers else None


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = [
        "| problem | order | chosen | ms | of joint | no eligible warp | barrier | largest stalls | registers | "
        "instructions | compile s |",
        "|---|---|---|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    joint = {row["problem"]: row["ms"] for row in rows if "joint" in row["orders"] and "ms" in row}
    for row in rows:
        who = {"triton": "Triton", "peer": "cuDNN" if row["problem"].startswith("attention") else "cuBLAS"}
        order = " = ".join(row["orders"]) or who.get(row["what"], row["what"])
        if "ms" not in row:
            fault = row.get("fault", "wrong").splitlines()[0]
            lines.append(f"| {row['problem']} | {order} | {fault} | | | | | | | | |")
            continue
        waits, nobody = stalls(row), idle(row)
        of = f"{row['ms'] / joint[row['problem']]:.3f}" if row["problem"] in joint else ""
        seconds = row.get("emit_s", 0) + row.get("compile_s", 0)
        largest = ", ".join([f"{stall} {part:.0%}" for stall, part in list(waits.items())[:2]])
        cells = [
            row["problem"], order, chosen(row), f"{row['ms']:.4f}", of, "" if nobody is None else f"{nobody:.0%}",
            f"{waits['barrier']:.0%}" if "barrier" in waits else "", largest, str(row.get("registers", "")),
            str(row.get("sass", "")), f"{seconds:.1f}" if seconds else "",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def choices_table() -> str:
    """The stored choices in Markdown, one row for orders that choose the same."""
    lines = ["| problem | order | chosen | II, cycles | predicted cycles |", "|---|---|---|---:|---:|"]
    for name, found in json.loads(CHOICES.read_text(encoding="utf-8")).items():
        for options, orders in dict(problems([]))[name].items():
            choice = found[orders[0]]
            words = chosen({"what": "ours", "options": options})
            lines.append(f"| {name} | {' = '.join(orders)} | {words} | {choice['ii']:,} | {choice['cycles']:,} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table of a record, or of the choices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--choices", action="store_true", help="what the orders choose")
    what.add_argument("--table", metavar="RECORD", help="ablation_dev.json, or the same with .gz")
    options = parser.parse_args()
    if options.choices:
        print(choices_table())
        return
    path = Path(options.table)
    raw = path.read_bytes()
    print(table(json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)["rows"]))


if __name__ == "__main__":
    main()
