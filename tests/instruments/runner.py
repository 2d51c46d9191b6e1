"""Generic copy kernels: many TensorMaps per launch, one block each.

Notation: block i reads the descriptor ``maps[i]``, its head ``heads[HEAD_INTS * i ...]`` = (first issue, number of
issues, bytes to expect, offset of the tile from the aligned base in bytes), and its issues ``issues[ISSUE_INTS * q
...]`` = (shared byte offset from the tile, start coordinates innermost first). It owns
``images[image_bytes * i ...]`` and ``status[i]``.

Implementation notes: one compile per (rank, direction) serves every plan of that rank. The head keeps the expected byte
count apart from the issues, so that a wrong count shows as a status and not as a hang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, THREADS, KernelSource, signature
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES

HEAD_INTS = 4
ISSUE_INTS = 6

_PARAMETERS = (
    ("const la_tensor_map*", "maps"),
    ("const int*", "heads"),
    ("const int*", "issues"),
    ("unsigned char*", "images"),
    ("int", "image_bytes"),
    ("int*", "status"),
)

_HEAD = """
{prelude}
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + {head_ints} * blockIdx.x;
    const int first = head[0], count = head[1], offset = head[3];
    unsigned char* base = la_aligned_shared(1024);
    unsigned char* image = images + (la_u64)image_bytes * blockIdx.x;
    const la_u32 tile_address = la_shared_address(base) + offset;
"""

_LOAD = (
    _HEAD
    + """\
    const la_u32 barrier = la_shared_address(base) + image_bytes;  // after the image, 8-byte aligned

    for (int i = threadIdx.x; i < image_bytes; i += {threads}) base[i] = 0xEE;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {{
        la_fence_tensor_map(map);
        la_arrive_expect_tx(barrier, head[2]);
        for (int q = first; q < first + count; ++q) {{
            const int* issue = issues + {issue_ints} * q;
            la_tma_load_{rank}d(tile_address + issue[0], map, barrier, {coordinates});
        }}
    }}
    const bool done = la_wait_parity(barrier, 0);
    __syncthreads();

    for (int i = threadIdx.x; i < image_bytes; i += {threads}) image[i] = base[i];
    if (threadIdx.x == 0) status[blockIdx.x] = done ? {done} : {timeout};
}}
"""
)

_STORE = (
    _HEAD
    + """\
    for (int i = threadIdx.x; i < image_bytes; i += {threads}) base[i] = image[i];
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {{
        la_fence_tensor_map(map);
        for (int q = first; q < first + count; ++q) {{
            const int* issue = issues + {issue_ints} * q;
            la_tma_store_{rank}d(map, tile_address + issue[0], {coordinates});
        }}
        la_store_commit();
        la_store_wait();
        status[blockIdx.x] = {done};
    }}
}}
"""
)


def runner_kernel(rank: int, direction: str, arch: str = "sm_90a") -> KernelSource:
    """Return the kernel that runs one copy problem per block.

    Args:
        rank: TensorMap rank, 1 to 5.
        direction: ``"load"`` or ``"store"``.
        arch: Real architecture.

    Raises: MalformedError: LA500.

    Example:
        >>> runner_kernel(2, "load").name
        'la_run_load_2d'
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= 5:
        raise MalformedError(Diagnostic("LA500", "no such runner", because=f"rank must be 1..5, not {rank!r}"))
    if direction not in ("load", "store"):
        raise MalformedError(
            Diagnostic("LA500", "no such runner", because=f"direction must be 'load' or 'store', not {direction!r}")
        )
    name = f"la_run_{direction}_{rank}d"
    text = (_LOAD if direction == "load" else _STORE).format(
        prelude=PRELUDE,
        name=name,
        signature=signature(_PARAMETERS),
        rank=rank,
        threads=THREADS,
        head_ints=HEAD_INTS,
        issue_ints=ISSUE_INTS,
        coordinates=", ".join(f"issue[{1 + j}]" for j in range(rank)),
        done=STATUS_DONE,
        timeout=STATUS_TIMEOUT,
    )
    return KernelSource(name, text.lstrip("\n"), arch, THREADS, MAX_SMEM_BYTES, _PARAMETERS)


def runner_smem_bytes(image_bytes: int) -> int:
    """Return the dynamic shared memory a runner launch needs: alignment slack, image, barrier."""
    return min(MAX_SMEM_BYTES, image_bytes + 1024 + 16)


@dataclass(frozen=True, slots=True, eq=False)
class RunnerTables:
    """Tables of one runner launch.

    Args:
        maps: uint8[blocks, 128], the descriptor bytes.
        heads: int32[blocks, HEAD_INTS].
        issues: int32[issues, ISSUE_INTS].
    """

    maps: npt.NDArray[np.uint8]
    heads: npt.NDArray[np.int32]
    issues: npt.NDArray[np.int32]


def runner_tables(entries: Sequence[tuple[bytes, Sequence[tuple[int, Sequence[int]]], int, int]]) -> RunnerTables:
    """Return the tables for one launch.

    Args:
        entries: Per block ``(128 descriptor bytes, issues, bytes to expect, tile offset in bytes)``; an issue is
            ``(shared byte offset, start coordinates innermost first)``.

    Raises: MalformedError: LA506.

    Example:
        >>> tables = runner_tables([(bytes(128), [(0, (3, 4))], 256, 0)])
        >>> tables.heads.tolist(), tables.issues.tolist()
        ([[0, 1, 256, 0]], [[0, 3, 4, 0, 0, 0]])
    """
    heads: list[list[int]] = []
    issues: list[list[int]] = []
    for index, (raw, entry, expect, offset) in enumerate(entries):
        if len(raw) != 128:
            raise MalformedError(
                Diagnostic("LA506", "bad runner entry", (f"entry {index}",), f"a map has 128 bytes, not {len(raw)}")
            )
        heads.append([len(issues), len(entry), expect, offset])
        issues += [[shared, *coords, *(0,) * (5 - len(coords))] for shared, coords in entry]
    for row in (*heads, *issues):
        if not all(-(2**31) <= value < 2**31 for value in row):
            raise MalformedError(
                Diagnostic("LA506", "bad runner entry", because=f"every number must fit 32 bits, not {row}")
            )
    maps = np.frombuffer(b"".join(entry[0] for entry in entries), dtype=np.uint8).reshape(-1, 128)
    return RunnerTables(
        maps,
        np.array(heads, dtype=np.int32).reshape(-1, HEAD_INTS),
        np.array(issues, dtype=np.int32).reshape(-1, ISSUE_INTS),
    )
