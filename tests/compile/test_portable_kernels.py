"""One kernel text for every target: machine code of NVIDIA by the run-time compiler, of AMD by clang."""

import re

import pytest

from layoutalg.codegen import hip
from layoutalg.codegen.compile import CompileError, to_cubin
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import TENSOR_PRELUDE, portable_prelude
from layoutalg.ground.errors import MalformedError

BODY = """
extern "C" __global__ void __launch_bounds__(128) it(const la_words4* from, la_words4* into)
{
    const la_u32 t = threadIdx.x;
    la_words4 words = from[blockIdx.x * 128 + t];
    la_shared_store_b128(16 * (t ^ 3), words);
    __syncthreads();
    const la_words2 a = la_shared_load_b64(16 * t);
    words.word[0] = la_shuffle(a.word[0], t ^ 5);
    words.word[1] = la_permute(a.word[1], words.word[3], 0x5140);
    words.word[2] = la_shared_load_b16(4 * t) + la_shared_load_b8(t) + la_shared_load_b32(4 * t);
    words.word[3] = la_elect() ? 1 : (la_u32)la_cycles();
    into[blockIdx.x * 128 + t] = words;
}
"""
POINTERS = (("const la_words4*", "from"), ("la_words4*", "into"))
needs_clang = pytest.mark.skipif(not hip.available(), reason='no clang for AMD: pip install "layoutalg[hip]"')


def kernel(arch: str, text: str = BODY) -> KernelSource:
    return KernelSource("it", portable_prelude(arch) + text, arch, 128, 4096, POINTERS)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"])
def test_nvidia(arch):
    pytest.importorskip("cuda.core", reason='no run-time compiler: pip install "layoutalg[cuda]"')
    assert to_cubin(kernel(arch))[:4] == b"\x7fELF"
    if arch == "sm_90a":
        assert to_cubin(KernelSource("it", TENSOR_PRELUDE + BODY, arch, 128, 4096, POINTERS))[:4] == b"\x7fELF"


@needs_clang
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_amd(arch):
    made = kernel(arch)
    assert hip.to_code_object(made)[:4] == b"\x7fELF"
    text = hip.to_assembly(made)
    newer = arch in ("gfx1100", "gfx1201")
    wanted = ("ds_store_b128" if newer else "ds_write_b128", "ds_bpermute_b32", "v_perm_b32", "s_barrier")
    assert all(word in text for word in wanted)
    assert re.search(r"\.private_segment_fixed_size: 0\b", text)


@needs_clang
def test_the_compilers_text_is_in_the_error():
    with pytest.raises(CompileError, match="no_such_name"):
        hip.to_code_object(kernel("gfx942", BODY.replace("la_cycles", "no_such_name")))
    with pytest.raises(MalformedError, match="gfx90a, gfx942"):
        hip.to_assembly(kernel("sm_90a"))
