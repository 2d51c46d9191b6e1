"""Kernels in Triton, written for this repository under its licence, whose TTGIR is stored beside this file."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def normalized(x, y, w, stride, n, R: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    square = tl.zeros((R, B), tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row[:, None] * stride + at[None, :], mask=at[None, :] < n, other=0.0)
        square += v * v
    scale = tl.rsqrt(tl.sum(square, 1) / n)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row[:, None] * stride + at[None, :], mask=at[None, :] < n, other=0.0)
        v = v * scale[:, None] * tl.load(w + at, mask=at < n)[None, :]
        tl.store(y + row[:, None] * stride + at[None, :], v, mask=at[None, :] <= n)


@triton.jit
def updated(x, y, v, n, B: tl.constexpr):
    at = tl.arange(0, B)
    t = tl.load(x + at)
    tl.atomic_add(y + at, t)
    tl.atomic_add(y + B + at, t, mask=at < n)
    for turn in range(0, 8):
        tl.atomic_add(v + turn * 32 + tl.arange(0, 32)[:, None] + tl.zeros((32, 8), tl.int32), 1)
    tl.atomic_add(v + tl.zeros((B,), tl.int32), tl.full((B,), 1, tl.int32))
    part = tl.arange(0, 64)
    tl.store(v + part, tl.atomic_cas(v + part * 2, part, part + 1))
    tl.atomic_add(v + tl.arange(0, 256), tl.histogram(tl.load(v + at), 256))
    tl.atomic_xchg(v, 0)


@triton.jit
def summed(x, y, R: tl.constexpr, B: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, B)
    at = r[:, None] * B + c[None, :]
    v = tl.load(x + at)
    tl.store(y + at, tl.cumsum(v, 1))
    tl.store(y + at, tl.cumsum(v, 0))
    tl.store(y + r, tl.argmax(v, 1).to(tl.float32))
    tl.store(y + c, tl.sum(v, 0))
    tl.store(y + r, tl.max(v.to(tl.int32), 1).to(tl.float32))
    flat = tl.arange(0, 2048)
    tl.store(y + flat, tl.cumsum(tl.load(x + flat), 0))


@triton.jit
def rows(x, i, y, M, B: tl.constexpr, D: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, D], [D, 1], [1, D])
    sink = tl.make_tensor_descriptor(y, [M, D], [D, 1], [1, D])
    at = tl.load(i + tl.arange(0, B))
    sink.scatter(source.gather(at, 0), at, 0)


@triton.jit
def added(x, y, M, N, B: tl.constexpr, D: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, D])
    sink = tl.make_tensor_descriptor(y, [M, N], [N, 1], [B, D])
    sink.atomic_add([0, 0], source.load([0, 0]))


@triton.jit
def softmax(x, y, h, stride, n, B: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * stride + at, e / tl.sum(e, 0), mask=at < n)
    tl.atomic_add(h + at, e.to(tl.float16), mask=at < n)
