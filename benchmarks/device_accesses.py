"""Accesses of registers to shared memory: admitted plans, fragments of matrix instructions, turns of the banks.

*matrices*: random layouts (padded, swizzled, linear over F2, rows in random order) that are admitted are moved by the
plan's own instructions and addresses, all bytes random, and every byte of every register (of shared memory, for stores)
is compared with what the layout asks for. *fragments*: every instruction on random integers, read through the
fragments. *banks*: with ``ncu`` on the machine its counters, launch by launch, of single accesses: every kind with
lanes that are linear over F2 or random, narrow matrices, inactive lanes; and the cycles of many equal accesses in a
row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from device import Fault, Launch, Run, cuda
from instruments import fragment_checks as checks
from instruments.bank_probe import KINDS, PROBE_BYTES, bank_probe_kernel

import layoutalg as la
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.targets.layouts.nvidia_instructions import MMA
from layoutalg.targets.nvidia.accesses import access_form

MOVES = [f"{kind}matrix.x{count}{trans}" for kind in ("ld", "st") for count in (1, 2, 4) for trans in ("", ".trans")]
VECTORS = [
    f"{kind}.shared.{suffix}" for kind in ("ld", "st") for suffix in ("b8", "b16", "b32", "b64", "v2.b32", "v4.b32")
]
WIDTHS = {"u8": 1, "f16": 2, "f32": 4, "f64": 8}
SMEM_BYTES = 98304
REPEATS = 128

RECORDED_N = (8, 24, 64)
POISON = 0xEE

_MOVE = """
extern "C" __global__ void __launch_bounds__(32) {name}({image_type}* image, const int* addresses,
    {words_type}* words, int count, int bytes)
{{
    const la_u32 base = la_shared_address(la_shared());
    for (int i = threadIdx.x; i < bytes; i += 32) la_shared()[i] = {initial};
    __syncwarp();
    for (int n = 0; n < count; ++n) {{
        const la_u32 address = base + addresses[32 * n + threadIdx.x];
        la_u32 w[{words}];
        for (int v = 0; v < {words}; ++v) w[v] = words[(32 * n + threadIdx.x) * {words} + v];
        {statement}
        for (int v = 0; v < {words}; ++v) {out}
    }}
    __syncwarp();
    {back}
}}
"""

_CLOCK = """
extern "C" __global__ void __launch_bounds__(32) {name}(const int* addresses, la_u32* words, int* cycles)
{{
    const int own = addresses[threadIdx.x];
    const la_u32 address = la_shared_address(la_shared()) + (own < 0 ? 0 : own);
    la_u32 w[{words}];
    for (int v = 0; v < {words}; ++v) w[v] = words[threadIdx.x * {words} + v];
    int first = 0, last = 0;
    for (int round = 0; round < {rounds}; ++round) {{
        __syncwarp();
        first = clock();
        if ({guard}) {{
#pragma unroll
            for (int n = 0; n < {repeats}; ++n) {statement}
        }}
        __syncwarp();
        last = clock();
    }}
    for (int v = 0; v < {words}; ++v) words[threadIdx.x * {words} + v] = w[v];
    if (threadIdx.x == 0) cycles[0] = last - first;
}}
"""


def statement(name: str) -> tuple[str, int]:
    """Return the inline assembly of an access of ``w`` at ``address``, and its 32-bit words."""
    form = access_form(name)
    matrix = form.matrix_rows > 0
    bits = 32 * int(name.split(".x")[1][0]) if matrix else form.row_bits
    words = max(1, bits // 32)
    slots = ", ".join(f"%{v + form.store}" for v in range(words))
    if matrix:
        opcode, group = name.replace("matrix.", "matrix.sync.aligned.m8n8.") + ".shared.b16", f"{{{slots}}}"
    else:
        suffix = f"v{words}.b32" if words > 1 else "b32" if bits == 32 else f"u{bits}"
        opcode, group = f"{name[:2]}.shared.{suffix}", f"{{{slots}}}" if words > 1 else slots
    operands = ", ".join(f'"{"" if form.store else "="}r"(w[{v}])' for v in range(words))
    if form.store:
        return f'asm volatile("{opcode} [%0], {group};" :: "r"(address), {operands} : "memory");', words
    return f'asm volatile("{opcode} {group}, [%{words}];" : {operands} : "r"(address) : "memory");', words


def symbol(name: str) -> str:
    """Return a C name for an instruction."""
    return name.replace(".", "_")


def move_kernel(name: str) -> KernelSource:
    """Return the kernel (image, addresses, words, count, bytes) that executes an instruction ``count`` times."""
    text, words = statement(name)
    store = access_form(name).store
    body = _MOVE.format(
        name=f"la_move_{symbol(name)}", words=words, statement=text,
        image_type="unsigned char" if store else "const unsigned char",
        words_type="const la_u32" if store else "la_u32",
        initial="0xEE" if store else "image[i]",
        out=";" if store else f"words[(32 * n + threadIdx.x) * {words} + v] = w[v];",
        back="for (int i = threadIdx.x; i < bytes; i += 32) image[i] = la_shared()[i];" if store else "",
    )  # fmt: skip
    parameters = (
        ("unsigned char*" if store else "const unsigned char*", "image"), ("const int*", "addresses"),
        ("const la_u32*" if store else "la_u32*", "words"), ("int", "count"), ("int", "bytes"),
    )  # fmt: skip
    return KernelSource(f"la_move_{symbol(name)}", PRELUDE + body, "sm_90a", 32, SMEM_BYTES, parameters)


def clock_kernel(name: str, repeats: int = REPEATS) -> KernelSource:
    """Return the kernel (addresses, words, cycles): cycles of ``repeats`` accesses; a negative address is no access."""
    text, words = statement(name)
    guard = "true" if access_form(name).matrix_rows else "own >= 0"
    label = f"la_clock{repeats}_{symbol(name)}"
    rounds = 4 if repeats > 1 else 1
    body = _CLOCK.format(name=label, words=words, statement=text, repeats=repeats, rounds=rounds, guard=guard)
    parameters = (("const int*", "addresses"), ("la_u32*", "words"), ("int*", "cycles"))
    return KernelSource(label, PRELUDE + body, "sm_90a", 32, SMEM_BYTES, parameters)


def tile_of(rng: random.Random, size: int) -> tuple[Any, tuple[int, int]]:
    """Return a random layout of a tile that often has whole rows, and its extents."""
    rows, columns = rng.choice([8, 16, 24, 32, 64]), rng.choice([16, 32, 48, 64])
    how, unit = rng.randrange(5), max(1, 16 // size)
    if how == 0:
        return la.CuteLayout((rows, columns), (columns + unit * rng.randrange(4), 1)), (rows, columns)
    if how == 1:
        return la.CuteLayout((rows, columns), (1, -(-rows // unit) * unit + unit * rng.randrange(3))), (rows, columns)
    if how == 2:
        base = unit.bit_length() - 1
        text = f"Sw<{rng.choice([1, 2, 3])},{base},{rng.choice([3, 4])}> o 0 o (64,64):(64,1)"
        return la.parse(text), (64, 64)
    if how == 3:
        order = rng.sample(range(2 * rows), rows)
        step = -(-columns // unit) * unit + unit * rng.randrange(3)
        return np.array([[at * step + column for column in range(columns)] for at in order]), (rows, columns)
    low = unit.bit_length() - 1
    bits = list(range(low, 10))
    rng.shuffle(bits)
    columns_of = [1 << bit for bit in range(low)] + [1 << bit for bit in bits]
    for place in range(low, 10):
        columns_of[place] ^= sum(1 << bit for bit in bits[place - low + 1 :] if rng.random() < 0.4)
    bases = {"dim0": [(x,) for x in columns_of[5:]], "dim1": [(x,) for x in columns_of[:5]]}
    return la.LinearLayout.from_bases(bases, {"offset": 1024}), (32, 32)


def table_of(layout: Any, extents: tuple[int, int]) -> np.ndarray:
    """The element offsets of a tile."""
    return layout if isinstance(layout, np.ndarray) else np.asarray(layout.table()).reshape(extents, order="F")


def admitted_plan(
    rng: random.Random, consumer: str, dtype: str, **options: Any
) -> tuple[Any, Any, tuple[int, int]] | None:
    """A plan for a random layout, the layout and its extents; None where it is refused."""
    layout, extents = tile_of(rng, WIDTHS[dtype])
    answer = la.admissible(layout, consumer, dtype=dtype, tile=extents, **options)
    return (answer.descriptor, layout, extents) if isinstance(answer, la.Admitted) else None


def move_launch(kernel: KernelSource, name: str, plan: Any, width: int, rng: np.random.Generator) -> Launch:
    """The launch of a plan of loads or stores; a lane keeps so many bytes of an instruction."""
    form = access_form(name)
    supplied = np.asarray(plan.addresses.table()).reshape(form.addresses, -1, order="F")
    count = supplied.shape[1]
    addresses = np.zeros((count, 32), dtype=np.int32)
    addresses[:, : form.addresses] = supplied.T
    requested = np.asarray(plan.requested.table()).reshape(-1, 32, count, order="F")
    step = min(plan.element_bits, form.unit_bits) // 8
    places = (requested.transpose(2, 1, 0)[..., None] + np.arange(step)).reshape(count, 32, -1)
    size, reach = places.shape[-1], -(-int(places.max() + 1) // 16) * 16
    facts = {"instruction": name, "kind": "admitted"}
    registers = np.zeros((count, 32, width), dtype=np.uint8)
    if form.store:
        registers = rng.integers(0, 256, registers.shape, dtype=np.uint8)
        image = np.full(reach, POISON, dtype=np.uint8)
        image[places] = registers[..., :size]
        given = [np.zeros(reach, dtype=np.uint8), addresses, registers, count, reach]
        return Launch(f"move {name}", kernel, given, (0,), expected={0: image}, facts=facts)
    image = rng.integers(0, 256, reach, dtype=np.uint8)
    expected = registers.copy()
    expected[..., :size] = image[places]
    return Launch(f"move {name}", kernel, [image, addresses, registers, count, reach], (2,), expected={2: expected},
                  facts=facts)  # fmt: skip


def farthest(plan: Any) -> int:
    """Return the last address of a plan."""
    return int(np.asarray(plan.addresses.table()).max())


def move_launches(name: str, plans: int, seed: int, width: int, kernel: KernelSource) -> Iterator[Launch]:
    """Yield admitted plans of one instruction."""
    rng, made = random.Random(seed), 0
    for _ in range(60 * plans):
        dtype = "f16" if ".trans" in name else "u8" if made < plans // 2 else rng.choice(list(WIDTHS))
        found = admitted_plan(rng, name, dtype)
        if found is None or farthest(found[0]) > SMEM_BYTES - 64:
            continue
        made += 1
        plan, layout, extents = found
        one = move_launch(kernel, name, plan, width, np.random.default_rng(rng.randrange(2**32)))
        one.facts |= {"dtype": dtype, "layout": str(layout)[:120], "extents": list(extents)}
        yield one
        if made == plans:
            return


def comparison(jobs: list[Launch], results: list[Any]) -> list[dict[str, Any]]:
    """Return one row for each launch: what was compared and what differs, or what became of a refused form."""
    rows = []
    for job, result in zip(jobs, results, strict=True):
        row = {"name": job.name, **job.facts}
        if result.fault:
            row["fault"] = result.fault[:300]
        elif job.expected is not None:
            row |= {"compared": sum(table.size for table in job.expected.values()), "wrong": result.wrong(job)}
        else:
            row["answer"] = result.arrays[job.outputs[-1]].reshape(-1)[:96].tolist()
        rows.append(row)
    return rows


def matrices_job(run: Run) -> None:
    """Run admitted plans of every instruction."""
    jobs: list[Launch] = []
    for number, name in enumerate(MOVES + VECTORS):
        width = 4 * statement(name)[1]
        jobs += move_launches(name, run.options.plans, 1000 * run.options.seed + number, width, move_kernel(name))
    rows = comparison(jobs, run.launches(jobs))
    wrong = sum(bool(row.get("wrong")) or "fault" in row for row in rows)
    counts = {"plans": len(rows), "wrong": wrong, "bytes": sum(row.get("compared", 0) for row in rows)}
    run.write("matrices_dev", counts, rows=rows)


# ----------------------------------------------------------------------------------------------------------- fragments


def run_fragment(what: tuple[Any, ...], rounds: int) -> tuple[dict[str, Any], list[list[str]]]:
    """Run an instruction; return the arrays of the first run, and what disagreed, by element width of a move."""
    kind, *given = what
    widths: list[Any] = [None]
    if kind == "mma":
        made = [checks.run_mma(*given, seed) for seed in range(rounds)]
        wrong = [[checks.mma_difference(*given, arrays) for arrays in made]]
    elif kind == "wgmma":
        made = [checks.run_wgmma(*given, seed) for seed in range(2)]
        wrong = [[checks.wgmma_difference(*given, arrays) for arrays in made]]
    else:
        made = [getattr(checks, f"run_{kind}")(*given, seed) for seed in range(rounds)]
        widths = [16] if given[1] else [8, 16, 32]
        wrong = [[checks.matrix_move_difference(*given, bits, arrays) for arrays in made] for bits in widths]
    return made[0], [[str(each) for each in one if each is not None] for one in wrong]


def fragments_job(run: Run) -> None:
    """Run every instruction ``--rounds`` times; record the first run."""
    labels: dict[str, tuple[Any, ...]] = {f"mma/{name}": ("mma", name) for name in MMA}
    for kind in ("ldmatrix", "stmatrix"):
        labels |= {f"{kind}/x{many}{'.trans' if trans else ''}/b16": (kind, many, trans)
                   for many in (1, 2, 4) for trans in (False, True)}  # fmt: skip
    labels |= {f"wgmma/{dtype}/n{n}": ("wgmma", dtype, n) for dtype in ("f16", "bf16") for n in range(8, 257, 8)}
    run.compile(())
    answers = dict(zip(labels, run.each(run_fragment, list(labels.values()), run.options.rounds, group=8), strict=True))
    kept: dict[str, Any] = {}
    rows = []
    for label, answer in answers.items():
        wrong = [[answer.text]] if isinstance(answer, Fault) else answer[1]
        rows.append({"what": label, "wrong": sum(map(len, wrong)), "first": [each[:1] for each in wrong]})
        if not isinstance(answer, Fault) and (labels[label][0] != "wgmma" or labels[label][2] in RECORDED_N):
            kept |= {f"{label}/{key}": array for key, array in answer[0].items()}
    run.save("fragments_dev", **kept)
    run.save("mma_dev", **{key: array for key, array in kept.items() if key.startswith("mma/")})
    run.write("fragments_dev", {"instructions": len(rows), "wrong": sum(row["wrong"] for row in rows)}, rows=rows)


# --------------------------------------------------------------------------------------------------------------- banks

COUNTER = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
BANKS = [
    f"{kind}matrix.x{count}{trans}" for kind in ("ld", "st") for count in (1, 2, 4) for trans in ("", ".trans")
] + [f"{kind}.shared.{suffix}" for kind in ("ld", "st") for suffix in ("b32", "v2.b32", "v4.b32")]


def probe_cases(number: int) -> Iterator[tuple[str, int, int, npt.NDArray[np.int32]]]:
    """Yield (kind, bits, linear, byte offset of each lane), the same ones every time."""
    rng = np.random.default_rng(90)
    for kind, widths in KINDS.items():
        for bits in widths:
            size = bits // 8
            room = PROBE_BYTES // size
            for index in range(number):
                linear = index % 2 == 0
                elements = linear_lanes(rng, room) if linear else free_lanes(rng, room, index // 2 % 5)
                yield kind, bits, int(linear), (elements * size).astype(np.int32)


def free_lanes(rng: np.random.Generator, room: int, how: int) -> npt.NDArray[np.int64]:
    """Return random element offsets; lanes t and t ^ 1, or t and t ^ 2, share all (1), some (2, 3) or changing (4)."""
    elements = rng.integers(0, int(rng.choice([32, 64, 256, room])), 32)
    lanes = np.arange(32)
    if how == 1:
        return elements[lanes & ~int(rng.choice([1, 2, 3]))]
    if how == 2:
        half = int(rng.choice([4, 8, 16]))
        return np.where(lanes & half, elements[lanes & ~int(rng.choice([1, 2]))], elements)
    if how == 3:
        kept = elements[lanes & ~int(rng.choice([1, 2]))]
        kept[int(rng.integers(0, 32))] = int(rng.integers(0, room))
        return kept
    return np.where(lanes & 16, elements[lanes & ~1], elements[lanes & ~2]) if how == 4 else elements


def linear_lanes(rng: np.random.Generator, room: int) -> npt.NDArray[np.int64]:
    """Return element offsets that are linear over F2 in the lane: bits moved, strided, xored, doubled or dense."""
    width = int(room).bit_length() - 1
    low = int(rng.integers(0, 7))
    columns = []
    for bit in range(5):
        one = 1 << min(low + bit, width - 1) if rng.random() < 0.5 else 1 << int(rng.integers(0, width))
        other = int(rng.integers(0, room)) if rng.random() < 0.3 else 0
        columns.append(0 if rng.random() < 0.2 else one ^ other)
    values = np.zeros(32, dtype=np.int64)
    for bit, column in enumerate(columns):
        values ^= np.where(np.arange(32) >> bit & 1, column, 0)
    return values


def bank_cases(number: int) -> list[tuple[str, np.ndarray]]:
    """Return (instruction, byte offset of each lane, -1 where it is inactive), the same every time."""
    rng = np.random.default_rng(12)
    found = []
    for name in BANKS:
        form = access_form(name)
        size = form.row_bits // 8
        for case in range(number):
            room = int(rng.choice([8, 32, 256, SMEM_BYTES // size // 2]))
            lanes = rng.integers(0, room, 32) * size
            if form.matrix_rows:
                if case % 3 == 0:  # strided rows
                    lanes = np.arange(32) * int(rng.choice([16, 32, 48, 64, 80, 128, 144, 256]))
            else:
                if case % 3 == 0:
                    lanes = np.arange(32) * size * int(rng.choice([1, 2, 3, 4, 8]))
                if case % 5 in (1, 2, 3):
                    lanes = lanes[np.arange(32) & ~int(rng.choice([1, 2]))]
                kind = case % 4
                off = (
                    rng.random(32) < rng.choice([0.1, 0.5, 0.9]) if kind < 2 else np.arange(32) // 8 == rng.integers(4)
                )
                if kind == 3:
                    off = np.arange(32) % 2 == 1
                lanes = np.where(off, -1, lanes)
                if (lanes < 0).all():
                    lanes[0] = 0
            found.append((name, lanes.astype(np.int32)))
    return found


def clock_launch(name: str, lanes: np.ndarray, repeats: int) -> Launch:
    """The launch of so many equal accesses."""
    words = np.zeros((32, statement(name)[1]), dtype=np.uint32)
    return Launch(name, clock_kernel(name, repeats), [lanes, words, np.zeros(1, dtype=np.int32)], (2,))


def run_all(_: object, jobs: list[Launch]) -> None:
    """Run launches in order, for a profiler to count."""
    for job in jobs:
        cuda().run(job)


def banks_job(run: Run) -> None:
    """Count the turns of single accesses; take the cycles of many, the least of three runs."""
    probes, cases = list(probe_cases(150)), bank_cases(run.options.cases)
    single = [
        Launch(kind, bank_probe_kernel(kind, bits), [offsets, np.zeros((32, max(1, bits // 32)), np.uint32)], ())
        for kind, bits, _, offsets in probes
    ] + [clock_launch(name, lanes, 1) for name, lanes in cases]
    many = [clock_launch(name, lanes, REPEATS) for name, lanes in cases]
    run.compile(job.kernel for job in (*single, *many))
    counted = run.counted(run_all, [f"{COUNTER}_op_ld", f"{COUNTER}_op_st", COUNTER], single)
    told = counted if isinstance(counted, str) else "ncu"
    if isinstance(counted, list) and len(counted) != len(single):
        told, counted = f"ncu counted {len(counted)} of {len(single)} launches", told
    counts = np.array(counted if isinstance(counted, list) else np.zeros((0, 3)), dtype=np.int16)
    taken = [run.launches(many) for _ in range(3)]
    cycles = [min(int(each.arrays[2][0]) if each.arrays else -1 for each in one) for one in zip(*taken, strict=True)]
    run.save(
        "banks_dev", offsets=np.array([offsets for *_, offsets in probes]), wavefronts=counts[: len(probes)],
        bits=np.array([bits for _, bits, _, _ in probes], dtype=np.uint8),
        kind=np.array([list(KINDS).index(kind) for kind, *_ in probes], dtype=np.uint8),
        linear=np.array([linear for _, _, linear, _ in probes], dtype=np.uint8),
    )  # fmt: skip
    run.save(
        "matrix_banks_dev", names=np.array(BANKS), lanes=np.array([lanes for _, lanes in cases]),
        name=np.array([BANKS.index(name) for name, _ in cases], dtype=np.uint8),
        cycles=np.array(cycles, dtype=np.int32), wavefronts=counts[len(probes) :, :2].sum(axis=1),
    )  # fmt: skip
    run.write("banks_dev", {"accesses": len(single), "counters": told, "clocked": len(cycles), "repeats": REPEATS})
