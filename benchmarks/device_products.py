"""Matrix products and attention from proved pipelines, beside cuBLAS and cuDNN in one process.

Every kernel is first compared with the peer's result on random data; where both add in the same order it is equal.
Times are medians of graphs of launches, kernel and peer in turns, so that clocks and temperature are the same for both.
``forms`` times the forms that could be the best of a shape, in turns with the peer: the times of ``gemm_forms`` are
fitted to them, and printed in its words. ``python benchmarks/device_products.py FILE`` builds the kernels of all kinds,
so that ``--made FILE`` need not on the device.
"""

from __future__ import annotations

import ctypes
import functools
import lzma
import math
import pickle
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from device import Fault, Run

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernel import argument_cell
from layoutalg.codegen.kernels.attention import AttentionKernel, attention_kernel
from layoutalg.codegen.kernels.gemm import MatmulKernel, gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import TIMES, Form, forms, work

ROUNDS, REPLAYS, FLOPS = 5, 12, 2e11
MOST_FORMS, NEAR = 14, 1.6
"""Forms of a shape that are timed: the first ones, as long as they should take so many times the best one's time."""
SQUARE = [(4096, 4096, 4096), (8192, 8192, 8192)]
ODD = [
    (1000, 1000, 1000), (777, 1032, 520), (3000, 5000, 1016), (8200, 4104, 2056), (129, 8192, 4096),
    (4097, 4104, 4104), (2048, 2048, 2048), (1536, 8960, 1536), (6000, 504, 3000), (333, 3336, 8192),
    (16, 4096, 4096), (12345, 1000, 256), (5120, 1024, 5120), (512, 512, 8192), (2000, 12000, 72),
    (1025, 1032, 1032), (7000, 7000, 7000), (296, 304, 304), (640, 6144, 2560), (3333, 3336, 3336),
]  # fmt: skip
Shape = tuple[int, int, int]
Case = tuple[Shape, str, str, "Form | None"]
"""Shape, type, majors of A and B, form."""


def cases(which: str) -> list[Case]:
    """The products of a kind."""
    if which == "forms":
        found: list[Case] = []
        for shape in SQUARE + ODD:
            ranked = forms(shape, 2, shape[2] * 2 % 128 == 0)
            near = [form for time, form in ranked if time <= NEAR * ranked[0][0]]
            found += [(shape, "bf16", "KK", form) for form in near[:MOST_FORMS]]
        return found
    if which == "odd":
        return [(shape, "bf16", "KK", None) for shape in ODD]
    square: list[Case] = [(shape, dtype, "KK", None) for dtype in ("bf16", "f16", "e4m3") for shape in SQUARE]
    square += [((4096, 4096, 4096), "bf16", majors, None) for majors in ("KN", "MK", "MN")]
    return square + [(shape, "bf16", "KK", Form(128, 256, 2, 128, cluster=2, together=8)) for shape in SQUARE]


KINDS = ["square", "odd", "forms", "attention"]
HEADS = [
    (shape, causal)
    for shape in ((32, 4096, 4096, 128), (16, 8192, 8192, 128), (32, 4096, 4096, 64), (24, 1000, 3001, 128))
    for causal in (False, True)
]
"""Batches times heads, queries, keys, columns; causal."""


def attention_made(case: tuple[tuple[int, int, int, int], bool]) -> tuple[AttentionKernel, bytes] | str:
    """Return a kernel of attention and its machine code, or why there is none."""
    try:
        kernel = attention_kernel(case[0], causal=case[1], name="attention")
        return kernel, to_cubin(kernel.kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]


