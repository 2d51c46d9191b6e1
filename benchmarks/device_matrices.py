"""Run admitted ldmatrix, stmatrix, ld.shared and st.shared plans on a GPU, and count turns of narrow matrix accesses.

Run on a machine with an sm_90a GPU, from the root of the repository:

    python3 benchmarks/device_matrices.py --out DIRECTORY [--plans 12] [--cases 40]

*Moves*: random layouts (padded, swizzled, linear over F2, rows in random order) that are admitted are moved by the
plan's own instructions and addresses, all bytes random, and every byte of every register (of shared memory, for stores)
is compared with what the layout asks for. *Products*: every dense ``mma.sync`` on random integers, its result read
through the fragments and compared exactly. *Banks*: cycles of many equal accesses in a row, for x1, x2 and x4 and for
loads and stores with inactive lanes; with ``ncu`` on the machine also its counters, launch by launch.

Writes ``matrices_dev.json``, ``mma_dev.npz``, ``matrix_banks_dev.npz``. Every section runs in a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from instruments import fragment_checks  # noqa: E402

import layoutalg as la  # noqa: E402
from layoutalg.codegen import launch  # noqa: E402
from layoutalg.codegen.kernel import KernelSource  # noqa: E402
from layoutalg.codegen.prelude import PRELUDE  # noqa: E402
from layoutalg.targets.layouts.nvidia_instructions import MMA  # noqa: E402
from layoutalg.targets.nvidia.accesses import access_form  # noqa: E402

MOVES = [f"{kind}matrix.x{count}{trans}" for kind in ("ld", "st") for count in (1, 2, 4) for trans in ("", ".trans")]
VECTORS = [
    f"{kind}.shared.{suffix}" for kind in ("ld", "st") for suffix in ("b8", "b16", "b32", "b64", "v2.b32", "v4.b32")
]
WIDTHS = {"u8": 1, "f16": 2, "f32": 4, "f64": 8}
SMEM_BYTES = 98304
COUNTER = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
REPEATS = 128

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


def moves(plans: int, seed: int) -> dict[str, Any]:
    """Run ``plans`` admitted plans of every instruction; return one row for each."""
    rows = []
    for number, name in enumerate(MOVES + VECTORS):
        rng = random.Random(1000 * seed + number)
        made = tried = 0
        while made < plans and tried < 60 * plans:
            tried += 1
            dtype = "f16" if ".trans" in name else rng.choice(list(WIDTHS))
            layout, extents = tile_of(rng, WIDTHS[dtype])
            answer = la.admissible(layout, name, dtype=dtype, tile=extents)
            if not answer or int(np.asarray(answer.descriptor.addresses.table()).max()) > SMEM_BYTES - 64:
                continue
            made += 1
            row = {"instruction": name, "dtype": dtype, "layout": str(layout)[:120], "extents": list(extents)}
            try:
                row |= moved(name, answer.descriptor, np.random.default_rng(rng.randrange(2**32)))
            except Exception as error:  # a fault is a result
                row["fault"] = str(error)[:200]
                rows.append(row)
                return {"rows": rows, "faulted": name}
            rows.append(row)
        print(name, made, "plans of", tried, "wrong", sum(1 for row in rows if row.get("wrong")), flush=True)
    return {"rows": rows}


def moved(name: str, plan: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Run a plan; return how many bytes were compared and how many differ."""
    form = access_form(name)
    words = statement(name)[1]
    supplied = np.asarray(plan.addresses.table()).reshape(form.addresses, -1, order="F")
    addresses = np.zeros((supplied.shape[1], 32), dtype=np.int32)
    addresses[:, : form.addresses] = supplied.T
    requested = np.asarray(plan.requested.table()).reshape(-1, 32, supplied.shape[1], order="F")
    width = min(plan.element_bits, form.unit_bits) // 8
    places = requested.transpose(2, 1, 0)[..., None] + np.arange(width)
    reach = -(-int(places.max() + 1) // 16) * 16
    shape = (supplied.shape[1], 32, words)
    count, lanes = supplied.shape[1], shape[1]
    moved_bytes = form.row_bits // 8 if not form.matrix_rows else 4 * words
    if form.store:
        image = np.zeros(reach, dtype=np.uint8)
        registers = rng.integers(0, 2**32, shape, dtype=np.uint32)
        launch.run(move_kernel(name), [image, addresses, registers, count, reach])
        expected = np.full(reach, 0xEE, dtype=np.uint8)
        given = registers.view(np.uint8).reshape(count, lanes, -1)[..., :moved_bytes]
        expected[places.reshape(count, lanes, -1)] = given
        return {"compared": reach, "wrong": int((image != expected).sum())}
    image = rng.integers(0, 256, reach, dtype=np.uint8)
    registers = np.zeros(shape, dtype=np.uint32)
    launch.run(move_kernel(name), [image, addresses, registers, count, reach])
    found = registers.view(np.uint8).reshape(count, lanes, -1)[..., :moved_bytes]
    expected = image[places.reshape(count, lanes, -1)]
    return {"compared": int(found.size), "wrong": int((found != expected).sum())}


BANKS = [
    f"{kind}matrix.x{count}{trans}" for kind in ("ld", "st") for count in (1, 2, 4) for trans in ("", ".trans")
] + [f"{kind}.shared.{suffix}" for kind in ("ld", "st") for suffix in ("b32", "v2.b32", "v4.b32")]


def products(rounds: int, out: Path) -> dict[str, Any]:
    """Run every dense ``mma.sync`` on random integers; keep the registers of one run each and what disagreed."""
    rows, kept = [], {}
    for name in MMA:
        made = [fragment_checks.run_mma(name, seed) for seed in range(rounds)]
        wrong = [str(found) for one in made if (found := fragment_checks.mma_difference(name, one)) is not None]
        rows.append(
            {"instruction": name, "ptx": MMA[name].ptx, "runs": rounds, "wrong": len(wrong), "first": wrong[:1]}
        )
        kept |= {f"mma/{name}/{key}": array for key, array in made[0].items()}
        print(name, "wrong", len(wrong), flush=True)
    np.savez_compressed(out / "mma_dev.npz", facts=json.dumps(facts_now()), **kept)
    return {"rows": rows}


def facts_now() -> dict[str, str]:
    """Return the date and the device."""
    return {"date": datetime.date.today().isoformat(), "device": str(launch.device())}


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


def clocks(number: int) -> dict[str, Any]:
    """Return the cycles of every case of ``bank_cases``, the least of three runs."""
    taken = []
    for name, lanes in bank_cases(number):
        least = 2**31
        for _ in range(3):
            cycles = np.zeros(1, dtype=np.int32)
            words = np.zeros((32, statement(name)[1]), dtype=np.uint32)
            launch.run(clock_kernel(name), [lanes, words, cycles])
            least = min(least, int(cycles[0]))
        taken.append(least)
    return {"cycles": taken}


def single(number: int) -> dict[str, Any]:
    """Launch every case once with one access, for a profiler to count."""
    for name, lanes in bank_cases(number):
        cycles, words = np.zeros(1, dtype=np.int32), np.zeros((32, statement(name)[1]), dtype=np.uint32)
        launch.run(clock_kernel(name, 1), [lanes, words, cycles])
    return {}


def counters(number: int, out: Path) -> list[int] | str:
    """Return the wavefronts that ``ncu`` counts for every case, or why there are none."""
    tool = shutil.which("ncu") or next(iter(map(str, Path("/usr/local").glob("cuda*/bin/ncu"))), None)
    if tool is None:
        return "no ncu"
    log = out / "ncu.csv"
    command = [
        tool, "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw", "--log-file", str(log),
        "--metrics", f"{COUNTER}_op_ld.sum,{COUNTER}_op_st.sum", sys.executable, __file__, "--out", str(out),
        "--section", "single", "--cases", str(number),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "ncu took more than 300 s"
    lines = [line for line in log.read_text().splitlines() if line.startswith('"')] if log.exists() else []
    table = list(csv.DictReader(lines))[1:]
    if done.returncode or len(table) != len(BANKS) * number:
        return f"ncu: exit {done.returncode}, {len(table)} launches: {(done.stderr + done.stdout)[-300:]}"
    ends = ("_op_ld", "_op_st")
    return [sum(int(float(row[f"{COUNTER}{end}.sum"].replace(",", ""))) for end in ends) for row in table]


def main() -> None:
    """Run the sections, each in a process of its own, and write what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--section", choices=("all", "moves", "products", "clocks", "single"), default="all")
    parser.add_argument("--plans", type=int, default=12)
    parser.add_argument("--cases", type=int, default=60)
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    if given.section != "all":
        section = {
            "moves": lambda: moves(given.plans, 1), "clocks": lambda: clocks(given.cases),
            "single": lambda: single(given.cases), "products": lambda: products(4, out),
        }[given.section]  # fmt: skip
        (out / f"section_{given.section}.json").write_text(json.dumps(section()))
        return
    for name in ("moves", "products", "clocks"):
        command = [sys.executable, __file__, "--out", str(out), "--section", name, "--plans", str(given.plans)]
        try:
            subprocess.run([*command, "--cases", str(given.cases)], timeout=240, check=False)
        except subprocess.TimeoutExpired:
            print(name, "took more than 240 s", flush=True)
    facts = facts_now()
    path = out / "section_moves.json"
    if path.exists():
        rows = json.loads(path.read_text())["rows"]
        (out / "matrices_dev.json").write_text(json.dumps({"facts": facts, "rows": rows}))
        wrong = sum(bool(row.get("wrong")) or "fault" in row for row in rows)
        print(json.dumps({"plans": len(rows), "wrong": wrong, "bytes": sum(row.get("compared", 0) for row in rows)}))
    path = out / "section_products.json"
    if path.exists():
        rows = json.loads(path.read_text())["rows"]
        print(json.dumps({"products": len(rows), "wrong": [row["instruction"] for row in rows if row["wrong"]]}))
    cases = bank_cases(given.cases)
    counted = counters(given.cases, out)
    path = out / "section_clocks.json"
    cycles = json.loads(path.read_text())["cycles"] if path.exists() else []
    np.savez_compressed(
        out / "matrix_banks_dev.npz",
        facts=json.dumps(facts | {"counters": counted if isinstance(counted, str) else "ncu", "repeats": REPEATS}),
        names=np.array(BANKS),
        name=np.array([BANKS.index(name) for name, _ in cases], dtype=np.uint8),
        lanes=np.array([lanes for _, lanes in cases], dtype=np.int32),
        cycles=np.array(cycles, dtype=np.int32),
        wavefronts=np.array([] if isinstance(counted, str) else counted, dtype=np.int16),
    )
    print(json.dumps(facts | {"cases": len(cases), "clocked": len(cycles), "counters": str(counted)[:100]}))


if __name__ == "__main__":
    main()
