"""Jobs that ask a device about sparse ``mma.sync``: exact products, whose metadata is heard, what each code means.

Notation: *reading*: B is an identity, eight columns at a time, so that D is A as it is multiplied, eight columns of k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from device import Launch, Result
from instruments.fragments import decode, encode, pack, unpack

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.targets.layouts.nvidia_instructions import (
    CODES,
    ELEMENT_BITS,
    MMA_SP,
    VARIANTS,
    expanded,
    mma_sp_fragment,
    mma_sp_metadata,
    mma_sp_selectors,
    mma_sp_type,
)

ROUNDS = 8
RANGES = {"u8": (0, 8), "s4": (-8, 7), "u4": (0, 15)}
BEYOND = {"m16n8k32.f32.f16": 4}
"""Selectors that the assembler takes beyond those of the fragments."""

_KERNEL = """
// Sparse products of the registers of each lane, one warp to a block; ``which`` chooses variant and selector.
extern "C" __global__ void __launch_bounds__(32) {name}(const la_u32* a, const la_u32* b, const la_u32* c,
    const la_u32* e, la_u32* d, int which)
{{
    const int at = 32 * blockIdx.x + threadIdx.x;
    {result} w[{count}];
    switch (which) {{
{cases}
    }}
    for (int v = 0; v < {count}; ++v) d[at * {count} + v] = {back};
}}
"""


def words(name: str, operand: str) -> int:
    """Return the 32-bit registers of a lane."""
    return mma_sp_fragment(name, operand).in_dims["register"] * ELEMENT_BITS[mma_sp_type(name, operand)] // 32


def selectors(name: str) -> int:
    """Return how many selectors the assembler takes."""
    return BEYOND.get(name, mma_sp_selectors(name))


def sparse_kernel(name: str) -> KernelSource:
    """Return the kernel (a, b, c, e, d, which) of an instruction in both variants with every selector."""
    made = MMA_SP[name]
    floats = made.result == "f32"
    count = {operand: words(name, operand) for operand in "ABCD"}
    groups, number = [], 0
    for operand in "DABC":
        groups.append("{" + ", ".join(f"%{number + i}" for i in range(count[operand])) + "}")
        number += count[operand]
    inputs = [f'"r"({x}[at * {count[x.upper()]} + {i}])' for x in "ab" for i in range(count[x.upper()])]
    wrap = "__uint_as_float(c[at * {n} + {i}])" if floats else "c[at * {n} + {i}]"
    kind = "f" if floats else "r"
    inputs += [f'"{kind}"({wrap.format(n=count["C"], i=i)})' for i in range(count["C"])] + ['"r"(e[at])']
    outputs = ", ".join(f'"={kind}"(w[{i}])' for i in range(count["D"]))
    cases = []
    for v, variant in enumerate(VARIANTS):
        for selector in range(selectors(name)):
            text = f'"{made.ptx(variant)} {", ".join(groups)}, %{number}, {selector};"'
            cases.append(f"    case {4 * v + selector}:\n        asm volatile({text}")
            cases.append(f"                     : {outputs} : {', '.join(inputs)});\n        break;")
    symbol = "la_sp_" + name.replace(".", "_")
    text = _KERNEL.format(
        name=symbol, result="float" if floats else "la_u32", count=count["D"], cases="\n".join(cases),
        back="__float_as_uint(w[v])" if floats else "w[v]",
    )  # fmt: skip
    parameters = (*((f"{'' if x == 'd' else 'const '}la_u32*", x) for x in "abced"), ("int", "which"))
    return KernelSource(symbol, PRELUDE + text, "sm_90a", 32, 0, parameters)


def filled(name: str, operand: str, matrix: np.ndarray) -> np.ndarray:
    """Return the registers that hold a matrix of small integers."""
    dtype = mma_sp_type(name, operand)
    return pack(mma_sp_fragment(name, operand), encode(matrix, dtype), ELEMENT_BITS[dtype])


def read(name: str, operand: str, held: np.ndarray) -> np.ndarray:
    """Return the matrix that registers hold."""
    dtype = mma_sp_type(name, operand)
    return decode(unpack(mma_sp_fragment(name, operand), held, ELEMENT_BITS[dtype]), dtype)


def metadata(name: str, selector: int, codes: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the metadata words uint32[32] of the codes [16, G]; what nobody hears is taken from ``rest``."""
    places = mma_sp_metadata(name, selector)
    nibbles = (rest[:, None] >> (4 * np.arange(8))) & 15
    heard = places[..., 0] >= 0
    nibbles = np.where(heard, codes[places[..., 0], places[..., 1]], nibbles)
    return np.asarray((nibbles << (4 * np.arange(8))).sum(axis=1), dtype=np.uint32)


