"""Every family and solver at once: what one process of the tests of threads and forks does.

``python work.py MODE FILE``. ``alone`` runs every operation in one thread and writes the answers to FILE; the other
modes compare with it: ``threads`` (16 at the same time), ``fork`` (a child of a process whose threads are in the middle
of the same operations), ``pool-fork``, ``pool-spawn`` and ``pool-forkserver`` (multiprocessing). ``crash``, ``wrong``
and ``hang`` plant a fault, to see that the tests would notice. Ends with 0 where every answer is the one of ``alone``.

Implementation notes: an operation that ran out of its time under load is asked again; which engine decided may differ.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import layoutalg as la
from layoutalg import convert, cute, f2, hierarchy, integer
from layoutalg.cute import CuteLayout
from layoutalg.cute import symbolic as sym
from layoutalg.ground import worker
from layoutalg.ground.errors import BudgetError
from layoutalg.interop import triton
from layoutalg.piecewise import PiecewiseLayout, PointSet
from layoutalg.proofs import wgmma as wgmma_proofs
from layoutalg.proofs.tensormap import TensorMapProblem, check
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma

THREADS = 16
VARIANTS = 3
RETRIES = 6
FIRST = json.loads((Path(__file__).parents[1] / "data/examples/problem.json").read_text())


def parse_all(k: int) -> object:
    texts = [
        f"(4,{8 + k}):({8 + k},1)", "Sw<2,3,3> o 0 o (64,64):(64,1)", "F2[lane=(1,0)(0,1) -> dim0:2, dim1:2]",
        f"Z[i:{7 + k}=(1,2), j:2=(0,2) -> p%8, q] + (1,1)", "col 4:1, row (2,3):(4^1,8) ^ (4) -> x:24",
        f"{{ [i, j] -> [8i + j] : 0 <= i < {4 + k} and 0 <= j < 8 }}", f"[N] -> {{ [i] -> [{k + 2}i] : 0 <= i < N }}",
    ]  # fmt: skip
    return [str(la.parse(text)) for text in texts]


def cute_all(k: int) -> object:
    layout = CuteLayout((4, 8 + 4 * k), (8 + 4 * k, 1))
    parts = [cute.composition(layout, CuteLayout(4, 1)), cute.complement(CuteLayout(4, 2 + k), 64)]
    parts += [cute.right_inverse(layout), cute.left_inverse(layout), cute.logical_divide(layout, (2, 4))]
    return [str(part) for part in parts]


def symbolic_all(k: int) -> object:
    known = sym.Assumptions((f"M % {k + 2} == 0",))
    layout = sym.SymbolicLayout(("M", "N"), (f"N*{k + 1}", k + 1), known)
    parts = [str(sym.composition(layout, sym.SymbolicLayout((k + 2, "N"), (f"M/{k + 2}", "M"))))]
    parts += [str(sym.logical_divide(layout, (k + 2, None)))]
    return [*parts, known.decide(f"M**2 + N**2 + {k} >= 2*M*N", timeout_ms=20_000).status]


def equal_all(k: int) -> object:
    left, right = CuteLayout((4, 8 + 4 * k), (1, 4)), CuteLayout(32 + 16 * k, 1)
    wrong = CuteLayout((4, 8 + 4 * k), (1, 5))
    answers = []
    for engine in ("normal-form", "table", "isl", "smt"):
        for other in (right, wrong):
            answer = la.equivalent(left, other, _engines=(engine,))
            if isinstance(answer, la.Unknown) and engine != "normal-form":
                raise TimeoutError(answer.reason)
            answers.append(type(answer).__name__)
    return answers


def isl_all(k: int) -> object:
    domain = f"0 <= a < {3 + k} and 0 <= b < 3"
    layout = PiecewiseLayout(f"{{ [a, b] -> [{3 * (k + 2)}a + b] : {domain} }}")
    points = PointSet(f"{{ [x, y] : 0 <= x < {5 + k} and 0 <= y < 3 and (3x + y) mod 2 = 0 }}")
    triangle = PiecewiseLayout(f"[N] -> {{ [i, j] -> [{k + 1}i, j] : 0 <= j <= i < N }}", given="N >= 1")
    piecewise = PiecewiseLayout(f"{{ [a, b] -> [a + {4 + k}b] : 0 <= a < 4 and 0 <= b < 8 }}")
    return [
        layout.right_inverse().domain.count(),
        points.count(),
        triangle.graph(N=4)[0].tolist(),
        triangle.image_inverse()(y0=2 * (k + 1), y1=1, N=5),
        piecewise.table().tolist(),
        piecewise.is_equal(piecewise),
    ]


def zmod_all(k: int) -> object:
    layout = la.parse(f"Z[i:{3 + k}=(1,2), j:4=({3 + k},1) -> p, q%{5 + k}]")
    inverse = integer.right_inverse(la.parse(f"Z[i:{2 + k}=(1), j:3=({2 + k}) -> p]"))
    return [str(integer.injective(layout)), str(inverse), str(integer.kernel_lattice(layout))]


def bridges_all(k: int) -> object:
    swizzled = la.parse(f"Sw<{1 + k},3,3> o 0 o (8,64):(64,1)")
    form = convert.to_linear(swizzled)
    table = np.arange(4 * (k + 3)).reshape(4, -1).T.reshape(-1)
    return [str(form), str(convert.recognize(table)), str(la.compose(swizzled, CuteLayout(8, 1), widen=True))]


def f2_all(k: int) -> object:
    layout = f2.LinearLayout.from_bases({"i": [(1, 0), (2, 1), (4, k & 1)]}, {"row": 8, "col": 2})
    gluon = triton.from_attribute("#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>")
    exchange = hierarchy.reindex(hierarchy.hierarchy(lane=4, register=2), [(3 * i + k) % 8 for i in range(8)])
    return [layout.rank, layout.table().tolist(), str(gluon), str(hierarchy.profile_of(exchange)), str(exchange)]


def planner_all(k: int) -> object:
    small = {"tile": [8, 16], "smem": {"modes": [[[8, 16]], [[16, 1]]], "swizzle": "32B"}}
    document = FIRST | small | {"global": FIRST["global"] | {"shape": [1024 + 64 * k, 512]}}
    plan = synthesize_tensormap(TensorMapProblem.from_json(document), seconds=60)
    rows = 64 * (k % 2 + 1)
    operand = synthesize_wgmma(wgmma_proofs.OperandProblem("A", (rows, 64), (((rows, 64),), ((64, 1),)), "128B"))
    return [plan.hex, bool(check(plan)), bool(wgmma_proofs.check(operand))]


def worker_all(k: int) -> object:
    return worker.run("a sum", 60, sum, list(range(10 + k)))


OPERATIONS: dict[str, Callable[[int], object]] = {
    function.__name__: function
    for function in (
        parse_all, cute_all, symbolic_all, equal_all, isl_all, zmod_all, bridges_all, f2_all, planner_all, worker_all,
    )
}  # fmt: skip


def answer(name: str, k: int) -> object:
    """Return an answer as JSON has it; out of time is asked again."""
    for attempt in range(RETRIES):
        try:
            return json.loads(json.dumps(OPERATIONS[name](k), default=str))
        except (BudgetError, TimeoutError):
            if attempt == RETRIES - 1:
                raise
    raise AssertionError


def compared(expected: dict[str, object], shift: int) -> list[str]:
    """Return what differs from the answers of one thread, in an order of its own."""
    names = sorted(expected)
    wrong = []
    for name in names[shift % len(names) :] + names[: shift % len(names)]:
        operation, k = name.split("/")
        found = answer(operation, int(k))
        if found != expected[name]:
            wrong.append(f"{name}: {found} instead of {expected[name]}")
    return wrong


def in_threads(expected: dict[str, object], count: int = THREADS) -> list[str]:
    start = threading.Barrier(count)
    wrong: list[str] = []

    def run(number: int) -> None:
        start.wait()
        try:
            wrong.extend(compared(expected, 2 * number))
        except BaseException as error:
            wrong.append(f"thread {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def in_forks(expected: dict[str, object], count: int = 4) -> list[str]:
    """Fork while threads of this process are busy with the same operations; the children do them too."""
    stop = threading.Event()

    def busy(number: int) -> None:
        while not stop.is_set():
            with contextlib.suppress(BudgetError, TimeoutError):
                compared(expected, number)

    compared(expected, 0)
    threads = [threading.Thread(target=busy, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    wrong = []
    for number in range(count):
        time.sleep(0.1)
        child = os.fork()
        if child == 0:
            signal.alarm(90)
            try:
                os._exit(1 if compared(expected, number) or (number == 0 and in_threads(expected, 4)) else 0)
            except BaseException as error:
                os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
                os._exit(2)
        status = os.waitpid(child, 0)[1]
        if status:
            wrong.append(f"child {number} ended with status {status}")
    stop.set()
    for thread in threads:
        thread.join()
    return wrong


def of_pool(task: tuple[dict[str, object], int]) -> list[str]:
    return compared(*task)


def in_pool(expected: dict[str, object], method: str) -> list[str]:
    compared(expected, 0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        return [text for texts in pool.map(of_pool, [(expected, shift) for shift in range(2)]) for text in texts]


def crashing(k: int) -> object:
    if threading.current_thread() is not threading.main_thread() and k == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    return k


def differing(k: int) -> object:
    return [k, threading.current_thread() is threading.main_thread()]


def hanging(k: int) -> object:
    if threading.current_thread() is not threading.main_thread():
        time.sleep(10_000)
    return k


PLANTED = {"crash": crashing, "wrong": differing, "hang": hanging}


def main(mode: str, path: Path) -> int:
    if mode in PLANTED:
        OPERATIONS.clear()
        OPERATIONS["planted"] = PLANTED[mode]
        return len(in_threads({f"planted/{k}": answer("planted", k) for k in range(VARIANTS)}))
    if mode == "alone":
        answers = {f"{name}/{k}": answer(name, k) for name in OPERATIONS for k in range(VARIANTS)}
        path.write_text(json.dumps(answers))
        return 0
    expected = json.loads(path.read_text())
    wrong = (
        in_threads(expected)
        if mode == "threads"
        else in_forks(expected)
        if mode == "fork"
        else in_pool(expected, mode.removeprefix("pool-"))
    )
    for text in wrong:
        print(text[:500], file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
