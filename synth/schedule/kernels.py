"""Works of known kernels: a GEMM and the forward pass of attention, with sizes from layouts and costs of the target."""

from __future__ import annotations

from layoutalg.proofs.joint import JointPlan
from layoutalg.synth.schedule.work import CHECK, Dependence, Work, WorkOp, WorkRing, WorkRole
from layoutalg.synth.solving.joint_plan import joint
from layoutalg.targets.nvidia.wgmma.instructions import OPERAND_BITS
from layoutalg.targets.pipeline_costs import pipeline_costs

_ROWS = 64
"""Rows that one ``wgmma`` multiplies, and a consumer owns at least."""
_STATISTICS = 4
"""Registers of the running maximum and sum of a thread of a softmax: two rows."""


def gemm_work(
    m: int,
    n: int,
    k: int,
    dtype: str = "bf16",
    consumers: int = 2,
    target: str = "sm_90a",
    *,
    a: JointPlan | None = None,
    b: JointPlan | None = None,
) -> Work:
    """Return the work of the main loop of a GEMM: a producer loads tiles of A and B, consumers share the rows of A.

    Args:
        m: Rows of the block's tile, a multiple of 64 for each consumer.
        n: Columns.
        k: Depth of one iteration.
        dtype: Element type of A and B; accumulators are ``f32``.
        consumers: Warpgroups that multiply.
        target: Architecture.
        a: Layout of the tile (m, k); by default that of ``joint``.
        b: Layout of the tile (n, k); by default that of ``joint``.

    Example:
        >>> work = gemm_work(128, 256, 64)
        >>> [(op.name, op.unit, op.registers) for op in work.ops], work.rings[0].bytes, work.ops[1].occupancy
        ([('load', 'tma', 0), ('mma0', 'tensor', 128), ('mma1', 'tensor', 128)], 49152, 512)
    """
    costs = pipeline_costs(target)
    _split(m, consumers, "m")
    for what, value in (("n", n), ("k", k)):
        CHECK.integer(value, what, 8, 1 << 12)
    a = _tile((m, k), dtype, "wgmma.A", target) if a is None else a
    b = _tile((n, k), dtype, "wgmma.B", target) if b is None else b
    size = a.bytes + b.bytes
    rows = m // consumers
    ops = [WorkOp("load", "tma", *costs.load(size / 1024, a.issues + b.issues), variable=True, role="producer")]
    held = rows * n // 128
    for number in range(consumers):
        ops.append(WorkOp(f"mma{number}", "tensor", *costs.mma(rows, n, k, dtype), 4, held, role=f"consumer{number}"))
    edges = [Dependence("load", f"mma{number}", ring="tile") for number in range(consumers)]
    name = f"gemm m{m} n{n} k{k} {dtype}"
    return Work(name, tuple(ops), tuple(edges), (WorkRing("tile", size),), _roles(consumers), costs.crossing)


def attention_work(
    rows: int = 128,
    keys: int = 128,
    head: int = 128,
    dtype: str = "bf16",
    consumers: int = 2,
    target: str = "sm_90a",
    *,
    pingpong: bool = True,
) -> Work:
    """Return the work of the forward pass of attention: one tile of keys and values an iteration, Q stays.

    Each consumer multiplies its rows of Q by K, takes the softmax in registers (maximum, exponential, conversion with
    the rescaling of its output), and multiplies by V. The consumers share the tensor cores, so that one multiplies
    while the other is in its softmax (ping-pong).

    Args:
        rows: Rows of Q of the block, a multiple of 64 for each consumer.
        keys: Keys of one iteration.
        head: Size of a head.
        dtype: Element type of Q, K, V and of the probabilities.
        consumers: Warpgroups that compute.
        target: Architecture.
        pingpong: Whether consumers take turns.

    Example:
        >>> work = attention_work()
        >>> len(work.ops), work.by_name["exp0"].occupancy, [(ring.name, ring.bytes) for ring in work.rings]
        (12, 512, [('keys', 32768), ('values', 32768), ('turn0', 0), ('turn1', 0)])
    """
    costs = pipeline_costs(target)
    _split(rows, consumers, "rows")
    for what, value in (("keys", keys), ("head", head)):
        CHECK.integer(value, what, 16, 257)
    mine = rows // consumers
    scores, held = mine * keys, mine * head // 128
    packed = OPERAND_BITS[CHECK.choice(dtype, "dtype", costs.macs)]
    layouts = {
        "keys": _tile((keys, head), dtype, "wgmma.B", target),
        "values": _tile((keys, head), dtype, "wgmma.B", target),
    }
    ops = [
        WorkOp(f"load_{name}", "tma", *costs.load(plan.bytes / 1024, plan.issues), variable=True, role="producer")
        for name, plan in layouts.items()
    ]
    edges: list[Dependence] = []
    for c in range(consumers):
        cycles = {
            "max": -(-scores // costs.compare_lanes) + -(-scores // costs.float_lanes),
            "exp": -(-scores // costs.sfu_lanes),
            "scale": -(-scores // costs.convert_lanes) + -(-mine * head // costs.float_lanes),
        }
        ops += [
            WorkOp(f"qk{c}", "tensor", *costs.mma(mine, keys, head, dtype), 4, 0, scores // 128, role=f"consumer{c}"),
            WorkOp(f"max{c}", "cuda", cycles["max"], cycles["max"] + 32, registers=_STATISTICS),
            WorkOp(f"exp{c}", "sfu", cycles["exp"], cycles["exp"] + 32),
            WorkOp(f"scale{c}", "cuda", cycles["scale"], cycles["scale"] + 32, result=scores * packed // 32 // 128),
            WorkOp(f"pv{c}", "tensor", *costs.mma(mine, head, keys, dtype), warps=4, registers=held),
        ]
        links = [("qk", "max", 0), ("qk", "exp", 0), ("qk", "scale", 0), ("max", "exp", 0), ("exp", "scale", 0)]
        links += [("scale", "pv", 0), ("max", "max", 1), ("pv", "scale", 1)]
        edges += [Dependence(f"{one}{c}", f"{other}{c}", far) for one, other, far in links]
        edges += [Dependence("load_keys", f"qk{c}", ring="keys"), Dependence("load_values", f"pv{c}", ring="values")]
    rings = [WorkRing(name, plan.bytes) for name, plan in layouts.items()]
    for c in range(consumers if pingpong and consumers > 1 else 0):
        rings.append(WorkRing(f"turn{c}", 0))
        edges.append(Dependence(f"max{c}", f"qk{(c + 1) % consumers}", int(c == consumers - 1), f"turn{c}"))
    name = f"attention {rows} rows, {keys} keys, head {head}, {dtype}"
    return Work(name, tuple(ops), tuple(edges), tuple(rings), _roles(consumers), costs.crossing)


def _roles(consumers: int) -> tuple[WorkRole, ...]:
    return (WorkRole("producer"), *[WorkRole(f"consumer{number}") for number in range(consumers)])


def _split(rows: int, consumers: int, what: str) -> None:
    CHECK.integer(consumers, "consumers", 1, 8)
    CHECK.integer(rows, what, _ROWS, 1 << 12)
    if rows % (_ROWS * consumers):
        raise CHECK.malformed(what, f"must be a multiple of {_ROWS} for each of {consumers} consumers", rows)


def _tile(shape: tuple[int, int], dtype: str, consumer: str, target: str) -> JointPlan:
    return joint(shape, dtype, [consumer], target)