def pattern(name: str, period: int) -> np.ndarray:
    """Return stored elements 1, 2, ..., period, 1, 2, ... along every row."""
    return np.tile(1 + np.arange(MMA_SP[name].k // 2) % period, (16, 1))


def _reading(name: str, stored: np.ndarray, given: np.ndarray, which: int, label: str) -> Launch:
    """Return the job that reads A for metadata uint32[cases, 32]: D of case c, columns 8 p on, is block c k / 8 + p."""
    k = MMA_SP[name].k
    parts = k // 8
    a = filled(name, "A", stored)
    b = np.stack([filled(name, "B", np.eye(k, dtype=np.int64)[:, 8 * part : 8 * part + 8]) for part in range(parts)])
    cases = len(given)
    zero = np.zeros((cases * parts, 32, words(name, "C")), dtype=np.uint32)
    arguments = [
        np.broadcast_to(a, (cases * parts, *a.shape)).copy(), np.tile(b, (cases, 1, 1)), zero,
        np.repeat(given, parts, axis=0), np.zeros_like(zero), which,
    ]  # fmt: skip
    facts = {"instruction": name, "which": which}
    return Launch(f"{label} {name} {which}", sparse_kernel(name), arguments, (4,), cases * parts, None, facts)


def shown(name: str, result: Result) -> np.ndarray:
    """Return A as it was multiplied, by case: float64[cases, 16, k]."""
    parts, dtype = MMA_SP[name].k // 8, mma_sp_type(name, "D")
    held = np.ascontiguousarray(result.arrays[4])
    raw = held.view(f"<u{ELEMENT_BITS[dtype] // 8}").reshape(len(held), -1).astype(np.uint64)
    places = mma_sp_fragment(name, "D").table()
    blocks = np.zeros((len(held), 16, 8))
    blocks[:, places % 16, places // 16] = decode(raw, dtype)
    return blocks.reshape(-1, parts, 16, 8).transpose(0, 2, 1, 3).reshape(-1, 16, MMA_SP[name].k)


def sparse_jobs() -> list[Launch]:
    """Return all jobs: ``product``, ``heard`` (one nibble changed at a time), ``codes`` (every code everywhere)."""
    jobs = []
    for index, (name, made) in enumerate(MMA_SP.items()):
        bits = ELEMENT_BITS[made.operand]
        legal = np.array(list(CODES[bits]))
        for which in [4 * v + s for v in range(len(VARIANTS)) for s in range(selectors(name))]:
            selector = which % 4
            if selector < mma_sp_selectors(name):
                jobs.append(_product(name, which, legal, np.random.default_rng(100 * index + which)))
            given = np.full((257, 32), 0x44444444, dtype=np.uint32)
            for case in range(256):
                lane, nibble = divmod(case, 8)
                given[case + 1, lane] ^= np.uint32((0x4 ^ 0xE) << 4 * nibble)
            jobs.append(_reading(name, pattern(name, 7), given, which, "heard"))
            every = np.array([[0x11111111 * code] * 32 for code in range(16)], dtype=np.uint32)
            period = {32: 1, 4: 4}.get(bits, 2)
            jobs.append(_reading(name, pattern(name, period), every, which, "codes"))
    return jobs


def _product(name: str, which: int, legal: np.ndarray, rng: np.random.Generator) -> Launch:
    """Return the job of ``ROUNDS`` random products; unheard metadata is any bits."""
    made = MMA_SP[name]
    blocks: dict[str, list[np.ndarray]] = {x: [] for x in "abced"}
    for _ in range(ROUNDS):
        matrices = {}
        for operand, extent in (("A", (16, made.k // 2)), ("B", (made.k, 8)), ("C", (16, 8))):
            low, high = RANGES.get(mma_sp_type(name, operand), (-8, 8))
            matrices[operand] = rng.integers(low, high + 1, extent)
        codes = rng.choice(legal, (16, made.groups))
        full = expanded(name, matrices["A"].astype(np.float64), codes)
        d = full @ matrices["B"] + matrices["C"]
        for operand, matrix in (*matrices.items(), ("D", d.astype(np.int64))):
            blocks[operand.lower()].append(filled(name, operand, matrix))
        blocks["e"].append(metadata(name, which % 4, codes, rng.integers(0, 2**32, 32)))
    stacked = {x: np.stack(held) for x, held in blocks.items()}
    arguments = [*(stacked[x] for x in "abce"), np.zeros_like(stacked["d"]), which]
    facts = {"instruction": name, "which": which, "stacked": stacked}
    return Launch(f"product {name} {which}", sparse_kernel(name), arguments, (4,), ROUNDS, None, facts)


def sparse_answers(jobs: list[Launch], results: list[Result]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return a row for each instruction, variant and selector, and the arrays to keep."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    kept: dict[str, np.ndarray] = {}
    for job, result in zip(jobs, results, strict=True):
        name, which = job.facts["instruction"], job.facts["which"]
        variant, selector = VARIANTS[which // 4], which % 4
        row = rows.setdefault((name, which), {"instruction": name, "variant": variant, "selector": selector})
        label = job.name.split()[0]
        key = f"{label}/{name}/{which}"
        if result.fault:
            row[label] = {"fault": result.fault}
        elif label == "product":
            held = job.facts["stacked"]
            found = [read(name, "D", block) for block in result.arrays[4]]
            wanted = [read(name, "D", block) for block in held["d"]]
            differ = [not np.array_equal(x, y) for x, y in zip(found, wanted, strict=True)]
            row[label] = {"runs": len(found), "wrong": sum(differ)}
            kept |= {f"{key}/{x}": held[x][0] for x in "abce"} | {f"{key}/d": result.arrays[4][0]}
        elif label == "heard":
            full = shown(name, result)
            kept[key] = _heard(name, full)
            known = selector < mma_sp_selectors(name)
            row[label] = {"agrees": bool(known and np.array_equal(kept[key], mma_sp_metadata(name, selector)))}
        else:
            full = shown(name, result)
            group = MMA_SP[name].group
            cells = full.reshape(16, -1, group)
            row[label] = {"alike": bool((cells == cells[:, :1]).all())}
            kept[key] = cells[:, 0].astype(np.int8)
    return list(rows.values()), kept


def packed(kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of ``sparse_answers``, those of all variants and selectors of an instruction as one.

    ``NAME/which``: 4 times the variant plus the selector. ``NAME/a`` to ``NAME/d``: registers [which, lane, word] of
    one product, ``e`` the metadata. ``NAME/heard``: [which, lane, nibble, 2]. ``NAME/codes``: [which, code, place].
    """
    found = {}
    for name in MMA_SP:
        chosen = [which for which in range(8) if f"product/{name}/{which}/a" in kept]
        found[f"{name}/which"] = np.array(chosen, dtype=np.uint8)
        for part in "abced":
            found[f"{name}/{part}"] = np.stack([kept[f"product/{name}/{which}/{part}"] for which in chosen])
        for part in ("heard", "codes"):
            found[f"{name}/{part}"] = np.stack([kept[f"{part}/{name}/{which}"] for which in chosen])
    return found


def _heard(name: str, full: np.ndarray) -> np.ndarray:
    """Return (row, group) that each lane's nibble changes, int8[32, 8, 2]; -1 nothing, -2 more than one group."""
    cells = (full[1:] != full[:1]).reshape(256, 16, -1, MMA_SP[name].group).any(axis=-1)
    found = np.full((256, 2), -1, dtype=np.int8)
    for case in range(256):
        places = np.argwhere(cells[case])
        if len(places):
            found[case] = places[0] if len(places) == 1 else -2
    return found.reshape(32, 8, 2)
