"""CUDA text of a program: the frame of the kernel, with its barriers, around the text of its roles."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_name, signature
from layoutalg.codegen.pipeline.memory import placed
from layoutalg.codegen.pipeline.program import CHECK, SLOT_ALIGN, WARP, Program
from layoutalg.codegen.pipeline.roles import Writer, indented
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import (
    CLUSTER_PRELUDE,
    CP_ASYNC_PRELUDE,
    DELAY_PRELUDE,
    NAMED_PRELUDE,
    PIPELINE_PRELUDE,
)
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.verdict import Proved, Unknown
from layoutalg.proofs.pipeline.decision import verify
from layoutalg.proofs.pipeline.resources import BARRIER_BYTES
from layoutalg.targets.nvidia.registers import launch_registers

MOST_WAITS = 255

_KERNEL = """
{title}
extern "C" __global__ void {cluster}__launch_bounds__({threads}, 1) {name}(
    {signature})
{{
    const la_u32 first_byte = (la_u32)(la_aligned_shared({align}) - la_shared());
    const la_u32 shared = la_shared_address(la_shared() + first_byte), barriers = shared + {barriers};
    const la_u32 warp = la_shuffle(threadIdx.x / {warp}, 0);
    int gave_up = 0;  // the wait that did, and its iteration
    int* const failed = (int*)(la_shared() + first_byte + {failed});
    if (threadIdx.x == 0) {{
        *failed = 0;
{inits}    }}
{start}    {meet}

{roles}
    if (gave_up) *failed = gave_up;
    {meet}
    if (threadIdx.x == 0) status[blockIdx.x] = *failed ? {timeout} | *failed : {done};
}}
"""


@dataclass(frozen=True, slots=True)
class Emitted:
    """A kernel with what it was made from.

    Args:
        kernel: The kernel.
        program: The program.
        proof: The proof of its pipeline; None if it was emitted unproved.
        waits: What a status names: (role, op) of each wait that can give up.
    """

    kernel: KernelSource
    program: Program
    proof: Proved | None
    waits: tuple[tuple[str, str], ...]

    def gave_up(self, status: int) -> str:
        """Say which wait a status names; empty for success."""
        if status == STATUS_DONE:
            return ""
        wait, k = status >> 8 & 0xFF, status >> 16 & 0x7FFF
        if status & 0xFF != STATUS_TIMEOUT or not 0 < wait <= len(self.waits):
            return f"the kernel did not finish: status {status}"
        role, op = self.waits[wait - 1]
        return f"{role} gave up in iteration {k}: {op}"

    @property
    def slots(self) -> tuple[tuple[str, int, int], ...]:
        """Where buffers are, for ``mismatch``: name, first byte from the aligned base, bytes from slot to slot."""
        return tuple(
            [(name, *place) for name, place in placed(self.program.pipeline, self.kernel.arch).buffers.items()]
        )


def emit(
    program: Program,
    name: str,
    target: str = "sm_90a",
    *,
    title: str = "",
    unproved: bool = False,
    delays: int | None = None,
) -> Emitted:
    """Return the kernel of a program.

    Args:
        program: The program.
        name: Kernel symbol.
        target: Architecture.
        title: What it does, for the text.
        unproved: Whether a pipeline that is not proved may be emitted; the text then says so.
        delays: Seed of delays before every op, up to 8 microseconds, for tests; the text then says so.

    Raises:
        AdmissibilityError: LA986: the pipeline is refuted, or not proved.
        MalformedError: LA985. InfeasibleError: LA946: shared memory.
    """
    checked_name(name)
    CHECK.kind(program, Program, "program")
    if delays is not None:
        CHECK.integer(delays, "delays", 0, 1 << 32)
    memory = placed(program.pipeline, target)
    found = verify(program.pipeline, target)
    proof = found if isinstance(found, Proved) else None
    if proof is None and not unproved:
        because = found.reason if isinstance(found, Unknown) else str(found)
        raise AdmissibilityError(Diagnostic("LA986", "the pipeline is not proved", (f"kernel {name}",), because))
    writer = Writer(program, memory, delays)
    roles = "".join([writer.worker(worker, first) for worker, first in program.firsts()])
    _limited(program, writer)
    lines = title.splitlines()
    lines += ["Pipeline: " + (f"safe for every N >= {program.pipeline.least}" if proof else "NOT PROVED") + "."]
    lines += str(program.pipeline).splitlines()[1:]
    lines += [f"Every op is delayed at random, seed {delays}: for tests."] * (delays is not None)
    maps = [name for kind, name in program.parameters if kind == MAP_TYPE]
    inits = [f"        la_prefetch_tensor_map(&{name});\n" for name in maps]  # first: it takes longest
    for barrier, ring in program.pipeline.barriers:
        each = f"la_mbarrier_init(shared + {memory.barriers[barrier]} + {BARRIER_BYTES} * slot, {ring.count});"
        inits.append(f"        for (int slot = 0; slot < {ring.slots}; ++slot) {each}  // {barrier}\n")
    prelude = TENSOR_PRELUDE + PIPELINE_PRELUDE + CLUSTER_PRELUDE * (program.pipeline.cluster > 1)
    used = {op.op for op in program.pipeline.ops()}
    prelude += NAMED_PRELUDE * ("bar_arrive" in used) + CP_ASYNC_PRELUDE * ("cp_async" in used)
    prelude += DELAY_PRELUDE * (delays is not None)
    threads, cluster = program.warps * WARP, program.pipeline.cluster
    parameters = (*program.parameters, ("int*", "status"))
    text = _KERNEL.format(
        title="\n".join([f"// {line}" for line in lines]), threads=threads, name=name, signature=signature(parameters),
        align=SLOT_ALIGN, barriers=min(memory.barriers.values(), default=0), warp=WARP, failed=memory.failed,
        cluster=f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else "",
        meet="la_cluster_arrive(), la_cluster_wait();" if cluster > 1 else "__syncthreads();",
        inits="".join(inits), start=indented(program.start, 4), roles=roles, timeout=STATUS_TIMEOUT, done=STATUS_DONE,
    )  # fmt: skip
    kernel = KernelSource(
        name, prelude + program.before + text, target, threads, memory.size,
        parameters,
        barriers=tuple([(one, memory.barriers[one], ring.slots) for one, ring in program.pipeline.barriers]),
        roles=program.role_warps(),
    )  # fmt: skip
    return Emitted(kernel, program, proof, tuple(writer.waits))


def _limited(program: Program, writer: Writer) -> None:
    """Refuse more registers or waits than a kernel can have."""
    threads = program.warps * WARP
    launched = launch_registers(threads)
    asked = sum([worker.all_warps * WARP * (worker.registers or launched) for worker in program.workers])
    if any(worker.registers for worker in program.workers) and asked > launched * threads:
        rule = f"must need at most the {launched * threads} that the block is launched with"
        raise CHECK.malformed("registers of the workers", rule, asked)
    if len(writer.waits) > MOST_WAITS:
        raise CHECK.malformed(
            "pipeline", f"must have at most {MOST_WAITS} waits: a status names one", len(writer.waits)
        )
