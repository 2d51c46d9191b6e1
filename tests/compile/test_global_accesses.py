"""Names of global-memory instructions are those that the assemblers accept, for each target."""

import importlib.util
import re
import subprocess
import sys

import pytest

import layoutalg as la
from layoutalg.codegen.compile import CompileError, to_cubin
from layoutalg.targets.global_memory import instruction

pytestmark = pytest.mark.compile
REGISTERS = {8: "b16", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}
TYPES = ("b32", "f32", "u32", "s32", "b64", "f64", "u64", "s64")
WIDE = [f"{kind}.global.v{8 if of.endswith('32') else 4}.{of}" for kind in ("ld", "st") for of in TYPES]
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")


def known(name: str, target: str) -> bool:
    """Whether the table has an instruction, its sectors known or not."""
    try:
        return bool(instruction(name, target))
    except la.LayoutError as error:
        return error.diagnostic.code == "LA983"


def moved(name: str) -> str:
    """An instruction in inline assembly, with registers of its own."""
    count = int((re.search(r"\.v([248])\.", name) or [0, 1])[1])
    bits = int(name.rpartition(".")[2][1:])
    registers = ", ".join(f"t{place}" for place in range(count))
    registers = f"{{{registers}}}" if count > 1 else registers
    operands = f"{registers}, [%0]" if name.startswith("ld") else f"[%0], {registers}"
    return f'asm volatile("{{ .reg .{REGISTERS[bits]} t<{count}>; {name} {operands}; }}" :: "l"(at) : "memory"); '


def kernel(*names: str) -> str:
    return f'extern "C" __global__ void moves(unsigned long long at) {{ {"".join(map(moved, names))} }}'


@pytest.mark.parametrize("target", TARGETS)
def test_vectors_of_256_bits_exist_from_sm_100(target: str) -> None:
    hinted = [name.replace(".global", ".global.L2::evict_last") for name in WIDE]
    taken = [name for name in (*WIDE, *hinted) if known(name, target)]
    assert taken == ([] if target == "sm_90a" else [*WIDE, *hinted])
    if taken:
        assert b"moves" in to_cubin(kernel(*taken), target)
        found = instruction(taken[0], target)
        assert (found.bytes, found.align_bits, found.name) == (32, 256, "ld.global.v8.b32")
        assert any("9.7.9.8" in str(source) for source in found.sources)
    else:
        for name in ("ld.global.v8.f32", "st.global.v4.b64"):
            with pytest.raises(CompileError, match="sm_100 or higher"):
                to_cubin(kernel(name), target)


@pytest.mark.parametrize("name", ["ld.global.v2.b128", "ld.shared.v8.b32", "ld.global.L2::evict_last.v4.b32"])
def test_other_vectors_of_256_bits_and_priorities_of_narrow_ones_are_refused(name: str) -> None:
    assert not known(name, "sm_100a")
    assert not known("ld.global.v8.b16", "sm_100a")  # ptxas 13.5 crashes on it
    with pytest.raises(CompileError):
        to_cubin(kernel(name), "sm_100a")


OLD = ("dword", "dwordx2", "dwordx3", "dwordx4", "ubyte", "sbyte", "ushort", "sshort", "byte", "short")
NEW = tuple(f"{letter}{bits}" for letter in "bui" for bits in (8, 16, 32, 64, 96, 128, 256))
AMD = [f"{space}_{does}_{of}" for space in ("global", "buffer") for does in ("load", "store") for of in (*OLD, *NEW)]


def spelled(name: str, target: str) -> str:
    """A line of assembly with that instruction."""
    space, does, size = name.split("_")
    bits = (
        32 * int(size[6:] or 1)
        if size.startswith("dword")
        else int(size.lstrip("bui") or 8)
        if size[-1] in "0123456789"
        else 32
    )
    words = max(1, bits // 32)
    data = "v8" if words == 1 else f"v[8:{7 + words}]"
    if space == "buffer":
        return f"{name} {data}, off, s[4:7], {'null' if target.startswith('gfx12') else '0'}"
    return f"{name} {data}, v[2:3], off" if does == "load" else f"{name} v[2:3], {data}, off"


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason='no clang for AMD: pip install "layoutalg[hip]"')
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_amd_names_are_those_of_the_assembler(target: str) -> None:
    flags = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-x", "assembler", "-c", "-", "-o", "/dev/null"]
    text = "".join(f"{spelled(name, target)}\n" for name in AMD)
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", *flags], input=text, capture_output=True, text=True, check=False
    )
    refused = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)}
    taken = [name for line, name in enumerate(AMD, 1) if line not in refused]
    assert taken == [name for name in AMD if known(name, target)]
    assert len(taken) == (28 if target.startswith("gfx9") else 28 + 28)
