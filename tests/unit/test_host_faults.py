"""What the CPU executor catches: races, idle lanes, barriers that differ, bad addresses; and where they are."""

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.shared_log import COLUMNS, race
from layoutalg.ground.errors import MalformedError

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")

# One text, one case per number: every case is one branch that all threads of the launch take.
CASES = {
    "staged": """la_shared_store_b32(4 * (t ^ 77), t);
        __syncthreads();
        into[t] = la_shared_load_b32(4 * t);""",
    "no barrier": """la_shared_store_b32(4 * (t ^ 77), t);
        into[t] = la_shared_load_b32(4 * t);""",
    "barrier for one warp alone": """la_shared_store_b32(4 * (t ^ 77), t);
        la_sync_warp();
        into[t] = la_shared_load_b32(4 * t);""",
    "inside a warp": """la_shared_store_b32(4 * (t ^ 13), t);
        la_sync_warp();
        into[t] = la_shared_load_b32(4 * t);""",
    "inside a warp, no barrier": """la_shared_store_b32(4 * (t ^ 13), t);
        into[t] = la_shared_load_b32(4 * t);""",
    "a shuffle is no barrier": """la_shared_store_b32(4 * (t ^ 13), t);
        into[t] = la_shuffle(t, t);
        into[t] = la_shared_load_b32(4 * t);""",
    "half a word": """la_shared_store_b16(4 * t, t);
        into[t] = la_shared_load_b16((4 * (t ^ 77)) + 2);""",
    "two writers": "la_shared_store_b8(t / 2, t);",
    "two readers": "into[t] = la_shared_load_b32(4 * (t / 2));",
    "the second round": """for (la_u32 i = 0; i < 2; ++i) {
            la_shared_store_b32(4 * t, t);
            __syncthreads();
            into[t] = la_shared_load_b32(4 * (t ^ 77));
        }""",
    "both rounds": """for (la_u32 i = 0; i < 2; ++i) {
            la_shared_store_b32(4 * t, t);
            __syncthreads();
            into[t] = la_shared_load_b32(4 * (t ^ 77));
            __syncthreads();
        }""",
    "an idle lane": "if (t % 64 != 9) into[t] = la_shuffle(t, 9);",
    "different barriers": "if (t < 64) { __syncthreads(); into[t] = 1; } else { __syncthreads(); into[t] = 2; }",
    "a barrier left out": "if (t % 64) la_sync_warp(); else __syncthreads();",
    "beyond": "into[t] = la_shared_load_b32(4 * t + 3840);",
    "far beyond": "la_shared_store_b128(t == 5 ? 0xFFFFFFF0u : 16 * t, la_words4{{t, t, t, t}});",
    "between words": "into[t] = la_shared_load_b64(t == 70 ? 12 : 8 * t).word[0];",
    "matrices": """la_shared_store_b32(4 * t, t);
        la_sync_warp();
        into[t] = la_ldmatrix_x1(128 * (t / 32) + 16 * (t % 8));""",
    "matrices, no barrier": """la_shared_store_b32(4 * t, t);
        into[t] = la_ldmatrix_x1(128 * (t / 32) + 16 * (t % 8));""",
}  # fmt: skip
HEAD = 'extern "C" __global__ void __launch_bounds__(128) it(int which, la_u32* into)\n{\n'
HEAD += "    const la_u32 t = threadIdx.x;\n"
BODY = "".join(
    ("#if LA_LANES == 32\n" if "matri" in name else "") + f"    if (which == {number}) {{\n        {text}\n    }}\n"
    + ("#endif\n" if "matri" in name else "")
    for number, (name, text) in enumerate(CASES.items())
)  # fmt: skip
PARAMETERS = (("int", "which"), ("la_u32*", "into"))
RACES = {
    "no barrier": "store", "barrier for one warp alone": "store", "inside a warp, no barrier": "store",
    "a shuffle is no barrier": "store", "two writers": "byte 0 of block 0: store", "the second round": "load",
}  # fmt: skip
CLEAN = ("staged", "inside a warp", "half a word", "two readers", "both rounds")


