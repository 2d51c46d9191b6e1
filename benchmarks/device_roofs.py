"""What the chip moves, multiplies and issues in a cycle, for ``targets/roofs.json``, and the time of a launch.

*hbm* and *l2*: vectors of 16 bytes read, written and copied by every multiprocessor past the L1 cache, over 2 GiB and
over 17 MB that stay in the L2 cache; bytes count once for each direction. *shared*: vectors of 16 bytes without
conflicts, 32 warps of a multiprocessor. *mma*: a chain of the widest ``wgmma`` of two warpgroups on every
multiprocessor, of zeros and of random bits, which take more power. *issue*: independent multiply-adds of 32 warps, and
with them the clock. *launch*: an empty kernel in a graph. Kernels run as graphs, in turns; numbers are medians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import device_products as products
from device import Fault, Run
from device_pipelines import MMA

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor
from layoutalg.targets.roofs import roofs

TARGET, THREADS, TURNS, MANY = "sm_90a", 1024, 4096, 4
SIZES = {"hbm": 1 << 31, "l2": 18 << 20}
MOVES = {
    "read": ("{load}", "sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;"),
    "write": ("v[i] = make_uint4(at, i, turn, 7);", "{store}"),
    "copy": ("{load}", "{store}"),
}
LOAD = 'asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w) : "l"(source + at + i * step));'  # noqa: E501
STORE = 'asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(target + at + i * step), "r"(v[i].x), "r"(v[i].y), "r"(v[i].z), "r"(v[i].w) : "memory");'  # noqa: E501
MOVE = """
extern "C" __global__ void __launch_bounds__(1024, 2) move(
    const unsigned char* from, unsigned char* to, int count, int turns)
{
    const uint4* source = (const uint4*)from;
    uint4* target = (uint4*)to;
    const int step = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int turn = 0; turn < turns; ++turn)
        for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += 4 * step) {
            uint4 v[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) { %s }
#pragma unroll
            for (int i = 0; i < 4; ++i) { %s }
        }
    if (sum == 0x9E3779B9u) target[threadIdx.x].x = sum;
}
"""
SHARED = {
    "read": 'asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(where)); sum ^= a;',  # noqa: E501
    "write": 'asm volatile("st.volatile.shared.v4.u32 [%4], {%0, %1, %2, %3};" :: "r"(a), "r"(b), "r"(c), "r"(d), "r"(where) : "memory");',  # noqa: E501
}
TIMED = """
extern "C" __global__ void __launch_bounds__(1024) timed(unsigned* out, long long* cycles)
{
    __shared__ uint4 room[1024];
    unsigned a = threadIdx.x, b = 1, c = 2, d = 3, sum = 0;
    unsigned where = (unsigned)__cvta_generic_to_shared(room + threadIdx.x);
    float f[8];
    for (int i = 0; i < 8; ++i) f[i] = threadIdx.x + i;
    room[threadIdx.x] = make_uint4(a, b, c, d);
    __syncthreads();
    long long first = clock64(), began, ended;
    asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(began));
    for (int turn = 0; turn < 4096; ++turn)
