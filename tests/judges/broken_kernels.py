"""Small kernels with one mistake each: the text of a broken pipeline, or broken text; and what a run of one shows."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from judges.pipeline_breaks import Break, breaks, only_named
from layoutalg.codegen import hostsim, matmul
from layoutalg.codegen.complaints import CompileError
from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.host_report import Report
from layoutalg.codegen.kernels import attention, copy, gemm, transpose_ring
from layoutalg.codegen.kernels.gemm_forms import Form
from layoutalg.codegen.kernels.ring import tile_plan
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import Emitted, emit
from layoutalg.codegen.pipeline.program import Program
from layoutalg.codegen.pipeline.reread import Launch, mismatch
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.pipeline.document import Pipeline

Array = npt.NDArray[Any]
SEEDS, DELAYS = range(6), range(1, 7)
NO_TEXT = "does not compile"


@dataclass(frozen=True)
class Case:
    """A small kernel with what it is given and what it must give.

    Args:
        name: Its name.
        program: What it is made from.
        maps: Descriptors of the arrays.
        inputs: The arrays, the last one is written.
        wanted: What the last one must hold; None: what the right kernel makes of it.
        trips: Iterations of each role in block 0.
        turns: In how many turns.
        blocks: Blocks.
    """

    name: str
    program: Program
    maps: tuple[bytes, ...]
    inputs: tuple[Array, ...]
    wanted: Array | None
    trips: tuple[tuple[str, int], ...]
    turns: int = 1
    blocks: int = 1

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return self.program.pipeline.cluster

    def arguments(self, addresses: Sequence[int], status: object) -> list[Any]:
        """The arguments of a launch."""
        placed = iter([place_map(raw, at) for raw, at in zip(self.maps, addresses, strict=True)])
        kinds = [kind for kind, _ in self.program.parameters]
        return [*[next(placed) if kind == MAP_TYPE else self.blocks for kind in kinds], status]


def _spied(module: ModuleType, make: Callable[[], Any]) -> tuple[Any, Program]:
    with mock.patch.object(module, "emit", wraps=emit) as spy:
        made = make()
    return made, spy.call_args.args[0]


def placed(array: Array) -> Array:
    """A copy at a multiple of 256 bytes."""
    room = np.zeros(array.nbytes + 256, dtype=np.uint8)
    first = -room.ctypes.data % 256
    there = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    there[...] = array
    return there


def _moved(
    module: ModuleType, make: Callable[[], Any], name: str, wanted: Callable[[Array], Array], shape: Any
) -> Case:
    made, program = _spied(module, make)
    source = np.random.default_rng(3).integers(1, 1 << 32, shape, dtype=np.uint32)

    given = wanted(source)
    trips = tuple([(role.name, made.blocks) for role in program.pipeline.roles])
    return Case(name, program, made.maps, (source, np.zeros_like(given)), given, trips)


def _product(name: str, form: Form, shape: tuple[int, int, int], blocks: int = 1) -> Case:
    made, program = _spied(gemm, lambda: gemm.gemm_kernel(shape, form=form))
    m, n, k = shape
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
    bits = (a @ b.T).view(np.uint32)
    wanted = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    halves = [(each.view(np.uint32) >> 16).astype(np.uint16) for each in (a, b)]

    turns = made.blocks // blocks
    steps = {"load": turns * -(-k // 64), "math": turns * -(-k // 64), "store": turns * made.form.parts}
    trips = tuple([(role.name, steps[role.name.rstrip("0123456789")]) for role in program.pipeline.roles])
    return Case(name, program, made.maps, (*halves, np.zeros_like(wanted)), wanted, trips, turns, blocks)


def _attention(name: str, consumers: int, **ways: bool) -> Case:
    """Its result is that of the right kernel: exponentials are rounded otherwise on every machine."""
    shape, tile = (1, 64 * consumers, 448, 64), (64 * consumers, 64)
    made, program = _spied(
        attention, lambda: attention.attention_kernel(shape, tile=tile, consumers=consumers, stages=2, **ways)
    )
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal((1, rows, 64)).astype(np.float32) for rows in (shape[1], shape[2], shape[2])]
    halves = [(each.view(np.uint32) >> 16).astype(np.uint16) for each in arrays]
    trips = tuple([(role.name, shape[2] // tile[1]) for role in program.pipeline.roles])
    return Case(name, program, made.maps, (*halves, np.zeros_like(halves[0])), None, trips, 1, made.blocks)


CASES: dict[str, Callable[[], Case]] = {
    "copy": lambda: _moved(copy, lambda: copy.copy_kernel((56, 64), "u32", tile=(8, 64), stages=2), "copy",
                           lambda x: x, (56, 64)),
    "copy, behind 2": lambda: _moved(copy, lambda: copy.copy_kernel((88, 64), "u32", tile=(8, 64), stages=4),
                                     "copy, behind 2", lambda x: x, (88, 64)),
    "transpose": lambda: _moved(
        transpose_ring, lambda: transpose_ring.transpose_ring_kernel((224, 32), "u32", threads=64), "transpose",
        lambda x: np.ascontiguousarray(x.T), (224, 32)),
    "product": lambda: _product("product", Form(64, 64, 1, stages=2), (64, 128, 320)),
    "product, behind": lambda: _product("product, behind", Form(64, 64, 1, stages=3, behind=1), (64, 128, 448)),
    "product, two consumers": lambda: _product("product, two consumers", Form(128, 64, 2, stages=2), (128, 128, 320)),
    "product, cluster": lambda: _product("product, cluster", Form(64, 64, 1, stages=2, cluster=2), (128, 128, 320), 2),
    "attention": lambda: _attention("attention", 1),
    "attention, behind": lambda: _attention("attention, behind", 1, ahead=False),
    "attention, in turn": lambda: _attention("attention, in turn", 2, alternate=True),
}  # fmt: skip
"""Small kernels whose rings go round at least twice."""


STAGES = (2, 3, 4, 6, 8)


def _pipelines() -> Iterator[tuple[str, Pipeline]]:
    for stages in STAGES:
        yield f"copy {stages} stages", copy.copy_pipeline(stages, max(1, stages // 2), 2048, 2048)
    for stages, leaving in ((2, 2), (1, 1), (3, 1), (4, 2), (8, 4)):
        yield f"transpose {stages} stages, {leaving} leaving", transpose_ring.turn_pipeline(stages, leaving, 2, 4096)
    for cluster, behind in ((1, 0), (1, 1), (2, 0), (2, 1)):
        for consumers in (1, 2, 3):
            for stages in (1, *STAGES) if cluster == 2 and not behind else STAGES:
                pipeline = gemm.matmul_pipeline(stages, consumers, 8192, 8192, 8192, cluster, behind)
                kind = f"product{', behind' * behind}{', cluster' * (cluster > 1)}"
                yield f"{kind} {stages} stages {consumers} consumer{'s' * (consumers > 1)}", pipeline
    for ahead, alternate in ((True, False), (False, False), (True, True)):
        for stages, consumers in ((2, 1), (2, 2), (3, 2), (2, 3)):
            if consumers > alternate:
                ways = {"ahead": ahead, "alternate": alternate}
                pipeline = attention.attention_pipeline(stages, consumers, 8192, 8192, 8192, **ways)
                kind = f"attention{', behind' * (not ahead)}{', in turn' * alternate}"
                yield f"{kind} {stages} stages {consumers} consumer{'s' * (consumers > 1)}", pipeline
    for products in (1, 4):
        plan = tile_plan((64, 64), "bf16", (64, 64), "128B", "sm_90a", "load")
        yield f"tile {products} products", matmul.tile_pipeline(plan, plan, products)


PIPELINES = dict(_pipelines())
"""The pipelines of generated kernels, the smallest of each family first."""


@functools.cache
def case(name: str) -> Case:
    """A small kernel by its name."""
    return CASES[name]()


# ------------------------------------------------------------------------------------------------------------- mistakes


@dataclass(frozen=True)
class Broken:
    """A kernel with one mistake: what it was emitted from, or its text.

    Args:
        case: Name of the kernel.
        bug: The class.
        what: The mistake.
        emitted: The kernel.
        text: Whether only the text is wrong, and the pipeline right.
    """

    case: str
    bug: str
    what: str
    emitted: Emitted
    text: bool = False

    @property
    def hidden(self) -> str:
        """Why no run on the CPU shows it; empty if one should."""
        if self.text:
            known = next((why for what, why in HIDDEN.items() if self.what.startswith(what)), "")
            return known or (AT_END if self._is_last() else "")
        if self.unread:
            return self.unread
        document = self.emitted.program.pipeline.to_json()
        if document.get("cluster", 1) > 1:  # too many orders of events: one block stands for it
            alone = breaks(case("product").program.pipeline.to_json(), together=True)
            document = next((one.document for one in alone if one.what == self.what), document)
        if only_named(document):
            return "only the named phase is another"
        for what, why in RARE.items():
            if self.what.endswith(what):
                return why
        return AT_END if ".post[" in self.what and " arrive " in self.what else ""

    @property
    def unread(self) -> str:
        """Why the text does not differ from the right one; empty if it does."""
        if self.text:
            return next((why for what, why in UNREAD.items() if self.what.startswith(what) and self._is_unread()), "")
        registers = "|".join(map(re.escape, case(self.case).program.pipeline.registers))
        if registers and re.search(rf"mma_wait : behind (read|write)$| ({registers}): before mma_wait$", self.what):
            return "the use of registers is no event: only the proof sees that it comes before the wait"
        same = _statements(self.emitted) == _statements(right(self.case))
        return "the text is the same: it states the op elsewhere, or not at all" if same else ""

    def _is_unread(self) -> bool:
        """Whether no thread's ordinary accesses, and no other block, depend on the change."""
        if self.bug == "B17":
            return case(self.case).cluster == 1
        pipeline = case(self.case).program.pipeline
        ops = [op for role in pipeline.roles for _, _, op in role.ops()]
        return not any(op.op == "read" and op.buf not in pipeline.registers for op in ops)

    def _is_last(self) -> bool:
        """Whether no wait for a barrier comes behind the changed line."""
        lines = right(self.case).kernel.text.splitlines()
        return not any("la_wait_phase" in line for line in lines[int(self.what.rpartition(" ")[2]) :])


