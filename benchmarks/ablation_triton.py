"""Triton's product and attention for the ablation: persistent, by tensor descriptors, with configurations to try.

Both follow what Triton's public tutorials recommend for this chip (a persistent product by descriptors whose loop over
tiles is flattened, grouped tiles, an epilogue in parts; attention with running maxima in base 2 and the masked
diagonal apart), in texts of their own. Warps are not specialised: Triton 3.6 refuses ``warp_specialize`` for these
texts on ``sm_90``, or accepts it and changes nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def nothing(there):
    """What a process compiles first."""


@triton.jit
def product(
    a, b, d, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TOGETHER: tl.constexpr, UNITS: tl.constexpr,
    HALVES: tl.constexpr, FLAT: tl.constexpr, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
):  # fmt: skip
    """D = A B^T, tile by tile; a turned operand is K x M or K x N."""
    down = tl.cdiv(m, BM)
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), down * across, UNITS, flatten=FLAT):
        group = tile // (TOGETHER * across) * TOGETHER
        rows = min(down - group, TOGETHER)
        rest = tile % (TOGETHER * across)
        row = (group + rest % rows) * BM
        column = rest // rows * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            left = a.load([step * BK, row]).T if A_TURNED else a.load([row, step * BK])
            right = b.load([step * BK, column]) if B_TURNED else b.load([column, step * BK]).T
            sums = tl.dot(left, right, sums)
        if HALVES:
            low, high = tl.split(tl.permute(tl.reshape(sums, (BM, 2, BN // 2)), (0, 2, 1)))
            d.store([row, column], low.to(d.dtype))
            d.store([row, column + BN // 2], high.to(d.dtype))
        else:
            d.store([row, column], sums.to(d.dtype))


@triton.jit
def blocks_of_keys(
    sums, total, top, q, k, v, head, row, first, last, keys, scale,
    BM: tl.constexpr, BN: tl.constexpr, COLUMNS: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Add the keys from first to last."""
    for at in range(first, last, BN):
        scores = tl.dot(q, tl.reshape(k.load([head, at, 0]), (BN, COLUMNS)).T)
        if MASKED:
            key = at + tl.arange(0, BN)
            seen = (key < keys)[None, :]
            if CAUSAL:
                seen = seen & (row + tl.arange(0, BM)[:, None] >= key[None, :])
            scores = tl.where(seen, scores, -1e30)
        most = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - most[:, None])
        keep = tl.math.exp2(top - most)
        total = total * keep + tl.sum(weights, 1)
        sums = sums * keep[:, None]
        values = tl.reshape(v.load([head, at, 0]), (BN, COLUMNS))
        sums = tl.dot(weights.to(q.dtype), values, sums)
        top = most
    return sums, total, top


@triton.jit
def attention(
    q, k, v, o, keys, scale,
    BM: tl.constexpr, BN: tl.constexpr, COLUMNS: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """O = softmax(scale Q K^T) V of one tile of queries; scale has the logarithm of 2 in it."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    row = tile * BM
    if CAUSAL:  # tiles with many keys first
        row = (tl.num_programs(0) - 1 - tile) * BM
    mine = tl.reshape(q.load([head, row, 0]), (BM, COLUMNS))
    sums = tl.zeros((BM, COLUMNS), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1e30, tl.float32)
    last = keys
    if CAUSAL:
        last = min(keys, row + BM)
    whole = last
    if CAUSAL:
        whole = min(row, keys) // BN * BN
    elif not EVEN:
        whole = keys // BN * BN
    sums, total, top = blocks_of_keys(
        sums, total, top, mine, k, v, head, row, 0, whole, keys, scale, BM, BN, COLUMNS, False, False
    )
    if CAUSAL or not EVEN:
        sums, total, top = blocks_of_keys(
            sums, total, top, mine, k, v, head, row, whole, last, keys, scale, BM, BN, COLUMNS, True, CAUSAL
        )
    found = (sums / total[:, None]).to(mine.dtype)
    o.store([head, row, 0], tl.reshape(found, (1, BM, COLUMNS)))