def run_attention(work: tuple[tuple[tuple[int, int, int, int], bool], AttentionKernel, bytes]) -> dict[str, Any]:
    """Compare one attention with floats and time it beside cuDNN."""
    (shape, causal), kernel, cubin = work
    from torch.nn.attention import SDPBackend, sdpa_kernel

    heads, queries, keys, columns = shape
    q, k, v = (torch().randn(1, heads, rows, columns, device="cuda").bfloat16() for rows in (queries, keys, keys))

    def peer() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch().nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    scores = q[0, 0].float() @ k[0, 0].float().T / math.sqrt(columns)
    if causal:
        scores.masked_fill_(torch().ones_like(scores, dtype=torch().bool).triu(1), -math.inf)
    wanted = torch().softmax(scores, -1) @ v[0, 0].float()
    result = torch().full_like(q, math.nan)
    status = torch().zeros(kernel.blocks, dtype=torch().int32, device="cuda")
    arguments = kernel.arguments(*[each.data_ptr() for each in (q, k, v, result, status)])
    act, numbers = launcher(kernel.kernel, cubin, arguments, kernel.blocks)
    act()
    torch().cuda.synchronize()
    theirs_result = peer()
    errors = [float((each[0, 0].float() - wanted).abs().max()) for each in (result, theirs_result)]
    right = errors[0] <= 1.5 * errors[1] + 1e-4 and bool((status == 1).all())
    mine, theirs = milliseconds([act, peer], 1)
    tflops = 4 * heads * queries * keys * columns / (2 if causal else 1) / mine / 1e9
    row = {"right": right, "equal": bool((result == theirs_result).all()), "error": errors[0], "peer_error": errors[1]}
    return row | numbers | {"ms": mine, "peer_ms": theirs, "ratio": theirs / mine, "tflops": tflops}


def made(case: Case) -> tuple[MatmulKernel, bytes] | str:
    """Return a kernel and its machine code, or why there is none."""
    shape, dtype, majors, form = case
    sides = {f"major_{side}": "K" if major == "K" else "MN" for side, major in zip("ab", majors, strict=True)}
    try:
        result = "f16" if dtype == "f16" else "bf16"
        kernel = gemm_kernel(shape, dtype, form=form, result=result, name="product", **sides)
        return kernel, to_cubin(kernel.kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]


@functools.cache
def torch() -> Any:
    """PyTorch, with its context."""
    import torch

    torch.zeros(1, device="cuda")
    return torch


@functools.lru_cache(maxsize=1)
def operands(shape: Shape, dtype: str, majors: str) -> tuple[Any, Any, Callable[[], Any]]:
    """Random A and B in their orders, and the peer's product."""
    m, n, k = shape
    kind = {"bf16": torch().bfloat16, "f16": torch().float16, "e4m3": torch().float8_e4m3fn}[dtype]
    a, b = (
        torch().randn((rows, k) if major == "K" else (k, rows), device="cuda").to(kind)
        for rows, major in ((m, majors[0]), (n, majors[1]))
    )
    left, right = a if majors[0] == "K" else a.t(), b.t() if majors[1] == "K" else b
    if dtype != "e4m3":
        return a, b, lambda: torch().matmul(left, right)
    one = torch().tensor(1.0, device="cuda")
    out = torch().bfloat16
    return a, b, lambda: torch()._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=out, use_fast_accum=True)


def graphed(act: Callable[[], object], many: int) -> Callable[[], None]:
    """Return what replays so many calls."""
    graph, stream = torch().cuda.CUDAGraph(), torch().cuda.Stream()
    with torch().cuda.stream(stream):
        for _ in range(3):
            act()
    torch().cuda.synchronize()
    with torch().cuda.graph(graph, stream=stream):
        for _ in range(many):
            act()
    replay: Callable[[], None] = graph.replay
    return replay


def milliseconds(acts: list[Callable[[], None]], many: int) -> list[float]:
    """The median time of one call of each, in turns."""
    times: list[list[float]] = [[] for _ in acts]
    for _ in range(ROUNDS):
        for act, found in zip(acts, times, strict=True):
            events = [[torch().cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPLAYS)]
            for first, last in events:
                first.record()
                act()
                last.record()
            torch().cuda.synchronize()
            found += [first.elapsed_time(last) / many for first, last in events]
    return [statistics.median(found) for found in times]


def at_once(kernel: Any, function: Any, cluster: int) -> int:
    """How many clusters of a kernel the driver runs at once."""
    from cuda.bindings import driver

    size = driver.CUlaunchAttribute()
    size.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size.value.clusterDim.x, size.value.clusterDim.y, size.value.clusterDim.z = cluster, 1, 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 132 // cluster * cluster, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = kernel.threads, 1, 1
    config.sharedMemBytes, config.numAttrs, config.attrs = kernel.dynamic_smem_bytes, 1, [size]
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.cuFuncSetAttribute(function, attribute, kernel.dynamic_smem_bytes)
    code, many = driver.cuOccupancyMaxActiveClusters(function, config)
    return int(many) if not int(code) else 0


