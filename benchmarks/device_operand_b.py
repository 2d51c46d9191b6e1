"""Which element ``wgmma`` reads for operand B through random matrix descriptors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from device_backends import Cuda, Host

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude

REGION_BYTES = 131072
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
    start, lbo, sbo, base_offset, code, trans = (int(v) for v in field)
    w = (1, 8, 4, 2)[code]
    k, m = np.meshgrid(np.arange(16), np.arange(n), indexing="ij")
    lead, stride = 16 * lbo, 16 * sbo
    if not trans:
        offset = m % 8 * 16 * w + m // 8 * stride + (2 * k if code else k // 8 * lead + k % 8 * 2)
    elif code:
        offset = m % (8 * w) * 2 + m // (8 * w) * lead + k % 8 * 16 * w + k // 8 * stride
    else:
        offset = m % 8 * 2 + m // 8 * stride + k % 8 * 16 + k // 8 * lead
    address = start + offset
    address = address ^ (((address >> 7) - base_offset) % w) << 4
    return address // 2


def run_wgmma(device: Cuda | Host, job: dict[str, np.ndarray], cubins: Path) -> dict[str, np.ndarray]:
    """Run the descriptors of one N."""
    n, fields = int(job["n"]), job["fields"].astype(np.uint64)
    kernel = probe_b_kernel(n)
    descriptors = fields[:, 0] >> np.uint64(4) | fields[:, 1] << np.uint64(16) | fields[:, 2] << np.uint64(32)
    descriptors |= fields[:, 3] << np.uint64(49) | fields[:, 4] << np.uint64(62)
    index = np.zeros((len(fields), 16, n), dtype=np.uint16)
    out = device.upload(index)
    args = [device.upload(descriptors), device.upload(job["fields"][:, 5].astype(np.int32)), out]
    device.launch(kernel, cubins, len(fields), kernel.dynamic_smem_bytes, args)
    return {"done": np.ones(len(fields), dtype=np.int32), "index": device.download(out, index)}