def changed(program: Program, broken: Break) -> Program:
    """Return the program of a broken pipeline: the text of each op moves with it."""
    pipeline = Pipeline.from_json(broken.document)
    workers = []
    for worker in program.workers:
        loops = []
        for loop in worker.loops:
            bodies, role = dict(loop.bodies), worker.names(loop)[0]
            now = {
                f"{part}[{place}]": f"{was[0]}[{was[1]}]"
                for (name, part, place), was in broken.places.items()
                if name == role
            }
            kept = {place: bodies[was] for place, was in now.items() if was in bodies}
            first = {was: place for place, was in reversed(now.items())}
            again = {place: f"{{\n{text}\n}}" for place, text in kept.items() if first[now[place]] != place}
            loops.append(replace(loop, bodies=tuple((kept | again).items())))
        workers.append(replace(worker, loops=tuple(loops)))
    return replace(program, pipeline=pipeline, workers=tuple(workers))


def broken_pipelines(name: str, every: int = 1) -> Iterator[tuple[Break, Broken | str]]:
    """Yield mistakes in a case's pipeline and their kernels, or why there is none."""
    for one in list(breaks(case(name).program.pipeline.to_json(), together=True))[::every]:
        yield one, broken_kernel(name, one)


def broken_kernel(name: str, one: Break) -> Broken | str:
    """The kernel of a case with a mistake in its pipeline, or why there is none."""
    if one.renames:
        return "the op's text goes on with the buffer that it names itself"
    try:
        return Broken(name, one.bug, one.what, emit(changed(case(name).program, one), "broken", unproved=True))
    except LayoutError as error:
        return f"{error.diagnostic.code}: {error.diagnostic.because}"