def launcher(kernel: Any, cubin: bytes, arguments: list[Any], blocks: int) -> tuple[Callable[[], None], dict[str, int]]:
    """Return what launches a kernel on the current stream, and its registers and local bytes."""
    from cuda.bindings import driver

    def call(result: tuple[Any, ...]) -> Any:
        code, *values = result
        if int(code):
            raise RuntimeError(f"driver: {code!s}")
        return values[0] if values else None

    function = loaded(cubin, kernel.name)
    attribute, smem = driver.CUfunction_attribute, kernel.dynamic_smem_bytes
    call(driver.cuFuncSetAttribute(function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem))
    asked = {
        "registers": attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
        "local_bytes": attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    }
    numbers = {name: int(call(driver.cuFuncGetAttribute(each, function))) for name, each in asked.items()}
    cells = [argument_cell(*parameter, value, "LA533")
             for parameter, value in zip(kernel.parameters, arguments, strict=True)]  # fmt: skip
    held = (ctypes.c_void_p * len(cells))(*[address for address, _ in cells]), cells

    def act() -> None:
        stream = torch().cuda.current_stream().cuda_stream
        where = ctypes.addressof(held[0])
        call(driver.cuLaunchKernel(function, blocks, 1, 1, kernel.threads, 1, 1, smem, stream, where, 0))

    return act, numbers


@functools.lru_cache(maxsize=64)
def loaded(cubin: bytes, name: str) -> Any:
    """The function of a cubin."""
    from cuda.bindings import driver

    torch()
    code, module = driver.cuModuleLoadData(cubin)
    if int(code):
        raise RuntimeError(f"driver: {code!s}")
    return driver.cuModuleGetFunction(module, name.encode())[1]


def blocks_of(made_kernel: MatmulKernel, cubin: bytes) -> int:
    """The blocks of a launch: one per multiprocessor, as far as clusters fit."""
    units, ctas = torch().cuda.get_device_properties(0).multi_processor_count, made_kernel.form.ctas
    many = units // ctas
    if ctas > 1:
        function = loaded(cubin, made_kernel.kernel.name)
        many = min(many, at_once(made_kernel.kernel, function, ctas) or many)
    return min(made_kernel.blocks, many * ctas)


def prepared(case: Case, made_kernel: MatmulKernel, cubin: bytes) -> tuple[Callable[[], None], dict[str, Any]]:
    """Compare a product with the peer's; return what launches it, and what was found."""
    a, b, peer = operands(*case[:3])
    wanted, blocks = peer(), blocks_of(made_kernel, cubin)
    result = torch().full_like(wanted, math.nan)
    status = torch().zeros(blocks, dtype=torch().int32, device="cuda")
    arguments = made_kernel.arguments(a.data_ptr(), b.data_ptr(), result.data_ptr(), blocks, status.data_ptr())
    act, numbers = launcher(made_kernel.kernel, cubin, arguments, blocks)
    act()
    torch().cuda.synchronize()
    error = float((result.float() - wanted.float()).abs().max() / wanted.float().abs().max())
    row = {"right": error < 0.01 and bool((status == 1).all()), "equal": bool((result == wanted).all()), "error": error}

    def kept(_memory: object = (result, status)) -> None:
        act()

    return kept, row | numbers | {"blocks": blocks}


def run_product(work: tuple[Case, MatmulKernel, bytes]) -> dict[str, Any]:
    """Compare one product and time it beside the peer."""
    return run_forms([work])[0]


def run_forms(works: list[tuple[Case, MatmulKernel, bytes]]) -> list[dict[str, Any]]:
    """Compare kernels of one product, and time them and the peer in turns."""
    found = [prepared(*each) for each in works]
    flops = works[0][1].flops
    many = max(1, min(20, int(FLOPS / flops)))
    acts = [graphed(act, many) for act in [act for act, _ in found] + [operands(*works[0][0][:3])[2]]]
    *mine, theirs = milliseconds(acts, many)
    return [
        row | {"ms": one, "peer_ms": theirs, "ratio": theirs / one, "tflops": flops / one / 1e9}
        for (_, row), one in zip(found, mine, strict=True)
    ]


def built(which: str) -> list[Any]:
    """The kernels of a kind with their machine code, or why there are none."""
    every: list[Any] = HEADS if which == "attention" else cases(which)
    with ProcessPoolExecutor(12, mp_context=get_context("fork")) as pool:
        return list(pool.map(attention_made if which == "attention" else made, every))