def traced(arch: str, case: str, **options: object) -> hostsim.Trace:
    kernel = KernelSource("it", f"{portable_prelude(arch)}{HEAD}{BODY}}}\n", arch, 128, 4096, PARAMETERS)
    return hostsim.trace(kernel, [list(CASES).index(case), np.zeros(128, np.uint32)], **options)


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "gfx1100"])
def test_races_are_faults_where_they_are_asked_for(arch):
    for case, words in RACES.items():
        found = traced(arch, case, races=True)
        assert hostsim.FAULTS[found.fault].startswith("race"), case
        assert words in found.why
        assert traced(arch, case).fault == 0
        assert traced(arch, case, blocks=2).fault == 0
    for case in CLEAN:
        assert traced(arch, case, races=True, blocks=2).fault == 0, case


def test_matrices_are_read_by_all_lanes():
    assert traced("sm_90a", "matrices", races=True).fault == 0
    found = traced("sm_90a", "matrices, no barrier", races=True)
    assert "ldmatrix" in found.why
    assert "store" in found.why


@pytest.mark.parametrize(
    ("arch", "case", "fault", "why"),
    [
        ("sm_90a", "an idle lane", "shuffle reads an inactive lane", "of block 0"),
        ("gfx942", "an idle lane", "shuffle reads an inactive lane", "of block 0"),
        ("gfx942", "different barriers", "threads of a block wait at different", "thread 64 of block 0"),
        ("gfx942", "a barrier left out", "deadlock", "2 threads wait at __syncthreads, 126 threads wait for"),
        ("gfx1100", "beyond", "shared memory outside", "thread 64 of block 0, byte 4096"),
        ("sm_90a", "far beyond", "shared memory outside", "thread 5 of block 0, byte 4294967280"),
        ("gfx942", "between words", "shared address not a multiple of the access size",
         "thread 70 of block 0, byte 12"),
    ],
)  # fmt: skip
def test_faults_say_where(arch, case, fault, why):
    found = traced(arch, case)
    assert hostsim.FAULTS[found.fault].startswith(fault)
    assert found.why.startswith(why) or why in found.why


def test_no_more_blocks_than_the_models_count():
    for blocks in (-1, hostsim.MAX_BLOCKS, True, 1.5):
        with pytest.raises(MalformedError, match="LA522"):
            traced("sm_90a", "staged", blocks=blocks)
    assert traced("sm_90a", "staged", blocks=0).accesses == ()


def test_races_are_those_of_a_plain_search():
    """The sorted search against all pairs of accesses, on random logs."""
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(400):
        many = int(rng.integers(1, 7))
        log = np.zeros((many, COLUMNS), dtype=np.uint32)
        log[:, 0], log[:, 2] = np.arange(many), rng.integers(0, 2, many)
        log[:, 3], log[:, 4] = rng.integers(0, 12, many), rng.integers(0, 24, many)
        log[:, 5] = rng.integers(0, 2, many) << 16 | rng.choice([1, 2, 4, 16], many)
        log[:, 6], log[:, 7] = rng.integers(0, 2, many), rng.integers(0, 2, many)
        bad = False
        for i in range(many):
            for j in range(i):
                a, b = log[i].tolist(), log[j].tolist()
                meets = a[4] < b[4] + (b[5] & 0xFFFF) and b[4] < a[4] + (a[5] & 0xFFFF)
                same = a[2] == b[2] and a[6] == b[6] and a[3] != b[3] and (a[5] | b[5]) >> 16
                ordered = a[3] // 4 == b[3] // 4 and a[7] != b[7]
                bad = bad or bool(meets and same and not ordered)
        assert bool(race(log, 4)) == bad
        seen.add(bad)
    assert seen == {True, False}