_MEET = r"(?:__syncthreads\(\);|la_cluster_arrive\(\), la_cluster_wait\(\);)"
_WAIT = r"la_wait_phase(?:_cluster)?\((barriers[^;]*), (\d+), (k\w*|0), gave_up\);"
_REMOTE = r"la_arrive_remote(?:_relaxed)?\(([^;]*), [^;]*\);"
_INIT = "slot < {}; ++slot) la_mbarrier_init"
TEXTS: list[tuple[str, str, str, str]] = [
    ("B13", "no thread waits for the initialisation", rf"\n    {_MEET}\n\n", "\n\n"),
    ("B13", "a barrier less is initialised", r"slot < (\d+); \+\+slot\) la_mbarrier_init", _INIT.format(r"\1 - 1")),
    ("B20", "no barrier of the role", r"la_role_barrier\([^;]*\);", ";"),
    ("B20", "a barrier of the block in a role", r"la_role_barrier\([^;]*\);", "__syncthreads();"),
    ("B9", "a warp arrives before all of its lanes are through", r"la_sync_warp\(\);\n *if \(leader\)", "if (leader)"),
    ("B5", "every thread arrives", r"if \((?:leader|issuer)\) (la_arrive)", r"\1"),
    ("B15", "no fence before multiplies", r"la_wgmma_fence\(\);", ";"),
    ("B21", "a remote arrival at the own barrier", _REMOTE, r"la_arrive(\1);"),
    ("B21", "waits look once", _WAIT, r"la_wait_parity(\1);"),
    ("B14", "another thread waits for the stores", r"if \(issuer\) (la_store_wait_read)", r"if (t == 33) \1"),
    ("B17", "the block does not meet at its end", r"\*failed = gave_up;\n    [^\n]*\n", "*failed = gave_up;\n"),
]
"""Class, what, and what text becomes which."""