def grouped(work: list[Any], which: str) -> tuple[Callable[..., Any], list[Any]]:
    """What runs in the child, and the items: products of one shape in one turn if all their forms are timed."""
    if which == "attention":
        return run_attention, work
    if which != "forms":
        return run_product, work
    shapes = dict.fromkeys(case[0] for case, *_ in work)
    return run_forms, [[each for each in work if each[0][0] == shape] for shape in shapes]


def products_job(run: Run) -> None:
    """Make and run all products of the kinds that are asked for."""
    lines: list[dict[str, Any]] = []
    stored: dict[str, list[Any]] = (
        pickle.loads(lzma.decompress(run.options.made.read_bytes())) if run.options.made else {}
    )
    for which in run.options.kinds or KINDS:
        attends = which == "attention"
        every: list[Any] = HEADS if attends else cases(which)
        answers = stored[which] if which in stored else built(which)
        run.refused |= {f"{which} {number}": log for number, log in enumerate(answers) if isinstance(log, str)}
        if run.options.rehearse:
            continue
        work = [(case, *answer) for case, answer in zip(every, answers, strict=True) if not isinstance(answer, str)]
        act, items = grouped(work, which)
        told_of = run.each(act, items, group=len(items), seconds=run.options.seconds, workers=1)
        found: Iterator[Any] = iter(told_of)
        if which == "forms":
            pairs = zip(items, told_of, strict=True)
            found = iter(
                [one for item, told in pairs for one in (told if isinstance(told, list) else [told] * len(item))]
            )
        for case, answer in zip(every, answers, strict=True):
            told = Fault(answer) if isinstance(answer, str) else next(found)
            row = {"which": which, "shape": case[0]} | (
                {"causal": case[1]} if attends else {"dtype": case[1], "majors": case[2]}
            )
            if not attends and not isinstance(answer, str):
                row["form"] = str(answer[0].form)
            lines.append(row | ({"fault": told.text} if isinstance(told, Fault) else told))
    if run.options.rehearse:
        run.compile(())
    ran = [row for row in lines if "ms" in row]
    means = {
        which: math.exp(statistics.fmean([math.log(row["ratio"]) for row in ran if row["which"] == which]))
        for which in dict.fromkeys(row["which"] for row in ran)
    }
    run.write("products_dev", {
        "products": len(ran), "right": sum(row["right"] for row in ran), "equal": sum(row["equal"] for row in ran),
        "mean_ratio": means, "faults": [row["fault"] for row in lines if "fault" in row][:8],
        **fit([row for row in ran if row["which"] == "forms"]),
        "most_blocks": most_blocks(ran),
        "ratios": {f"{row['shape']} {row.get('dtype', '')} {row.get('majors', row.get('causal'))}":
                   round(row["ratio"], 3) for row in ran if row["which"] != "forms"},
    }, rows=lines)  # fmt: skip


def recorded(text: str) -> Form:
    """A form as its record has it, with the default stages; fields that are younger than the record are the default."""
    return Form(**{name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)} | {"stages": 0})


def spelled(form: Form) -> str:
    """A form as ``gemm_forms`` writes it."""
    more = [f"{name}={getattr(form, name)}" for name in ("cluster", "behind", "together", "depth", "split")
            if getattr(form, name) != getattr(Form(128, 256), name)]  # fmt: skip
    return f"Form({', '.join(map(str, (form.rows, form.columns, form.consumers, form.leaving, *more)))})"


