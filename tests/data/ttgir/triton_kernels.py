"""Kernels in Triton whose TTGIR is stored here; ``texts.py`` compiles them."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def gemm_pointers(a, b, c, M, N, K, stride: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * stride + inner[None, :]
    pb = b + inner[:, None] * stride + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * stride
    tl.store(c + rows[:, None] * stride + columns[None, :], acc.to(tl.float16))


@triton.jit
def gemm_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=SPECIAL):
        acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, column]), acc)
    c.store([row, column], acc.to(tl.float16))


@triton.jit
def gemm_persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLAT: tl.constexpr, SPECIAL: tl.constexpr
):
    wide = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * wide
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLAT, warp_specialize=SPECIAL):
        row, column = (tile // wide) * BM, (tile % wide) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, column]), acc)
        c.store([row, column], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, o, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, SPECIAL: tl.constexpr):
    row = tl.program_id(0) * BM
    tile = q.load([row, 0])
    best = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in tl.range(0, length, BN, warp_specialize=SPECIAL):
        scores = tl.dot(tile, k.load([start, 0]).T) * scale
        most = tl.maximum(best, tl.max(scores, 1))
        weights = tl.math.exp2(scores - most[:, None])
        shrink = tl.math.exp2(best - most)
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), v.load([start, 0]), acc * shrink[:, None])
        best = most
    o.store([row, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def copy(a, c, rows, BM: tl.constexpr, BN: tl.constexpr):
    for row in tl.range(0, rows, BM):
        c.store([row, 0], a.load([row, 0]) * 2.0)