AT_END = "an arrival behind the last wait: nobody hears of it"
UNREAD = {
    "a warp arrives before": "the lanes of a warp leave the wait for multiplies together",
    "the block does not meet at its end": "only the status word depends on it",
}
RARE = {
    "arrive empty: index +1": "hangs only if the loader is late by a whole iteration when it first waits",
    "arrive empty_k: index -1": "hangs only if the loader is late by a whole iteration when it waits",
    "wait turn0: missing": "turns order consumers for speed: only the named phases of turns go wrong",
    "wait full_q: behind mma": "the text of both operands is that of the second",
}
HIDDEN = {
    "a warp arrives before": "the lanes of a warp leave the wait for multiplies together",
    "waits look once": "on the CPU a wait is over or waits for good: there is no time",
    "the block does not meet at its end": "the thread that writes the status word is the last one anyway, or a block "
    "has gone whose memory is still there",
}
"""What the CPU cannot show, and why."""


def _statements(made: Emitted) -> str:
    """The text without its name and comments."""
    return re.sub(r"//.*", "", made.kernel.text).replace(made.kernel.name, "")


def broken_texts(name: str) -> Iterator[Broken]:
    """Yield the case's kernel with one place of its text changed."""
    made = right(name)
    text = made.kernel.text
    begin = text.index('extern "C" __global__')
    for bug, what, pattern, into in TEXTS:
        for found in re.finditer(pattern, text[begin:]):
            wrong = text[: begin + found.start()] + found.expand(into) + text[begin + found.end() :]
            if "look once" in what:
                wrong = wrong.replace("LA_SPIN_LIMIT (1 << 18)", "LA_SPIN_LIMIT 1")
            line = text[: begin + found.start()].count("\n") + 1
            yield Broken(
                name, bug, f"{what}, line {line}", replace(made, kernel=replace(made.kernel, text=wrong)), True
            )


@functools.cache
def right(name: str, delays: int | None = None) -> Emitted:
    """The kernel of a case, with or without delays."""
    return emit(case(name).program, "right", delays=delays)


# ----------------------------------------------------------------------------------------------------------------- runs


def on_the_cpu(of: Case, emitted: Emitted, seed: int) -> str:
    """What a run shows: a fault, the wait that gave up, wrong numbers; nothing if it is right."""
    report, told, result = _run(of, emitted, seed)
    if report.fault:
        return f"fault: {hostsim.FAULTS[report.fault]}"
    if told:
        return f"wait: {told}"
    return "" if np.array_equal(result, wanted(of.name)) else "numbers"


def _run(of: Case, emitted: Emitted, seed: int) -> tuple[Report, str, Array]:
    """The report of a run, the wait that its status names, and the result."""
    arrays = [placed(each) for each in of.inputs]
    status = np.zeros(of.blocks, dtype=np.int32)
    regions = [(each.ctypes.data, each.nbytes) for each in arrays]
    report = hostsim.examine(
        emitted.kernel, of.arguments([each.ctypes.data for each in arrays], status), blocks=of.blocks,
        cluster=of.cluster, seed=seed, regions=regions,
    )  # fmt: skip
    return report, next((word for word in map(emitted.gave_up, map(int, status)) if word), ""), arrays[-1]


@functools.cache
def wanted(name: str) -> Array:
    """What a case must give on the CPU."""
    of = case(name)
    return _run(of, right(name), 0)[2] if of.wanted is None else of.wanted


def shown(made: Broken, seeds: Sequence[int] = SEEDS) -> str:
    """What the first run shows that shows anything, also with delays; some ops leave others without their values."""
    of, program = case(made.case), made.emitted.program
    try:
        for seed in seeds:
            if found := on_the_cpu(of, made.emitted, seed):
                return found
        for delays in () if made.text else DELAYS:
            late = emit(program, "broken", unproved=True, delays=delays)
            if found := next((found for seed in seeds[:3] if (found := on_the_cpu(of, late, seed))), ""):
                return found
    except CompileError:
        return NO_TEXT
    return ""


def unlike(made: Broken) -> str:
    """Where a kernel does something else than the right pipeline."""
    of = case(made.case)
    kernel = made.emitted.kernel
    given = [of.blocks if kind == "int" else None for kind, _ in kernel.parameters]
    each = [(f"{name}@{rank}", many) for name, many in of.trips for rank in range(of.cluster)]
    launch = Launch(given, 0, of.blocks, (*of.trips, *each), of.turns)
    try:
        found = mismatch(kernel, of.program.pipeline, lambda _: launch, trips=[1])
    except LayoutError as error:
        return f"{error.diagnostic.code}: {error.diagnostic.because}"
    return f"{found.rule}: {found}" if found else ""
