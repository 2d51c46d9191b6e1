"""Kernels that move arrays become machine code of every target, with nothing in local memory."""

from __future__ import annotations

import re

import pytest
from instruments.elf import local_bytes
from instruments.joined_texts import joined

from layoutalg.codegen import (
    KernelSource,
    copy_kernel,
    gather_kernel,
    hip,
    staging_kernel,
    to_cubin,
    transpose_kernel,
    transpose_ring_kernel,
)
from layoutalg.codegen.kernels import transpose_windows_kernel
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.targets.registry import NVIDIA

needs_clang = pytest.mark.skipif(not hip.available(), reason='no clang for AMD: pip install "layoutalg[hip]"')


def portable(arch: str) -> KernelSource:
    staged = transpose_kernel((64, 64), "f16", arch, name="staged").swizzle
    return joined(
        [made.kernel for made in (
            transpose_windows_kernel((8191, 8193), "f16", arch), transpose_kernel((8192, 8192), "f32", arch),
            transpose_kernel((8192, 4096), "f16", arch, name="even"), copy_kernel((999, 77), "u8", arch, way="vector"),
            gather_kernel((64, 100), 1, 50, "f32", arch), gather_kernel((64, 3000), 1, 50, "f64", arch),
            gather_kernel((64, 30, 8), 1, 50, "u8", arch), staging_kernel(staged, (500, 300), arch),
            gather_kernel((64, 100), 1, 50, "f16", arch, index_dtype="s64"),
        )],
    )  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_nvidia(arch):
    pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    code = to_cubin(portable(arch))
    assert code[:4] == b"\x7fELF"
    assert arch == "sm_80" or local_bytes(code) == 0
    if arch in NVIDIA:  # the text is that of sm_90a: descriptors are arguments, and no other device was measured
        engine = [
            transpose_ring_kernel((8192, 8192), "f16"), transpose_ring_kernel((8192, 8192), "f32"),
            copy_kernel((256, 512, 512), "f32"), copy_kernel((8192, 8192), "f16", swizzle="128B", name="swizzled"),
        ]  # fmt: skip
        head = engine[0].kernel.text[: engine[0].kernel.text.index("\n// Loads")]
        assert all(made.kernel.text.startswith(head) for made in engine)
        text = head + "".join(made.kernel.text[len(head) :] for made in engine)
        whole = KernelSource("all", text, arch, 32, 0, engine[0].kernel.parameters)
        code = to_cubin(whole)
        assert local_bytes(code) == 0
        assert engine[0].kernel.text.startswith(TENSOR_PRELUDE)


@needs_clang
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_amd(arch):
    made = portable(arch)
    assert hip.to_code_object(made)[:4] == b"\x7fELF"
    text = hip.to_assembly(made)
    frames = re.findall(r"\.private_segment_fixed_size: (\d+)\b", text)
    assert len(frames) == 9
    assert set(frames) == {"0"}
    assert "ds_bpermute_b32" in text
    assert "v_perm_b32" in text
    assert re.search(r"ds_(write|store)_b128", text)
    assert re.search(r"global_(load|store)_(dwordx4|b128)", text)
