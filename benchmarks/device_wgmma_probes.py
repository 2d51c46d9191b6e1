"""Probes of ``wgmma``: which element a random descriptor reads, what each register holds, which nibbles are heard.

``operand_b`` asks the first for f16 operands B with a kernel of its own, N = 8 to 256.

Notation: shared memory, or the registers of A, hold the number of each place, a few bits of it per pass; the other
operand selects single elements. Sparse A is all one code: its stored elements belong to fixed places of their groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from admission_judges import offsets
from device import Launch, Run
from device_wgmma_cases import Case, Chains, encode, places, to_bytes
from instruments.wgmma_chain import Shape, variants

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.targets.nvidia import wgmma

REGION_BYTES = 128 * 1024
PASS_BITS = {"f16": 8, "bf16": 8, "tf32": 8, "e4m3": 4, "e5m2": 3, "u8": 8, "s8": 7, "b1": 1}
"""Bits of a number that an element holds exactly."""
UNIFORM = {0: 0x44444444, 1: 0xEEEEEEEE}
"""Metadata in which every group has the same code: stored elements at 0 and 1 of four (0 of two), or 2 and 3 (1)."""


DENSE = (("u8", "s32", 32), ("tf32", "f32", 8), ("e4m3", "f32", 32), ("e5m2", "f16", 32), ("s8", "s32", 32))
HEARD = (("f16", "f32", (0, 1)), ("tf32", "f32", (0, 1)), ("u8", "s32", (0,)), ("e4m3", "f32", (0,)))


@dataclass(frozen=True)
class Reads:
    """Random descriptors of one operand."""

    operand: str
    number: int
    major: str = "K"


@dataclass(frozen=True)
class Special:
    """Another question: ``registers`` of A, ``accumulator``, ``metadata`` for a selector."""

    what: str
    selector: int = 0


def _probes() -> dict[str, tuple[Shape, Reads | Special]]:
    found: dict[str, tuple[Shape, Reads | Special]] = {}

    def add(name: str, a: str, acc: str, n: int, ask: Reads | Special, b: str | None = None, **how: bool) -> None:
        found[name] = (Shape(a, b or a, acc, n, **how), ask)

    for a, acc, n in DENSE:
        add(f"read_{a}_A", a, acc, n, Reads("A", 96))
        add(f"read_{a}_B", a, acc, 64, Reads("B", 96))
    for major in ("K", "MN"):
        add(f"read_bf16_A_{major}", "bf16", "f32", 16, Reads("A", 64, major))
        add(f"read_bf16_B_{major}", "bf16", "f32", 64, Reads("B", 64, major))
        add(f"read_f16_A_{major}_sparse", "f16", "f32", 32, Reads("A", 96, major), sparse=True)
        add(f"read_f16_B_{major}_sparse", "f16", "f32", 64, Reads("B", 160, major), sparse=True)
    add("read_b1_A", "b1", "s32", 256, Reads("A", 64))
    add("read_b1_B", "b1", "s32", 64, Reads("B", 64))
    for a, acc, n in (("u8", "s32", 64), ("e4m3", "f16", 64), ("tf32", "f32", 16)):
        add(f"read_{a}_A_sparse", a, acc, n, Reads("A", 64), sparse=True)
        add(f"read_{a}_B_sparse", a, acc, 64, Reads("B", 128), sparse=True)
    for a, acc in (("f16", "f32"), ("bf16", "f32"), ("tf32", "f32"), ("u8", "s32"), ("s8", "s32"), ("e4m3", "f32"),
                   ("e5m2", "f32"), ("b1", "s32")):  # fmt: skip
        for sparse in (False, True) if a != "b1" else (False,):
            k = (2 if sparse else 1) * wgmma.multiply(a).k
            name = f"registers_{a}{'_sparse' if sparse else ''}"
            add(name, a, acc, max(8, k), Special("registers"), registers=True, sparse=sparse)
    for a, acc in (("f16", "f16"), ("f16", "f32"), ("u8", "s32"), ("b1", "s32")):
        for n in (8, 24, 64, 256):
            add(f"accumulator_{a}_{acc}_{n}", a, acc, n, Special("accumulator"))
    for a, acc, selectors in HEARD:
        for selector in selectors:
            k = 2 * wgmma.multiply(a).k
            add(f"metadata_{a}_{selector}", a, acc, k, Special("metadata", selector), sparse=True)
    return found


PROBES = _probes()


def random_fields(rng: np.random.Generator, number: int, reach: int) -> np.ndarray:
    """Return start, LBO and SBO bytes, base offset and swizzle name's index, with reads inside the region."""
    rows = []
    most = (REGION_BYTES - 16384) // 16 // reach
    for i in range(number):
        code = i % 4
        start = 16 * int(rng.integers(0, 256)) if rng.random() < 0.7 else 1024 * int(rng.integers(0, 4))
        strides = [int(rng.integers(1, most)) for _ in "ls"]
        if rng.random() < 0.4:  # canonical distances: whole atoms
            atom = (8, 16, 32, 64)[code]
            strides = [min(max(1, value // atom) * atom, most) for value in strides]
        offset = int(rng.integers(0, 8)) if rng.random() < 0.5 else 0
        rows.append((start, 16 * strides[0], 16 * strides[1], offset, code))
    return np.array(rows, dtype=np.int64)


def descriptor(field: np.ndarray) -> wgmma.MatrixDescriptor:
    """Return the descriptor of a row of fields."""
    start, leading, stride, offset, code = (int(value) for value in field)
    return wgmma.MatrixDescriptor(start, leading, stride, offset, wgmma.SWIZZLES[code])


def predicted(name: str, field: np.ndarray) -> np.ndarray:
    """Return which element of the region the library says is read at each (row, k)."""
    shape, ask = PROBES[name]
    kind = wgmma.multiply(shape.a)
    rows, k = (64, kind.k) if ask.operand == "A" else (shape.n, shape.k)
    return places(descriptor(field), rows, k, kind.bits, ask.major)


def positions(kind: wgmma.Multiply, shape: Shape, code: int) -> np.ndarray:
    """Return where the stored elements of a row belong under a uniform code; dense: everywhere."""
    j = np.arange(kind.k)
    if not shape.sparse:
        return j
    return 2 * j + code if kind.bits == 32 else 4 * (j // 2) + j % 2 + 2 * code


def plain(k: int, start: int) -> wgmma.MatrixDescriptor:
    """Return the descriptor of an unswizzled K-major tile of k bytes along K, 32 or 64."""
    return wgmma.MatrixDescriptor(start, 128, 8 * k, 0, "NONE")


def values_of(shape: Shape, words: np.ndarray) -> np.ndarray:
    """Return the numbers in the words of D: [..., 128, values]."""
    if shape.accumulator == "f16":
        return np.ascontiguousarray(words).view(np.float16).astype(np.float64)
    return words.view(np.float32 if shape.accumulator == "f32" else np.int32).astype(np.float64)


def matrix(shape: Shape, words: np.ndarray) -> np.ndarray:
    """Return D as a matrix by the accumulator's fragment, itself a probe."""
    at = wgmma.accumulator_coordinates(shape.n)
    found = np.zeros((*words.shape[:-2], 64, shape.n))
    found[..., at[..., 0], at[..., 1]] = values_of(shape, words)
    return found


def launch(device: Any, shape: Shape, image: np.ndarray, a: np.ndarray, b: np.ndarray, registers: np.ndarray,
           metadata: np.ndarray, variant: int) -> np.ndarray:  # fmt: skip
    """Return D for each of several pairs of descriptors that read one image, in one step."""
    blocks = max(len(a), len(b), len(registers), len(metadata))

    def spread(array: np.ndarray, kind: type, inner: tuple[int, ...]) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(array.astype(kind), (blocks, *inner)).reshape(blocks, 1, *inner))

    case = Case(
        image, len(image), 0, 1, spread(a.reshape(-1), np.uint64, ()), spread(b.reshape(-1), np.uint64, ()),
        spread(registers, np.uint32, (128, 4)), spread(metadata, np.uint32, (128,)),
        np.full(blocks, variant, dtype=np.int32),
    )  # fmt: skip
    return device.chain(shape, case)


NO_REGISTERS = np.zeros((1, 128, 4))
NO_METADATA = np.zeros((1, 128))


def run_probe(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of one probe, and ``verdict``: whether the library predicts them."""
    shape, ask = PROBES[name]
    device = Chains([shape])
    rng = np.random.default_rng(list(name.encode()))
    if isinstance(ask, Reads):
        return _reads(device, name, shape, ask, rng)
    if ask.what == "registers":
        return _registers(device, shape)
    if ask.what == "accumulator":
        return _accumulator(device, shape)
    return _metadata(device, shape, ask.selector, rng)


def _elements(count: int, dtype: str, shift: int) -> np.ndarray:
    numbers = np.arange(count) >> shift & (1 << PASS_BITS[dtype]) - 1
    return to_bytes(encode(numbers, dtype), dtype)


def _tile(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the bytes of a small unswizzled K-major tile, as ``plain`` describes it."""
    bits = wgmma.OPERAND_BITS[dtype]
    rows, k = values.shape
    raw = np.zeros(rows * k, dtype=encode(values[:1, :1], dtype).dtype)
    raw[places(plain(k * bits // 8, 0), rows, k, bits, "K")] = encode(values, dtype)
    return to_bytes(raw, dtype)


def _reads(device: Any, name: str, shape: Shape, ask: Reads, rng: np.random.Generator) -> dict[str, np.ndarray]:
    kind = wgmma.multiply(shape.a)
    bits = kind.bits
    rows, k = (64, kind.k) if ask.operand == "A" else (shape.n, shape.k)
    reach = 4 * (rows // 8 + 8)
    fields = random_fields(rng, ask.number, max(reach // 4, 10))
    words = np.array([descriptor(field).encode() for field in fields], dtype=np.uint64)
    flags = (0, 0, int(ask.major == "MN" and ask.operand == "A"), int(ask.major == "MN" and ask.operand == "B"), 0)
    variant = variants(shape).index(flags)
    found = np.full((len(fields), rows, k), -1, dtype=np.int64)
    elements = REGION_BYTES * 8 // bits
    for code in (0, 1) if shape.sparse and ask.operand == "B" else (0,):
        at = positions(kind, shape, code)  # logical k of each stored element
        for part in range(0, kind.k if ask.operand == "B" else 1, 64):
            if ask.operand == "A":
                select = np.zeros((shape.n, shape.k), dtype=np.int64)
                select[np.arange(shape.k), np.arange(shape.k)] = 1
            else:
                select = np.zeros((64, kind.k), dtype=np.int64)
                chosen = np.arange(part, min(part + 64, kind.k))
                select[chosen - part, chosen] = 1
            other = _tile(select, shape.a)
            known = plain(select.shape[1] * bits // 8, REGION_BYTES).encode()
            total = np.zeros((len(fields), 64, shape.n), dtype=np.int64)
            for shift in range(0, int(elements - 1).bit_length(), PASS_BITS[shape.a]):
                image = np.concatenate([_elements(elements, shape.a, shift), other])
                pair = (words, np.array([known])) if ask.operand == "A" else (np.array([known]), words)
                metadata = np.full((1, 128), UNIFORM[code])
                d = matrix(shape, launch(device, shape, image, *pair, NO_REGISTERS, metadata, variant))
                total += d.astype(np.int64) << shift
            if ask.operand == "A":
                found[:] = total[:, :, at]
            else:
                found[:, :, at[chosen]] = total[:, : len(chosen)].transpose(0, 2, 1)
    pairs = zip(fields, found, strict=True)
    right = np.array([np.array_equal(predicted(name, field), index) for field, index in pairs])
    wrong = sorted({wgmma.SWIZZLES[fields[i, 4]] for i in np.flatnonzero(~right)})
    verdict = f"{int(right.sum())} of {len(right)} as predicted; wrong under {wrong}"
    return {"fields": fields.astype(np.int32), "index": found.astype(np.int32), "verdict": np.array(verdict)}


def _registers(device: Any, shape: Shape) -> dict[str, np.ndarray]:
    """Which value of which thread stands at each (row, k) of A."""
    kind = wgmma.multiply(shape.a)
    each = 128 // kind.bits
    select = np.zeros((shape.n, shape.k), dtype=np.int64)
    select[np.arange(shape.k), np.arange(shape.k)] = 1
    image = _tile(select, shape.a)
    known = np.array([plain(shape.k * kind.bits // 8, 0).encode()])
    total = np.zeros((64, shape.n), dtype=np.int64)
    for shift in range(0, int(128 * each - 1).bit_length(), PASS_BITS[shape.a]):
        raw = _elements(128 * each, shape.a, shift).reshape(1, 128, 16).view(np.uint32)
        d = launch(device, shape, image, known, known, raw, np.full((1, 128), UNIFORM[0]), 0)
        total += matrix(shape, d)[0].astype(np.int64) << shift
    index = total[:, positions(kind, shape, 0)]
    at = wgmma.register_coordinates(kind.bits)
    expected = np.zeros((64, kind.k), dtype=np.int64)
    expected[at[..., 0], at[..., 1]] = np.arange(128 * each).reshape(128, each)
    verdict = "as predicted" if np.array_equal(index, expected) else "differs"
    return {"index": index.astype(np.int32), "verdict": np.array(verdict)}


def _accumulator(device: Any, shape: Shape) -> dict[str, np.ndarray]:
    """Which (row, column) of D each value of each thread is."""
    kind = wgmma.multiply(shape.a)
    bits = PASS_BITS[shape.a]
    found = np.zeros((128, shape.n // 2, 2), dtype=np.int64)
    for axis, rows in ((0, 64), (1, shape.n)):
        for shift in range(0, 8, bits):
            given = []
            for side, extent in ((0, 64), (1, shape.n)):
                values = np.zeros((extent, kind.k), dtype=np.int64)
                values[:, 0] = np.arange(rows) >> shift & (1 << bits) - 1 if side == axis else 1
                given.append(_tile(values, shape.a))
            image = np.concatenate(given)
            a, b = plain(32, 0).encode(), plain(32, len(given[0])).encode()
            words = launch(device, shape, image, np.array([a]), np.array([b]), NO_REGISTERS, NO_METADATA, 0)
            found[..., axis] += values_of(shape, words)[0].astype(np.int64) << shift
    verdict = "as predicted" if np.array_equal(found, wgmma.accumulator_coordinates(shape.n)) else "differs"
    return {"coordinates": found.astype(np.int16), "verdict": np.array(verdict)}


def _metadata(device: Any, shape: Shape, selector: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What random metadata makes of A, whose stored elements are 1, 2, 1, 2, ... in every row."""
    kind = wgmma.multiply(shape.a)
    trials = 24
    codes = np.array(list(wgmma.SPARSE_CODES[kind.bits]))
    nibbles = rng.choice(codes, (trials, 128, 8)).astype(np.uint64)
    words = (nibbles << 4 * np.arange(8, dtype=np.uint64)).sum(axis=2).astype(np.uint32)
    stored = np.broadcast_to(1 + np.arange(kind.k) % 2, (64, kind.k))
    select = np.eye(shape.k, dtype=np.int64)
    given = [_tile(stored, shape.a), _tile(select, shape.a)]
    a = plain(32, 0).encode()
    b = plain(64, len(given[0])).encode()
    variant = variants(shape).index((0, 0, 0, 0, selector))
    d = matrix(
        shape, launch(device, shape, np.concatenate(given), np.array([a]), np.array([b]), NO_REGISTERS, words, variant)
    )
    at = wgmma.metadata_coordinates(kind.bits, selector)
    heard = at[..., 0] >= 0
    size = 2 if kind.bits == 32 else 4
    told = np.zeros((trials, 64, shape.k // size), dtype=np.int64)
    told[:, at[heard][:, 0], at[heard][:, 1]] = nibbles[:, heard].astype(np.int64)
    expected = np.zeros((trials, 64, shape.k // size, size))
    for code, inside in wgmma.SPARSE_CODES[kind.bits].items():
        one = np.zeros(size)
        one[list(inside)] = 1 if size == 2 else (1, 2)
        expected[told == code] = one
    if size == 2:  # one stored element per group: 1, 2, 1, 2, ...
        expected *= (1 + np.arange(shape.k // size) % 2)[None, None, :, None]
    verdict = "as predicted" if np.array_equal(d.reshape(expected.shape), expected) else "differs"
    return {"words": words, "d": d.astype(np.int8), "verdict": np.array(verdict)}


# ------------------------------------------------------------------------------------------------------------ operand B

WGMMA_N = (8, 64, 128, 256)

_PROBE_B = """
// Which element is read for B[k][n]: A selects row k of B, shared memory holds every element's own index, one byte
// of it per pass.
extern "C" __global__ void __launch_bounds__(128) la_probe_b_{n}({signature})
{{
    unsigned char* base = la_aligned_shared(1024);
    unsigned short* region = (unsigned short*)base;
    unsigned short* a = (unsigned short*)(base + {region});
    const la_u32 address = la_shared_address(base);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // A, K-major without swizzle: (m, k) lies at (m % 8) * 16 + (m / 8) * 256 + (k / 8) * 128 + (k % 8) * 2 bytes.
    for (int i = threadIdx.x; i < 64 * 16; i += 128) {{
        const int m = i / 16, k = i % 16;
        a[(m % 8) * 8 + (m / 8) * 128 + (k / 8) * 64 + k % 8] = m == k ? 0x3C00 : 0;
    }}
    const la_u64 a_descriptor = (la_u64)(((address + {region}) & 0x3FFFF) >> 4) | (8ull << 16) | (16ull << 32);
    const la_u64 b_descriptor = descriptors[blockIdx.x] + ((address & 0x3FFFF) >> 4);

    int found[{registers}];
    for (int pass = 0; pass < 2; ++pass) {{
        for (int i = threadIdx.x; i < {elements}; i += 128) {{
            const int value = (i >> (8 * pass)) & 255;  // exact in half precision
            int exponent = 0;
            while (value >> (exponent + 1)) ++exponent;
            region[i] = value ? (unsigned short)((exponent + 15) << 10 | ((value << (10 - exponent)) & 1023)) : 0;
        }}
        la_fence_async();
        __syncthreads();
        float d[{registers}];
        for (int v = 0; v < {registers}; ++v) d[v] = 0.0f;
        la_wgmma_fence();
        if (transposed[blockIdx.x]) la_wgmma_m64n{n}k16_f16<0, 1>(d, a_descriptor, b_descriptor, 0);
        else la_wgmma_m64n{n}k16_f16<0, 0>(d, a_descriptor, b_descriptor, 0);
        la_wgmma_commit();
        la_wgmma_wait();
        for (int v = 0; v < {registers}; ++v) found[v] = pass ? found[v] | (int)d[v] << 8 : (int)d[v];
        __syncthreads();
    }}
    if (warp == 0) {{
        for (int v = 0; v < {registers}; ++v) {{
            const int k = lane / 4 + 8 * (v / 2 % 2), column = 2 * (lane % 4) + v % 2 + 8 * (v / 4);
            found_index[(la_u64)blockIdx.x * 16 * {n} + k * {n} + column] = (unsigned short)found[v];
        }}
    }}
}}
"""


def probe_b_kernel(n: int) -> KernelSource:
    """Return the probe for one N."""
    parameters = (("const la_u64*", "descriptors"), ("const int*", "transposed"), ("unsigned short*", "found_index"))
    body = _PROBE_B.format(
        n=n, registers=n // 2, region=REGION_BYTES, elements=REGION_BYTES // 2,
        signature=", ".join(f"{kind} {name}" for kind, name in parameters),
    )  # fmt: skip
    return KernelSource(
        f"la_probe_b_{n}",
        PRELUDE + wgmma_prelude("f16", n) + body,
        "sm_90a",
        128,
        REGION_BYTES + 2048 + 1024,
        parameters,
    )


def wgmma_fields(n: int, number: int, seed: int) -> np.ndarray:
    """Return random descriptors: start bytes, LBO and SBO in 16-byte units, base offset, swizzle code, transposed."""
    rng = np.random.default_rng(seed)
    steps = max(n // 8 - 1, 1)
    most = (REGION_BYTES - 12288) // 16 // (steps + 1)
    rows = []
    for i in range(number):
        trans, swizzle = i % 2, i // 2 % 4
        start = 16 * int(rng.integers(0, 256)) if rng.random() < 0.7 else 1024 * int(rng.integers(0, 4))
        lbo, sbo = int(rng.integers(1, most)), int(rng.integers(1, most))
        if rng.random() < 0.5:  # canonical distances: whole swizzle atoms
            atom = (8, 16, 32, 64)[(0, 3, 2, 1)[swizzle]]
            lbo, sbo = (max(1, v // atom) * atom for v in (lbo, sbo))
        rows.append(
            (
                start,
                min(lbo, 16383),
                min(sbo, 16383),
                int(rng.integers(0, 8)) if rng.random() < 0.5 else 0,
                swizzle,
                trans,
            )
        )
    return np.array(rows, dtype=np.int32)


def predict_b(field: np.ndarray, n: int) -> np.ndarray:
    """Return the element index read for (k, n) by the rule measured for operand A, with n in place of m."""
    start, lbo, sbo, base_offset, code, transposed = (int(v) for v in field)
    w = (1, 8, 4, 2)[code]
    rest, leading, stride = offsets("MN" if transposed else "K", w, n, 2)
    address = start + rest + leading * 16 * lbo + stride * 16 * sbo
    return ((address ^ (((address >> 7) - base_offset) % w) << 4) // 2).T


def operand_b_job(run: Run) -> None:
    """Random descriptors of operand B for each N, one launch each."""
    count = max(8, int(160 * run.options.scale))
    jobs, fields = [], {n: wgmma_fields(n, count, n) for n in WGMMA_N}
    for n in WGMMA_N:
        for field in fields[n]:
            start, leading, stride, offset, code, transposed = (int(value) for value in field)
            word = start >> 4 | leading << 16 | stride << 32 | offset << 49 | code << 62
            given = [np.array([word], dtype=np.uint64), np.array([transposed], dtype=np.int32)]
            given.append(np.zeros((16, n), dtype=np.uint16))
            jobs.append(Launch(f"B {n}", probe_b_kernel(n), given, (2,), expected={2: predict_b(field, n)}))
    results = run.launches(jobs)
    arrays: dict[str, np.ndarray] = {}
    for place, n in enumerate(WGMMA_N):
        mine = results[place * count : (place + 1) * count]
        index = [each.arrays.get(2, np.zeros((16, n), dtype=np.uint16)) for each in mine]
        arrays |= {f"{n}/fields": fields[n], f"{n}/index": np.array(index),
                   f"{n}/fault": np.array([each.fault for each in mine]),
                   f"{n}/done": np.array([not each.fault for each in mine], dtype=np.int32)}  # fmt: skip
    run.save("wgmma_b_dev", **arrays)
    wrong = sum(result.wrong(job) > 0 for job, result in zip(jobs, results, strict=True))
    run.write("wgmma_b_dev", {"descriptors": len(jobs), "wrong": wrong, "faults": sum(bool(r.fault) for r in results)})
