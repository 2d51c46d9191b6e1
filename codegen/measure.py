"""Functions that measure the choices of a space on a GPU: build, compile, launch, compare, time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from layoutalg.codegen import launch
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels.attention import attention_kernel, checked_attention
from layoutalg.codegen.kernels.gemm import checked_product, gemm_kernel
from layoutalg.codegen.kernels.gemm_forms import CLUSTERS
from layoutalg.codegen.kernels.spaces import attention_options, form_of
from layoutalg.ground.errors import DeviceMismatchError, Diagnostic, MissingExtraError
from layoutalg.ground.record import Checked
from layoutalg.synth.search.roofline import CHECK
from layoutalg.synth.search.space import Choice

Words = npt.NDArray[Any]
FIELDS: Final = {"bf16": (8, 7), "f16": (5, 10), "e4m3": (4, 3), "e5m2": (5, 2)}
"""Bits of the exponent and of the mantissa."""
ROWS: Final = 16
"""Rows of a result that are compared."""
UNWRITTEN: Final = 0xFFFF
"""A word of a result before the launch: not a number."""
TOLERANCE: Final = 2.0**-6
"""Of the largest value of a row: results have 8 bits or more, weights of an attention as well."""


@dataclass(frozen=True, slots=True)
class MeasureGemm(Checked, code="LA886"):
    """Measures choices of ``gemm_space`` on the first GPU, for ``la.tune``: milliseconds; picklable.

    A wrong product, or a block that gave up, is an error. Without a GPU of the target: LA532.

    Args:
        shape: (M, N, K).
        dtype: As of ``gemm_space``.
        target: As of ``gemm_space``.
        result: As of ``gemm_space``.
        major_a: As of ``gemm_space``.
        major_b: As of ``gemm_space``.
        repeats: Launches that are timed; the answer is their median.

    Example:
        >>> MeasureGemm((4096, 4096, 4096), "e4m3").repeats
        12
    """

    shape: tuple[int, int, int]
    dtype: str = "bf16"
    target: str = "sm_90a"
    result: str = "bf16"
    major_a: str = "K"
    major_b: str = "K"
    repeats: int = 12

    def _validate(self) -> None:
        CHECK.integer(self.repeats, "repeats", 1, 1 << 16)
        shape, kind = checked_product(self.shape, self.dtype, self.target, self.result, self.major_a, self.major_b)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", kind.name)

    def __call__(self, choice: Choice) -> float:
        require_gpu(self.target)
        majors = {"major_a": self.major_a, "major_b": self.major_b}
        made = gemm_kernel(self.shape, self.dtype, self.target, form=form_of(choice), result=self.result, **majors)
        (m, n, k), kind = self.shape, self.dtype
        turned = self.major_a == "MN", self.major_b == "MN"
        a, b = _operands(((m, k), (n, k)), kind, turned)
        blocks = min(made.blocks, CLUSTERS[made.form.ctas] * made.form.ctas)

        def arguments(d: launch.DeviceTensor, status: launch.DeviceTensor) -> list[Any]:
            return made.arguments(a, b, d, blocks, status)

        return _timed(made.kernel, arguments, _product_rows(self), (m, n), self.result, blocks, self.repeats)


@dataclass(frozen=True, slots=True)
class MeasureAttention(Checked, code="LA886"):
    """Measures choices of ``attention_space`` as ``MeasureGemm`` those of products.

    Args:
        shape: (batches times heads, queries, keys, columns).
        dtype: As of ``attention_space``.
        target: As of ``attention_space``.
        causal: As of ``attention_space``.
        repeats: Launches that are timed; the answer is their median.

    Example:
        >>> MeasureAttention((32, 4096, 4096, 128), causal=True).repeats
        12
    """

    shape: tuple[int, int, int, int]
    dtype: str = "bf16"
    target: str = "sm_90a"
    causal: bool = False
    repeats: int = 12

    def _validate(self) -> None:
        CHECK.integer(self.repeats, "repeats", 1, 1 << 16)
        shape, kind = checked_attention(self.shape, self.dtype, self.target)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", kind)

    def __call__(self, choice: Choice) -> float:
        require_gpu(self.target)
        made = attention_kernel(self.shape, self.dtype, self.target, causal=self.causal, **attention_options(choice))
        (batches, queries, keys, columns), kind = self.shape, self.dtype
        extents = tuple([(batches, rows, columns) for rows in (queries, keys, keys)])
        q, k, v = _operands(extents, kind, (False,) * 3)

        def arguments(o: launch.DeviceTensor, status: launch.DeviceTensor) -> list[Any]:
            return made.arguments(q, k, v, o, status)

        return _timed(made.kernel, arguments, _attention_rows(self), extents[0], kind, made.blocks, self.repeats)


def require_gpu(target: str) -> None:
    """Refuse to measure where the first GPU does not run a target's kernels.

    Raises: MissingExtraError: LA532.
    """
    found = launch.device()
    if found is None or not found.runs(target):
        because = "there is no GPU" if found is None else f"the GPU is {found.name}, {found.compute_capability}"
        what = f"measuring needs a GPU that runs {target}; without one, rank the choices with space.ranked()"
        raise MissingExtraError(Diagnostic("LA532", what, because=because))


def decoded(words: Words, kind: str) -> npt.NDArray[np.float64]:
    """Return the numbers of words of a type, none of them subnormal, infinite or NaN.

    Example:
        >>> decoded(np.array([0x3F80, 0xC000, 0x3FC0], np.uint16), "bf16").tolist()
        [1.0, -2.0, 1.5]
    """
    exponent_bits, mantissa_bits = FIELDS[kind]
    wide = words.astype(np.int32)
    exponent = (wide >> mantissa_bits & (1 << exponent_bits) - 1) - (1 << exponent_bits - 1) + 1
    mantissa = 1 + (wide & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    numbers: npt.NDArray[np.float64] = np.ldexp(
        np.where(wide >> exponent_bits + mantissa_bits & 1, -mantissa, mantissa), exponent
    )
    return numbers


def _rows(count: int) -> npt.NDArray[np.int64]:
    """The rows of a result that are compared: first, last, and some between."""
    return np.unique(np.linspace(0, count - 1, ROWS).astype(np.int64))


@lru_cache(maxsize=1)
def _product_rows(asked: MeasureGemm) -> Words:
    """Rows of a product, in double precision."""
    (m, n, k), kind = asked.shape, asked.dtype
    turned = asked.major_a == "MN", asked.major_b == "MN"
    a, b = (
        words.T if other else words for words, other in zip(_host(((m, k), (n, k)), kind, turned), turned, strict=True)
    )
    return decoded(a[_rows(m)], kind) @ decoded(b, kind).T


@lru_cache(maxsize=1)
def _attention_rows(asked: MeasureAttention) -> Words:
    """Rows of an attention, in double precision."""
    (batches, queries, keys, columns), kind = asked.shape, asked.dtype
    extents = tuple([(batches, rows, columns) for rows in (queries, keys, keys)])
    q, k, v = _host(extents, kind, (False,) * 3)
    found = []
    for row in _rows(batches * queries):
        head, query = divmod(int(row), queries)
        last = query + 1 if asked.causal else keys
        scores = decoded(k[head, :last], kind) @ decoded(q[head, query], kind) / math.sqrt(columns)
        weights = np.exp(scores - scores.max())
        found.append(weights / weights.sum() @ decoded(v[head, :last], kind))
    return np.stack(found)


@lru_cache(maxsize=1)
def _host(extents: tuple[tuple[int, ...], ...], kind: str, turned: tuple[bool, ...]) -> tuple[Words, ...]:
    """Random words whose numbers are from 1/8 to 2, with either sign; some are stored turned."""
    exponent_bits, mantissa_bits = FIELDS[kind]
    rng, bias = np.random.default_rng(1), (1 << exponent_bits - 1) - 1
    word = np.uint16 if exponent_bits + mantissa_bits == 15 else np.uint8
    found = []
    for shape, other in zip(extents, turned, strict=True):
        drawn = rng.integers(0, 1 << mantissa_bits + 3, shape[::-1] if other else shape, dtype=np.uint16)
        sign, rest = drawn >> mantissa_bits + 2, drawn & (1 << mantissa_bits + 2) - 1
        found.append(((sign << exponent_bits + mantissa_bits) + rest + (bias - 3 << mantissa_bits)).astype(word))
    return tuple(found)


@lru_cache(maxsize=1)
def _operands(
    extents: tuple[tuple[int, ...], ...], kind: str, turned: tuple[bool, ...]
) -> tuple[launch.DeviceTensor, ...]:
    """The words of ``_host`` on the device."""
    return tuple([launch.upload(each) for each in _host(extents, kind, turned)])


def _timed(
    kernel: KernelSource,
    arguments: Callable[[launch.DeviceTensor, launch.DeviceTensor], list[Any]],
    right: Words,
    shape: tuple[int, ...],
    result: str,
    blocks: int,
    repeats: int,
) -> float:
    """The median time of a kernel whose result is right: all of it is written, and some rows are compared."""
    out = launch.upload(np.full(shape, UNWRITTEN, np.uint16))
    status = launch.upload(np.zeros(blocks, np.int32))
    given = arguments(out, status)
    launch.run(kernel, given, blocks=blocks)
    if (launch.download(status, 0, 4 * blocks).view(np.int32) != 1).any():
        raise DeviceMismatchError(Diagnostic("LA898", "a block of the kernel gave up", (kernel.name,)))
    found = launch.download(out, 0, 2 * math.prod(shape)).view(np.uint16).reshape(-1, shape[-1])
    if (found == UNWRITTEN).any():
        raise DeviceMismatchError(Diagnostic("LA898", "the kernel has not written all numbers", (kernel.name,)))
    error = np.abs(decoded(found[_rows(len(found))], result) - right).max(axis=1) / np.abs(right).max(axis=1)
    if not (error < TOLERANCE).all():
        because = f"an error of {error.max():.3g} of the largest value of a row"
        raise DeviceMismatchError(Diagnostic("LA898", "the kernel computes wrong numbers", (kernel.name,), because))
    return launch.milliseconds(kernel, given, blocks=blocks, repeats=repeats)
