"""Attention in 64-bit floats, and what a kernel makes of the same arrays of 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.kernels.attention import AttentionKernel

Halves: TypeAlias = npt.NDArray[np.uint16]
Numbers: TypeAlias = npt.NDArray[Any]
Runner: TypeAlias = Callable[[AttentionKernel, Sequence[Halves]], tuple[Halves, npt.NDArray[np.int32]]]
"""Takes a kernel with Q, K, V; returns O and the status words."""


def halves(values: Numbers, dtype: str) -> Halves:
    """Numbers in 16 bits, to nearest even."""
    if dtype == "f16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def numbers(bits: Halves, dtype: str) -> Numbers:
    """The numbers that 16 bits state."""
    if dtype == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def attended(q: Numbers, k: Numbers, v: Numbers, scale: float, last: int | None) -> Numbers:
    """softmax(scale Q K^T) V; 0 for a query that sees no key."""
    scores = np.einsum("bic,bjc->bij", q, k) * scale
    if last is not None:
        scores[:, np.arange(k.shape[1]) > np.arange(q.shape[1])[:, None] + last] = -np.inf
    most = scores.max(axis=2, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = weights.sum(axis=2, keepdims=True)
    return np.asarray(np.einsum("bij,bjc->bic", weights, v) / np.where(total > 0, total, 1))


def compared(run: Runner, made: AttentionKernel, dtype: str, seed: int = 0, spread: float = 1.0) -> None:
    """Compare a kernel's result with that of 64-bit floats.

    Weights are rounded to 16 bits, 2^-9 or 2^-12 of each, and so is the result; values are below 6.
    """
    batches, queries, keys, columns = made.shape
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal((batches, rows, columns)) for rows in (queries, keys, keys)]
    given = [halves(values * part, dtype) for values, part in zip(drawn, (spread, 1, 1), strict=True)]
    found, status = run(made, given)
    assert (status == 1).all(), [made.emitted.gave_up(int(word)) for word in status]
    q, k, v = [numbers(bits, dtype) for bits in given]
    wanted, got = attended(q, k, v, made.scale, made.last), numbers(found, dtype)
    assert np.isfinite(got).all()
    step = 2.0 ** (-9 if dtype == "bf16" else -12)
    assert (np.abs(got - wanted) <= step * (np.abs(wanted) + np.abs(v).max()) + 1e-6).all(), np.abs(got - wanted).max()
