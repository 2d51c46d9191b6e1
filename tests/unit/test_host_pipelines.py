"""Kernels of several roles on the CPU: device functions, hangs by name, asynchronous reads, schedules by seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.prelude import CLUSTER_PRELUDE, PIPELINE_PRELUDE, wgmma_prelude

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
PRELUDES = TENSOR_PRELUDE + PIPELINE_PRELUDE + CLUSTER_PRELUDE
PACK = """
extern "C" __global__ void pack(const float* from, la_u32* into)
{
    const float low = from[2 * threadIdx.x], high = from[2 * threadIdx.x + 1];
    into[2 * threadIdx.x] = la_pack_bf16(low, high);
    into[2 * threadIdx.x + 1] = la_pack_f16(low, high);
}
"""


def test_floats_are_packed_to_nearest_even() -> None:
    rng = np.random.default_rng(5)
    values = (rng.standard_normal(1024) * 2.0 ** rng.integers(-30, 17, 1024)).astype(np.float32)
    values[:8] = [65504, 65519.99, 65520, 2**-24, 2**-25, 2**-25 * 1.001, np.inf, -0.0]
    words = np.zeros(1024, dtype=np.uint32)
    parameters = (("const float*", "from"), ("la_u32*", "into"))
    assert hostsim.run(KernelSource("pack", PRELUDES + PACK, "sm_90a", 512, 0, parameters), [values, words]) == 0
    with np.errstate(over="ignore"):
        assert (words[1::2].copy().view(np.float16) == values.astype(np.float16)).all()
    kept = words[::2].copy().view(np.uint16)
    near, bits = (kept.astype(np.uint32) << 16).view(np.float32), values.view(np.uint32).astype(np.int64)
    assert (kept == (bits >> 16) + (bits % 65536 + (bits >> 16 & 1) > 32768)).all()
    assert (near[np.isinf(values)] == values[np.isinf(values)]).all()


MULTIPLY = """
extern "C" __global__ void __launch_bounds__(128) multiply(const unsigned char* a, const unsigned char* b, float* into)
{
    for (int i = threadIdx.x; i < 2048; i += 128) la_shared()[i] = a[i];
    for (int i = threadIdx.x; i < 256; i += 128) la_shared()[2048 + i] = b[i];
    la_fence_async();
    __syncthreads();
    const la_u64 at = (la_shared_address(la_shared()) & 0x3FFFF) >> 4;
    float d[4];
    la_wgmma_fence();
    la_wgmma_m64n8k32_TYPE<>(d, at | 64ull << 16 | 8ull << 32, (at + 128) | 8ull << 16 | 16ull << 32, 0);
    la_wgmma_commit();
    la_wgmma_wait();
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int v = 0; v < 4; ++v) into[(row + v / 2 * 8) * 8 + column + v % 2] = d[v];
}
"""


def byte_values(dtype: str) -> npt.NDArray[np.float32]:
    """The 256 values of a type of 8 bits, from its definition (OCP 8-bit floating point, 1.0)."""
    bits = np.arange(256)
    many, bias = (3, 7) if dtype == "e4m3" else (2, 15)
    exponent, fraction = bits >> many & (255 >> (many + 1)), (bits & (1 << many) - 1) / (1 << many)
    values = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias))
    if dtype == "e4m3":
        values[bits % 128 == 127] = np.nan
    else:
        values[bits % 128 == 124] = np.inf
        values[bits % 128 > 124] = np.nan
    return np.where(bits >> 7, -values, values).astype(np.float32)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_products_of_bytes(dtype: str) -> None:
    """Rows of A in core matrices of 8 x 16 bytes: leading between those along k, stride between those along rows."""
    text = PRELUDES + wgmma_prelude(dtype, 8) + MULTIPLY.replace("TYPE", dtype)
    parameters = (("const unsigned char*", "a"), ("const unsigned char*", "b"), ("float*", "into"))
    kernel = KernelSource("multiply", text, "sm_90a", 128, 4096, parameters)
    rng, values = np.random.default_rng(7), byte_values(dtype)
    finite = np.flatnonzero(np.isfinite(values) & (np.abs(values) < 64) & (np.abs(values) >= 1 / 64))
    for round in range(5):
        a = rng.choice(finite, (64, 32)).astype(np.uint8)
        b = rng.choice(finite, (8, 32)).astype(np.uint8)
        if round < 4:  # every byte once, times 1
            a[:], b[:] = 0, 0
            a[:, 5], b[:, 5] = np.arange(64 * round, 64 * round + 64), np.flatnonzero(values == 1)[0]
        images = [m.reshape(-1, 8, 2, 16).transpose(2, 0, 1, 3).copy().reshape(-1) for m in (a, b)]
        into = np.zeros((64, 8), dtype=np.float32)
        assert hostsim.run(kernel, [*images, into]) == 0
        wanted = values[a].astype(np.float64) @ values[b].astype(np.float64).T
        assert np.allclose(into, wanted, rtol=1e-5, atol=1e-3, equal_nan=True)
