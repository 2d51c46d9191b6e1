"""What a pipeline needs of a thread block or a cluster, against what its target has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from layoutalg.proofs.pipeline.document import LANES, Pipeline, Role
from layoutalg.proofs.pipeline.ops import MOST_BYTES
from layoutalg.targets.nvidia.registers import SETMAXNREG
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import LIMITS

WARPGROUP = 4
"""warps: that multiply and set their registers together (PTX ISA 9.1, 9.7.15 and 9.7.19.5)"""
BARRIER_BYTES = 8


def infeasible(pipeline: Pipeline, target: str) -> tuple[str, str] | None:
    """Return what no hardware or this target has no room for: in words, and the barrier or buffer."""
    return next(_exceeded(pipeline, target), None)


def _exceeded(pipeline: Pipeline, target: str) -> Iterator[tuple[str, str]]:
    for name, slots in pipeline.rings.items():
        if slots < 1:
            yield f"{name} has no slots", name
    for name, barrier in pipeline.barriers:
        if not 1 <= barrier.count <= MOST_BYTES:
            yield f"{barrier.count} arrivals per phase; a barrier counts 1 to {MOST_BYTES}", name
    has = limits_of(lookup(target).arch)
    total = sum([ring.slots * ring.bytes for name, ring in pipeline.buffers if name not in pipeline.unfenced])
    total += sum([BARRIER_BYTES * ring.slots for _, ring in pipeline.barriers])
    most = lookup(target).shared_kib[0] * 1024
    if total > most:
        yield f"{total} bytes of shared memory; a block of {target} has {most}", ""
    tensor = 4 * has.get("tmem_lanes", 0) * has.get("tmem_columns", 0)  # a column of a lane is a word
    inside = sum([ring.slots * ring.bytes for name, ring in pipeline.buffers if name in pipeline.tensors])
    if inside > tensor > 0:
        yield f"{inside} bytes of tensor memory; an SM of {target} has {tensor}", ""
    for role in pipeline.roles:
        names = {op.buf for one in pipeline.roles if role.name in (one.name, one.threads_of) for _, _, op in one.ops()}
        inside = sum([ring.slots * ring.bytes for name, ring in pipeline.buffers if name in names & pipeline.registers])
        each, used = -(-inside // (4 * LANES * max(1, role.warps))), has["registers_per_thread"]
        room = min(role.registers or used, used)
        if role.warps and each > room:
            yield f"{each} registers of each thread of {role.name} for its buffers; it has {room}", ""
    ctas = has.get("cluster_blocks", 1)
    if pipeline.cluster > ctas:
        yield f"{pipeline.cluster} CTAs in a cluster; {target} has {ctas}, portably", ""
    if pipeline.threads > has["threads_per_block"]:
        yield f"{pipeline.threads} threads; a block of {target} has {has['threads_per_block']}", ""
    named = has.get("named_barriers", 0)
    numbers = [op.id for op in pipeline.ops() if op.is_named and op.id >= named]
    if numbers:
        yield f"named barrier {numbers[0]}; a block of {target} has {named}, from 0 on", ""
    if any(role.registers for role in pipeline.roles):
        yield from [(what, "") for what in _registers(pipeline, target, has)]


@cache
def limits_of(arch: str) -> Mapping[str, int]:
    """Return the limits of a target that are numbers."""
    return {name: fact.value for name, fact in LIMITS[arch].items() if isinstance(fact.value, int)}


def _registers(pipeline: Pipeline, target: str, has: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with the registers that the roles set."""
    if "setmaxnreg_step" not in has:
        yield f"registers set by a role; {target} has no setmaxnreg"
        return
    for role in pipeline.roles:
        if role.registers and role.registers not in SETMAXNREG:
            takes = f"{SETMAXNREG[0]} to {SETMAXNREG[-1]} in steps of {SETMAXNREG.step}"
            yield f"{role.registers} registers of {role.name}; setmaxnreg takes {takes}"
    for cta in range(pipeline.cluster):
        roles = pipeline.roles_of(cta)
        unknown = [role.name for role in roles if not role.warps]
        if unknown:
            yield f"registers set by a role, but {unknown[0]} states no warps"
            return
        for first, group in _groups(roles):
            if len({role.registers for role in group}) > 1 or (first + WARPGROUP > sum([role.warps for role in roles])):
                names = ", ".join(dict.fromkeys(role.name for role in group))
                warps = f"warps {first} to {first + WARPGROUP - 1}"
                yield f"registers set by {names}; {warps} are no warpgroup that sets one number together"
        # not ``launch_registers``, by which planners count: this is the second reading
        launched = min(has["registers_per_block"] // pipeline.threads, SETMAXNREG[-1])
        launched -= launched % SETMAXNREG.step
        asked = sum([role.warps * (role.registers or launched) for role in roles]) * has["lanes"]
        if asked > launched * pipeline.threads:
            told = f"{asked} registers after setmaxnreg; {pipeline.threads} threads start with {launched} each, "
            yield f"{told}{launched * pipeline.threads} in all, and wait for more for ever"


def _groups(roles: list[Role]) -> Iterator[tuple[int, list[Role]]]:
    """Yield the first warp and the roles of the warps of each warpgroup in which some role sets its registers."""
    warps = [role for role in roles for _ in range(role.warps)]
    for first in range(0, len(warps), WARPGROUP):
        group = warps[first : first + WARPGROUP]
        if any(role.registers for role in group):
            yield first, group