#pragma unroll
        for (int i = 0; i < 32; ++i) { %s }
    __syncthreads();
    asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(ended));
    long long last = clock64();
    for (int i = 0; i < 8; ++i) sum ^= (unsigned)f[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0) { cycles[2 * blockIdx.x] = last - first; cycles[2 * blockIdx.x + 1] = ended - began; }
}
"""
ISSUE = '_Pragma("unroll") for (int j = 0; j < 8; ++j) f[j] = f[j] * 1.0001f + 0.5f;'
NOTHING = 'extern "C" __global__ void nothing(int zero) {}\n'
TYPES = {"f16": 16, "bf16": 16, "e4m3": 32, "e5m2": 32}
"""Types of ``wgmma`` and the depth of one multiply."""


def move_kernel(what: str) -> KernelSource:
    """A kernel that reads, writes or copies; the count of vectors is a multiple of four of every thread."""
    before, after = (part.replace("{load}", LOAD).replace("{store}", STORE) for part in MOVES[what])
    parameters = (("const unsigned char*", "from"), ("unsigned char*", "to"), ("int", "count"), ("int", "turns"))
    return KernelSource("move", MOVE % (before, after), TARGET, THREADS, 0, parameters)


def timed_kernel(body: str) -> KernelSource:
    """A kernel of one block a multiprocessor that counts its cycles and nanoseconds."""
    return KernelSource("timed", TIMED % body, TARGET, THREADS, 0, (("unsigned*", "out"), ("long long*", "cycles")))


def mma_kernel(dtype: str, random: bool) -> KernelSource:
    """A chain of multiplies of 64 x 256 in two warpgroups."""
    call = f"k{TYPES[dtype]}_{dtype}{'<0, 0>' if TYPES[dtype] == 16 else '<>'}"
    text = MMA.format(n=256, registers=128, descriptor=MatrixDescriptor(0, 16, 1024, 0, "128B").encode())
    text = text.replace("k16_bf16<0, 0>", call)
    if random:  # any bits whose exponents are small
        text = text.replace("((la_u32*)base)[i] = 0;", "((la_u32*)base)[i] = i * 2654435761u & 0xBFFFBFFFu;")
    parameters = (("long long*", "cycles"), ("float*", "sink"), ("int", "each"), ("int", "turns"))
    return KernelSource("mma_cost_256", PRELUDE + wgmma_prelude(dtype, 256) + text, TARGET, 256, 80 * 1024, parameters)


def kernels() -> dict[str, KernelSource]:
    """All kernels of the job."""
    found = {f"move {what}": move_kernel(what) for what in MOVES}
    found |= {f"shared {what}": timed_kernel(body) for what, body in SHARED.items()}
    found |= {
        f"mma {dtype}{' random' * random}": mma_kernel(dtype, random) for dtype in TYPES for random in (False, True)
    }
    return found | {
        "issue": timed_kernel(ISSUE),
        "nothing": KernelSource("nothing", NOTHING, TARGET, 32, 0, (("int", "zero"),)),
    }


def measured(_: object) -> dict[str, Any]:
    """Every number, in bytes or instructions a cycle; GB/s, TFLOP/s and microseconds beside them."""
    torch = products.torch()
    units = torch.cuda.get_device_properties(0).multi_processor_count
    every = kernels()

    def launch(name: str, arguments: list[Any], blocks: int = units) -> Callable[[], None]:
        return products.launcher(every[name], to_cubin(every[name]), arguments, blocks)[0]

    found: dict[str, Any] = {"units": units}
    out = torch.zeros(units * THREADS, dtype=torch.int32, device="cuda")
    counts = torch.zeros(2 * units, dtype=torch.int64, device="cuda")
    for name, amount in (("issue", 8 * 32), ("shared read", 16 * THREADS), ("shared write", 16 * THREADS)):
        act = launch(name, [out.data_ptr(), counts.data_ptr()])
        for _turn in range(3):
            act()
        torch.cuda.synchronize()
        cycles, nanoseconds = counts.reshape(-1, 2).float().median(0).values.tolist()
        found[name] = TURNS * 32 * amount / cycles
        if name == "issue":
            found["clock_mhz"] = 1e3 * cycles / nanoseconds
    acts: dict[str, tuple[Callable[[], None], float]] = {}
    arrays = []  # graphs use them as long as they are replayed
    for where, size in SIZES.items():
        step = 4 * units * 2 * THREADS  # vectors of one turn of two blocks a multiprocessor
        count, turns = size // 16 // step * step, 1 if where == "hbm" else 40
        pair = [torch.randint(0, 255, (16 * count,), dtype=torch.uint8, device="cuda") for _side in range(2)]
        arrays += pair
        for what in MOVES:
            act = launch(f"move {what}", [pair[0].data_ptr(), pair[1].data_ptr(), count, turns], 2 * units)
            acts[f"{where} {what}"] = products.graphed(act, MANY), 16.0 * count * turns * (1 + (what == "copy"))
    sink = torch.zeros(256, dtype=torch.float32, device="cuda")
    for name in [name for name in every if name.startswith("mma")]:
        act = launch(name, [counts.data_ptr(), sink.data_ptr(), 0, TURNS])
        macs = 2 * 64 * 256 * TYPES[name.split()[1]] * TURNS
        acts[name] = products.graphed(act, MANY), 2e-3 * macs * units  # GFLOP
        act()
        torch.cuda.synchronize()
        found[f"{name} macs"] = macs / counts[:2].max().item()
    acts["launch"] = products.graphed(launch("nothing", [0], 1), 50 * MANY), 0.0
    times = products.milliseconds([act for act, _ in acts.values()], MANY)
    for (name, (_, amount)), ms in zip(acts.items(), times, strict=True):
        if name == "launch":
            found["launch_us"] = 1e3 * ms / 50
        elif name.startswith("mma"):
            found[f"{name} tflops"] = amount / ms / 1e6
        else:
            found[f"{name} gbps"] = amount / ms / 1e6
            found[name] = amount / ms / 1e3 / found["clock_mhz"]
    return {name: round(value, 3) for name, value in found.items()}


def entry_of(found: dict[str, Any]) -> dict[str, Any]:
    """The entry of ``targets/roofs.json``; fitted numbers stay. Bandwidth of memory is in ``memory_costs.json``."""
    known = {name: value for name, value in roofs(TARGET).to_json().items() if name != "hbm_bytes"}
    names = {"units": "units", "clock_mhz": "clock_mhz", "shared_bytes": "shared read", "issues": "issue"}
    seen = {"l2_bytes": max(roofs(TARGET).l2_bytes, found["l2 read"])}  # products have loaded as much
    return known | seen | {name: found[of] for name, of in names.items()} | {"assumed": []}


def roofs_job(run: Run) -> None:
    """Compile, measure in one child, print."""
    run.compile([
        replace(each, name=f"k{at}", text=each.text.replace(f" {each.name}(", f" k{at}("))  # cubins are kept by name
        for at, each in enumerate(kernels().values())
    ])  # fmt: skip
    found = run.each(measured, [0], seconds=50, workers=1)[0]
    if isinstance(found, Fault):
        run.write("roofs_dev", {"fault": found.text})
        return
    for name, value in found.items():
        print(f"{name:24} {value:12.3f}", flush=True)
    run.write("roofs_dev", {"numbers": found, "entry": entry_of(found)})