def fit(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The times of forms with the least error in measured ones, the constant of a launch, and what they choose."""
    if not rows:
        return {}
    known = TIMES
    measured: dict[Form, list[tuple[Any, float]]] = {}
    for row in rows:
        if (form := recorded(row["form"])) in known:
            measured.setdefault(form, []).append((tuple(row["shape"]), 1000 * row["ms"]))
    best: tuple[float, float, dict[Form, Any]] = (math.inf, 0.0, {})
    for launch in np.arange(1.0, 5.01, 0.1):
        tried = {form: _fitted(form, every, float(launch)) for form, every in measured.items()}
        error = sum([wrong for _, wrong in tried.values()])
        if error < best[0]:
            best = error, float(launch), {form: times for form, (times, _) in tried.items()}
    error, launch, times = best
    for form in known:
        three = ", ".join([f"{each:.3g}" for each in times.get(form, known[form])])
        print(f"    {spelled(form)}: ({three}),{'' if form in times else '  # not timed'}")
    ratios: dict[str, list[float]] = {"stated": [], "fitted": [], "best": []}
    for shape in dict.fromkeys(tuple(row["shape"]) for row in rows):
        same = {recorded(row["form"]): row for row in rows if tuple(row["shape"]) == shape}
        by: dict[str, Any] = {"best": min(same, key=lambda form: same[form]["ms"])}
        for way, table in (("stated", known), ("fitted", known | times)):
            by[way] = min(
                [form for form in same if form in known], key=lambda form: predicted(form, table[form], shape)
            )
        for way, form in by.items():
            ratios[way].append(same[form]["ratio"])
        chosen = ", ".join([f"{way} {spelled(form)} {1000 * same[form]['ms']:.2f}" for way, form in by.items()])
        print(f"{'x'.join(map(str, shape)):>16} peer {1000 * same[by['best']]['peer_ms']:.2f} us, {chosen}")
    means = {way: round(math.exp(statistics.fmean(map(math.log, each))), 4) for way, each in ratios.items()}
    return {"launch_us": round(launch, 2), "fit_error": round(error, 4), "form_ratios": means}


def most_blocks(rows: list[dict[str, Any]]) -> dict[int, int]:
    """The blocks that were launched at most, by blocks of a cluster: as many clusters as the driver runs at once."""
    found: dict[int, int] = {}
    for row in rows:
        sizes = re.findall(r"(?:cluster|split)=(\d+)", row.get("form", ""))
        ctas = math.prod(map(int, sizes))
        found[ctas] = max(found.get(ctas, 0), row.get("blocks", 0))
    return found


def predicted(form: Form, times: tuple[float, float, float], shape: Shape) -> float:
    """Microseconds of a product beside those of a launch."""
    turns, steps = work(form, shape, 2)
    return turns * (steps * times[shape[2] * 2 % 128 != 0] + times[2])


def _fitted(form: Form, measured: list[tuple[Any, float]], launch: float) -> tuple[tuple[float, float, float], float]:
    """Times of a form with the least relative error, none negative; what nothing measured tells stays as it is."""
    stated = list(TIMES[form])
    rows, wanted = [], []
    for shape, time in measured:
        turns, steps = work(form, shape, 2)
        odd = shape[2] * 2 % 128 != 0
        rows.append([turns * steps * (not odd) / time, turns * steps * odd / time, turns / time])
        wanted.append(1 - launch / time)
    matrix, right = np.array(rows), np.array(wanted)
    free = [place for place in range(3) if matrix[:, place].any()]
    if len(rows) < 4:  # too few to tell a step from a tile
        free = [place for place in free if place < 2]
    while free:
        rest = right - matrix @ np.array([0.0 if place in free else stated[place] for place in range(3)])
        found = np.linalg.lstsq(matrix[:, free], rest, rcond=None)[0]
        if (found > 0).all():
            for place, value in zip(free, found, strict=True):
                stated[place] = float(value)
            break
        worst = free[int(np.argmin(found))]
        stated[worst] = 0.05
        free.remove(worst)
    error = float(((matrix @ np.array(stated) - right) ** 2).sum())
    return (stated[0], stated[1], stated[2]), error


def regret(rows: list[dict[str, Any]]) -> float:
    """The mean factor by which the chosen form is slower than the best of those that were timed."""
    found = []
    for shape in {tuple(row["shape"]) for row in rows}:
        same = [row for row in rows if tuple(row["shape"]) == shape]
        times = {recorded(row["form"]): row["ms"] for row in same}
        even = shape[2] * 2 % 128 == 0
        ranked = [form for _, form in forms(shape, 2, even)]  # type: ignore[arg-type]
        chosen = next(times[form] for form in ranked if form in times)
        found.append(math.log(chosen / min(times.values())))
    return math.exp(statistics.fmean(found))


if __name__ == "__main__":
    kernels = {which: built(which) for which in KINDS}
    Path(sys.argv[1]).write_bytes(lzma.compress(pickle.dumps(kernels)))
    print(
        {which: f"{len(each)}, refused {sum(isinstance(one, str) for one in each)}" for which, each in kernels.items()}
    )
