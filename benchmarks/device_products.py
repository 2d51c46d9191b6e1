"""Matrix products and attention from proved pipelines, beside cuBLAS and cuDNN in one process.

Every kernel is first compared with the peer's result on random data; where both add in the same order it is equal.
Times are medians of graphs of launches, kernel and peer in turns, so that clocks and temperature are the same for both.
``forms`` times every form of ``gemm_forms.TIMES`` on every shape: what that table was fitted to.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from device import Fault, Run

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernel import argument_cell
from layoutalg.codegen.kernels.attention import AttentionKernel, attention_kernel
from layoutalg.codegen.kernels.gemm import MatmulKernel, gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import TIMES, Form, forms

ROUNDS, REPLAYS, FLOPS = 5, 12, 2e11
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
        return [(shape, "bf16", "KK", form) for shape in SQUARE + ODD for form in TIMES]
    if which == "odd":
        return [(shape, "bf16", "KK", None) for shape in ODD]
    square: list[Case] = [(shape, dtype, "KK", None) for dtype in ("bf16", "f16", "e4m3") for shape in SQUARE]
    square += [((4096, 4096, 4096), "bf16", majors, None) for majors in ("KN", "MK", "MN")]
    return square + [(shape, "bf16", "KK", Form(128, 256, 2, 128, cluster=2, together=8)) for shape in SQUARE]


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


def launcher(kernel: Any, cubin: bytes, arguments: list[Any], blocks: int) -> tuple[Callable[[], None], dict[str, int]]:
    """Return what launches a kernel on the current stream, and its registers and local bytes."""
    from cuda.bindings import driver

    def call(result: tuple[Any, ...]) -> Any:
        code, *values = result
        if int(code):
            raise RuntimeError(f"driver: {code!s}")
        return values[0] if values else None

    function = call(driver.cuModuleGetFunction(call(driver.cuModuleLoadData(cubin)), kernel.name.encode()))
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


def run_product(work: tuple[Case, MatmulKernel, bytes]) -> dict[str, Any]:
    """Compare one product and time it beside the peer."""
    (shape, dtype, majors, _), made_kernel, cubin = work
    a, b, peer = operands(shape, dtype, majors)
    wanted = peer()
    units = torch().cuda.get_device_properties(0).multi_processor_count
    cluster = made_kernel.form.cluster
    blocks = min(made_kernel.blocks, units // cluster * cluster)
    result = torch().full_like(wanted, math.nan)
    status = torch().zeros(blocks, dtype=torch().int32, device="cuda")
    arguments = made_kernel.arguments(a.data_ptr(), b.data_ptr(), result.data_ptr(), blocks, status.data_ptr())
    act, numbers = launcher(made_kernel.kernel, cubin, arguments, blocks)
    act()
    torch().cuda.synchronize()
    error = float((result.float() - wanted.float()).abs().max() / wanted.float().abs().max())
    row = {"right": error < 0.01 and bool((status == 1).all()), "equal": bool((result == wanted).all()), "error": error}
    many = max(1, min(20, int(FLOPS / made_kernel.flops)))
    mine, theirs = milliseconds([graphed(act, many), graphed(peer, many)], many)
    tflops = made_kernel.flops / mine / 1e9
    return row | numbers | {"ms": mine, "peer_ms": theirs, "ratio": theirs / mine, "tflops": tflops}


def products_job(run: Run) -> None:
    """Make and run all products of the kinds that are asked for."""
    lines: list[dict[str, Any]] = []
    for which in run.options.kinds or ["square", "odd", "forms", "attention"]:
        attends = which == "attention"
        every: list[Any] = HEADS if attends else cases(which)
        with ProcessPoolExecutor(12, mp_context=get_context("fork")) as pool:
            answers = list(pool.map(attention_made if attends else made, every))
        run.refused |= {f"{which} {number}": log for number, log in enumerate(answers) if isinstance(log, str)}
        if run.options.rehearse:
            continue
        work = [(case, *answer) for case, answer in zip(every, answers, strict=True) if not isinstance(answer, str)]
        act = run_attention if attends else run_product
        found = iter(run.each(act, work, group=len(work), seconds=run.options.seconds, workers=1))
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
        "ratios": {f"{row['shape']} {row.get('dtype', '')} {row.get('majors', row.get('causal'))}":
                   round(row["ratio"], 3) for row in ran if row["which"] != "forms"},
    }, rows=lines)  # fmt: skip


def recorded(text: str) -> Form:
    """A form as its record has it, with the default stages; fields that are younger than the record are the default."""
    return Form(**{name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)} | {"stages": 0})


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
