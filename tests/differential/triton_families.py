"""Ask Triton for the linear layouts of its encodings; run as ``python triton_families.py SEED COUNT [MODE]``.

Prints one JSON list of ``{"family", "args", "bases", "shape"}``. The arguments are those of the constructors in
``layoutalg.targets.layouts``. Each case runs in a child process, because Triton aborts the process on what it refuses.
Refused cases are left out, or printed as ``{"family", "args", "aborted": true}`` in the mode ``refusals``; in the mode
``mutants`` one argument of every case is changed at random, so that most are refused.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

Case = dict[str, Any]


def splits(rng: random.Random, bits: int, rank: int) -> list[int]:
    """Return ``rank`` powers of two whose product is ``2**bits``."""
    parts = [0] * rank
    for _ in range(bits):
        parts[rng.randrange(rank)] += 1
    return [1 << part for part in parts]


def cga(rng: random.Random, rank: int) -> list[list[int]]:
    """Return cluster bases: half of the time none, else up to three, some of them copies."""
    bases: list[list[int]] = []
    have = [0] * rank
    if rng.random() < 0.5:
        return bases
    for _ in range(rng.randint(1, 3)):
        dim = rng.randrange(rank + 1)
        bases.append([1 << have[dim] if index == dim else 0 for index in range(rank)])
        if dim < rank:
            have[dim] += 1
    return bases


def shape(rng: random.Random, rank: int, low: int, high: int) -> list[int]:
    return [1 << rng.randint(low, high) for _ in range(rank)]


def blocked(rng: random.Random) -> dict[str, Any]:
    rank = rng.randint(1, 3)
    order = rng.sample(range(rank), rank)
    return {
        "size_per_thread": splits(rng, rng.randint(0, 4), rank),
        "threads_per_warp": splits(rng, rng.choice([5, 5, 6]), rank),
        "warps_per_cta": splits(rng, rng.randint(0, 3), rank),
        "order": order,
        "shape": shape(rng, rank, 0, 8 if rank == 1 else 6),
        "cga": cga(rng, rank),
    }


def padding(rng: random.Random) -> dict[str, Any]:
    """Return a padded layout: in a plain order, or with offset bits that take the dimensions' bits in any order."""
    rank = rng.randint(1, 3)
    sizes = shape(rng, rank, 1, 6)
    intervals = rng.sample(range(8), rng.randint(1, 3))
    args: Case = {
        "shape": sizes,
        "pairs": [[1 << interval, 1 << rng.randint(0, 5)] for interval in intervals],
        "cga": [
            [part if 2 * part <= size else 0 for part, size in zip(basis, sizes, strict=True)]
            for basis in cga(rng, rank)
        ],
    }
    if rng.random() < 0.5:
        return {**args, "order": rng.sample(range(rank), rank)}
    spread = [1 << max((basis[dim].bit_length() for basis in args["cga"]), default=0) for dim in range(rank)]
    steps = [
        [step if index == dim else 0 for index in range(rank)]
        for dim in range(rank)
        for step in (1 << bit for bit in range((max(1, sizes[dim] // spread[dim])).bit_length() - 1))
    ]
    return {**args, "offset_bases": rng.sample(steps, len(steps))}


def scale(family: str, rng: random.Random) -> dict[str, Any]:
    """Return arguments of one of the scale-factor families."""
    args: Case = {"shape": [1 << rng.randint(3, 9), 1 << rng.randint(0, 5)]}
    if family == "tensor_memory_scales":
        return {**args, "cga": cga(rng, 2)}
    args["operand"] = rng.choice("AB")
    warps = splits(rng, rng.randint(0, 3), 2)
    if family == "mfma_scale":
        tiles = rng.choice([[1, 1], [2, 1], [1, 2], [2, 2], [4, 2]])
        return {**args, "tile": rng.choice([[16, 16], [32, 32]]), "warps_per_cta": warps, "tiles_per_warp": tiles}
    if family == "mma_scale":
        return {**args, "warps_per_cta": warps, "cga": cga(rng, 2)}
    other = draw("wmma_accumulator", rng)
    while len(other["shape"]) != 2:
        other = draw("wmma_accumulator", rng)
    return {
        **args,
        "scale_group": rng.choice([16, 32]),
        "warp_bases": other["warp_bases"],
        "register_bases": other["register_bases"],
        "tile": rng.choice([[16, 16], [32, 16]]),
        "transposed": rng.random() < 0.5,
        "cga": other["cga"],
    }


def draw(family: str, rng: random.Random) -> Case:
    """Return random arguments of one family."""
    rank = rng.choice([2, 2, 2, 3])
    if family == "blocked":
        return blocked(rng)
    if family == "slice_of":
        parent = blocked(rng)
        while len(parent["shape"]) == 1:
            parent = blocked(rng)
        return {"parent": parent, "dim": rng.randrange(len(parent["shape"]))}
    if family == "blocked_operand":
        args = blocked(rng)
        while len(args["shape"]) == 1:
            args = blocked(rng)
        return {"operand": rng.choice("AB"), **args}
    if family in ("mma_accumulator", "mma_operand"):
        instruction = rng.choice([[16, 8], [16, 8], [16, 8], [8, 8]])
        args: Case = {
            "shape": shape(rng, rank, 3, 7),
            "warps_per_cta": splits(rng, rng.randint(0, 3), rank),
            "instruction": instruction,
            "cga": cga(rng, rank),
        }
        if family == "mma_accumulator":
            return args
        return {"operand": rng.choice("AB"), "k_width": rng.choice([1, 2, 4, 8]), **args}
    if family in ("wgmma_accumulator", "wgmma_operand"):
        args = {"shape": shape(rng, 2, 4, 8), "warps_per_cta": [4, rng.choice([1, 2])], "cga": cga(rng, 2)}
        if rng.random() < 0.3:
            args["warps_per_cta"] = [8, 1]
        if family == "wgmma_accumulator":
            return {**args, "n": rng.choice([8, 16, 32, 64, 128, 256])}
        return {"operand": "A", "k_width": rng.choice([1, 2, 4]), **args}
    if family in ("mfma_accumulator", "mfma_operand"):
        args = {
            "shape": shape(rng, rank, 2, 8),
            "tile": rng.choice([[32, 32], [16, 16], [32, 32], [16, 16], [64, 4], [4, 64]]),
            "warps_per_cta": splits(rng, rng.randint(0, 3), rank),
            "tiles_per_warp": [1] * (rank - 2) + rng.choice([[1, 1], [1, 1], [2, 1], [1, 2], [2, 2]]),
            "cga": cga(rng, rank),
        }
        if family == "mfma_accumulator":
            swapped = args["tile"] == [64, 4] or rng.random() < 0.5
            return {
                **args,
                "transposed": swapped,
                "result_bits": 64 if args["tile"] == [16, 16] and rng.random() < 0.3 else 32,
            }
        operand = rng.choice("AB")
        # Triton splits k between the blocks here and nowhere else
        inner = rank - 1 if operand == "A" else rank - 2
        args["cga"] = [basis for basis in args["cga"] if not basis[inner]]
        return {"operand": operand, "k_width": rng.choice([1, 2, 4, 8, 16]), **args}
    if family in ("wmma_accumulator", "wmma_operand"):
        version = rng.choice([1, 2, 3])
        warps: list[list[int]] = []
        registers: list[list[int]] = []
        have = [0] * rank
        for _ in range(rng.randint(0, 3)):
            dim = rng.randrange(rank)
            step = [1 << have[dim] if index == dim else 0 for index in range(rank)]
            have[dim] += 1
            (warps if rng.random() < 0.7 else registers).append(step)
        args = {
            "shape": shape(rng, rank, 3, 8),
            "version": version,
            "warp_bases": warps,
            "register_bases": registers,
            "cga": cga(rng, rank),
        }
        if family == "wmma_accumulator":
            return {
                **args,
                "transposed": rng.random() < 0.5,
                "tile": [32, 16] if version == 3 and rng.random() < 0.3 else [16, 16],
            }
        instruction = (
            [16, 16, 16] if version < 3 else rng.choice([[16, 16, 32], [16, 16, 64], [16, 16, 128], [16, 16, 4]])
        )
        if version == 3 and rng.random() < 0.3:
            instruction = [32, 16, rng.choice([64, 128])]
        widths = {1: [16], 2: [4, 8], 3: [width for width in (2, 4, 8, 16) if 2 * width <= instruction[2]]}[version]
        args["transposed"] = rng.random() < 0.5
        return {"operand": rng.choice("AB"), "k_width": rng.choice(widths), "instruction": instruction, **args}
    if family in ("swizzled_shared", "rotating_shared", "partitioned_shared"):
        count = rng.randint(1, 3)
        args = {
            "shape": shape(rng, count, 2, 7),
            "vec": 1 << rng.randint(0, 4),
            "per_phase": 1 << rng.randint(0, 3),
            "max_phase": 1 << rng.randint(0, 4),
            "order": rng.sample(range(count), count),
            "cga": cga(rng, count),
        }
        if family == "rotating_shared":
            # where blocks split the tensor Triton leaves part of the offsets unused
            args["cga"] = [basis for basis in args["cga"] if not any(basis)]
        if family == "partitioned_shared":
            pieces = {"partitions": 1 << rng.randint(1, 2), "groups": 1 << rng.randint(0, 2)}
            return {"piece": args, "dim": rng.randrange(count), **pieces}
        return args
    if family == "padded_shared":
        return padding(rng)
    if family == "cluster_bases":
        blocks = splits(rng, rng.randint(0, 4), rank)
        return {
            "ctas_per_cga": blocks,
            "split": [1 << rng.randint(0, size.bit_length() - 1) for size in blocks],
            "order": rng.sample(range(rank), rank),
        }
    if family.endswith("_scale") or family == "tensor_memory_scales":
        return scale(family, rng)
    if family == "nvmma_shared":
        swizzle = rng.choice([0, 32, 64, 128])
        padded = swizzle == 128 and rng.random() < 0.2
        return {
            "shape": shape(rng, rank, 2, 9),
            "swizzle_bytes": swizzle,
            "element_bits": 8 if padded else rng.choice([8, 16, 32, 64]),
            "transposed": rank == 2 and rng.random() < 0.5,
            "fp4_padded": padded,
            "cga": cga(rng, rank),
        }
    args = {
        "shape": [1 << rng.randint(6, 8), 1 << rng.randint(2, 8)],
        "block": [rng.choice([64, 128]), 1 << rng.randint(2, 8)],
        "column_stride": 1,
        "two_ctas": False,
        "cga": [],
        "fp4_padded": False,
    }
    if family == "tmem_registers" and rng.random() < 0.2:
        return {
            "scales": {"shape": [1 << rng.randint(4, 9), 1 << rng.randint(0, 5)], "cga": []},
            "atom": rng.choice(["32x32b", "16x64b", "16x128b", "16x256b"]),
            "warps": rng.choice([4, 8, 16]),
            "element_bits": 8,
        }
    chance = rng.random()
    if chance < 0.25:
        # more blocks than columns would leave Triton's layout larger than the tensor
        args["cga"], args["shape"][1] = cga(rng, 2), max(8, args["shape"][1])
    elif chance < 0.5:
        args["two_ctas"], args["cga"] = True, [[1, 0]]
        args["shape"][0] *= 2
    bits = rng.choice([8, 16, 16, 32, 32])
    if bits < 32 and rng.random() < 0.4:
        args["column_stride"] = 32 // bits
    if family == "tensor_memory":
        return {**args, "fp4_padded": args["column_stride"] == 1 and rng.random() < 0.2}
    # Triton's descriptor takes no tensor narrower than its block, its layouts do
    columns = 1 << max((basis[1].bit_length() for basis in args["cga"]), default=0)
    args["block"][1] = min(args["block"][1], max(1, args["shape"][1] // columns))
    return {
        "memory": args,
        "atom": rng.choice(["32x32b", "16x64b", "16x128b", "16x256b"]),
        "warps": rng.choice([4, 8, 16]),
        "element_bits": bits,
    }


FAMILIES = (
    "blocked",
    "slice_of",
    "blocked_operand",
    "mma_accumulator",
    "mma_operand",
    "wgmma_accumulator",
    "wgmma_operand",
    "mfma_accumulator",
    "mfma_operand",
    "wmma_accumulator",
    "wmma_operand",
    "swizzled_shared",
    "rotating_shared",
    "partitioned_shared",
    "padded_shared",
    "nvmma_shared",
    "cluster_bases",
    "mfma_scale",
    "wmma_scale",
    "mma_scale",
    "tensor_memory_scales",
    "tensor_memory",
    "tmem_registers",
)

FUNCTIONS = (
    "rotating_shared",
    "partitioned_shared",
    "padded_shared",
    "cluster_bases",
    "mfma_scale",
    "wmma_scale",
    "mma_scale",
)


class Oracle:
    """Triton's Gluon builder."""

    def __init__(self) -> None:
        from triton._C.libtriton import gluon_ir, ir
        from triton.experimental.gluon import language as gl
        from triton.experimental.gluon.language.amd import AMDMFMALayout, AMDWMMALayout
        from triton.experimental.gluon.language.amd.cdna5 import PartitionedSharedLayout
        from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout
        from triton_native import Native

        self.gl, self.ir, self.gluon_ir = gl, ir, gluon_ir
        self.mfma, self.wmma, self.tmem = AMDMFMALayout, AMDWMMALayout, TensorMemoryLayout
        self.scales, self.partitioned = TensorMemoryScalesLayout, PartitionedSharedLayout
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context)
        self.native = Native(self.context)

    def encoding(self, family: str, a: Case) -> Any:
        gl = self.gl
        if family in ("blocked", "blocked_operand"):
            parent = gl.BlockedLayout(
                a["size_per_thread"], a["threads_per_warp"], a["warps_per_cta"], a["order"], a["cga"]
            )
            return parent if family == "blocked" else gl.DotOperandLayout("AB".index(a["operand"]), parent, 0)
        if family == "slice_of":
            return gl.SliceLayout(a["dim"], self.encoding("blocked", a["parent"]))
        if family in ("mma_accumulator", "mma_operand"):
            batch = [1] * (len(a["shape"]) - 2)
            parent = gl.NVMMADistributedLayout([2, 0], a["warps_per_cta"], batch + a["instruction"], a["cga"])
        elif family in ("wgmma_accumulator", "wgmma_operand"):
            parent = gl.NVMMADistributedLayout([3, 0], a["warps_per_cta"], [16, a.get("n", 64), 16], a["cga"])
        elif family in ("mfma_accumulator", "mfma_operand"):
            m, n = a["tile"]
            swapped = a.get("transposed", [m, n] == [64, 4])
            bits = a.get("result_bits", 32)
            parent = self.mfma(3, [m, n, 8], swapped, a["warps_per_cta"], bits, a["tiles_per_warp"], a["cga"])
        elif family in ("wmma_accumulator", "wmma_operand"):
            depth = 16 if a["version"] < 3 else 32 if a.get("tile") == [16, 16] else 128
            instruction = a.get("instruction") or [*a["tile"], depth]
            rank = len(a["shape"])
            swapped = a.get("transposed", False)
            parent = self.wmma(a["version"], swapped, a["warp_bases"], a["register_bases"], instruction, a["cga"], rank)
        elif family == "swizzled_shared":
            return gl.SwizzledSharedLayout(a["vec"], a["per_phase"], a["max_phase"], a["order"], a["cga"])
        elif family == "partitioned_shared":
            piece = self.encoding("swizzled_shared", a["piece"])
            return self.partitioned(a["partitions"], a["groups"], a["dim"], piece)
        elif family == "padded_shared":
            if "order" in a:
                return gl.PaddedSharedLayout.with_identity_for(a["pairs"], a["shape"], a["order"], a["cga"])
            return gl.PaddedSharedLayout(a["pairs"], a["offset_bases"], a["cga"], a["shape"])
        elif family == "tensor_memory_scales":
            return self.scales(a["cga"])
        elif family == "nvmma_shared":
            rank = len(a["shape"])
            return gl.NVMMASharedLayout(
                a["swizzle_bytes"], a["element_bits"], rank, a["transposed"], a["fp4_padded"], a["cga"]
            )
        else:
            return self.tmem(tuple(a["block"]), a["column_stride"], a["cga"], a["two_ctas"], a["fp4_padded"])
        if family.endswith("accumulator"):
            return parent
        return gl.DotOperandLayout("AB".index(a["operand"]), parent, a["k_width"])

    def function(self, family: str, a: Case) -> Any:
        """Return the layout of a family that is no encoding: bases by axis, or one of Gluon's layouts."""
        if family == "cluster_bases":
            # Triton takes only splits that divide the blocks, as every power of two up to them does
            return {"block": self.gluon_ir.make_cga_layout(a["ctas_per_cga"], a["split"], a["order"])}
        if family == "partitioned_shared":
            return self.native.with_partition(a["shape"], self.encoding(family, a)._to_ir(self.builder))
        if family == "padded_shared":
            return self.native.unpadded(a["shape"], self.encoding(family, a)._to_ir(self.builder))
        plain = {"vec": 1, "per_phase": 1, "max_phase": 1, "order": [1, 0], "cga": a.get("cga", []), **a}
        cluster = self.encoding("swizzled_shared", plain)._to_ir(self.builder)
        if family == "rotating_shared":
            phases = (a["vec"], a["per_phase"], a["max_phase"])
            return self.native.rotating(a["shape"], *phases, a["order"], cluster)
        operand = "AB".index(a["operand"])
        if family == "mma_scale":
            return self.native.sm120_scale(a["shape"], operand, a["warps_per_cta"], cluster)
        if family == "mfma_scale":
            sizes = (a["shape"], a["tile"][0], a["tiles_per_warp"], a["warps_per_cta"])
            return self.gluon_ir.get_amd_mfma_scale_layout(operand, *sizes)
        result = self.wmma(3, a["transposed"], a["warp_bases"], a["register_bases"], [*a["tile"], 128], a["cga"], 2)
        blocks = self.gl.DotOperandLayout(operand, result, 16).cga_layout
        tile = (*a["tile"], a["transposed"], a["scale_group"], a["register_bases"], a["warp_bases"], blocks)
        return self.gluon_ir.get_amd_wmma_scale_layout(operand, a["shape"], *tile)

    def answer(self, family: str, a: Case) -> Case:
        """Return the bases per hardware axis and the shape."""
        gl = self.gl
        if family == "tmem_registers":
            kind = "scales" if "scales" in a else "memory"
            memory = a[kind]
            kinds = {8: gl.float8e5, 16: gl.float16, 32: gl.float32}
            layout = self.gluon_ir.compute_tmem_reg_layout(
                kinds[a["element_bits"]],
                memory["shape"],
                memory["shape"],
                self.encoding("tensor_memory" + ("_scales" if kind == "scales" else ""), memory),
                a["warps"],
                a["atom"],
            )
            if layout is None:
                return {"refused": True}
            extent = memory["shape"]
        elif family in FUNCTIONS:
            if family == "partitioned_shared":
                extent = list(a["piece"]["shape"])
                extent[a["dim"]] *= a["partitions"] * a["groups"]
                a = {**a, "shape": extent}
            extent = a.get("shape", [])
            layout = self.function(family, a)
            if isinstance(layout, dict):
                return {"bases": layout, "shape": list(extent)}
        else:
            extent = a["shape"] if family != "slice_of" else [*a["parent"]["shape"]]
            if family == "slice_of":
                del extent[a["dim"]]
            encoding = self.encoding(family, a)._to_ir(self.builder)
            try:
                layout = self.builder.to_linear_layout(encoding, extent)
            except AssertionError:
                # Gluon has no object for shared memory of one element
                return {"bases": self.native.unpadded(extent, encoding), "shape": list(extent)}
        names = {
            "reg_bases": "register",
            "lane_bases": "lane",
            "warp_bases": "warp",
            "offset_bases": "offset",
            "rows": "row",
            "cols": "col",
            "block_bases": "block",
        }
        bases = {axis: getattr(layout, field) for field, axis in names.items() if hasattr(layout, field)}
        return {"bases": bases, "shape": list(extent)}


def guarded(oracle: Oracle, family: str, args: Case) -> Case | None:
    """Return the answer, or None where Triton aborts; runs in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 2)
        os.dup2(silent, 1)
        try:
            os.write(write, json.dumps(oracle.answer(family, args)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


VALUES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, -1, -2)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the integers, bools and lists in a value."""
    found = [path] if isinstance(value, (int, list)) else []
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(part, (*path, key))
    return found


def mutant(args: Case, rng: random.Random) -> Case:
    """Return the arguments with one integer, bool or list changed: another value, length or order."""
    changed = json.loads(json.dumps(args))
    *path, last = rng.choice(places(changed))
    holder: Any = changed
    for key in path:
        holder = holder[key]
    old = holder[last]
    if isinstance(old, bool):
        holder[last] = not old
    elif isinstance(old, int):
        holder[last] = rng.choice(VALUES)
    else:
        kind = rng.randrange(3)
        if kind == 0:
            holder[last] = old[:-1]
        elif kind == 1:
            holder[last] = [*old, old[-1] if old else 1]
        else:
            rng.shuffle(old)
    return changed


def main(seed: int, count: int, mode: str = "") -> None:
    """Print ``count`` answered cases per family, the refused ones between them if asked to; or ``count`` mutants."""
    oracle = Oracle()
    found = []
    for family in FAMILIES:
        rng = random.Random(f"{mode if mode == 'mutants' else ''}{seed} {family}")
        have = attempts = 0
        while have < count and attempts < 20 * count:
            attempts += 1
            args = draw(family, rng)
            if mode == "mutants":
                args = mutant(args, rng)
            answer = guarded(oracle, family, args)
            have += answer is not None or mode == "mutants"
            if answer is not None or mode:
                found.append({"family": family, "args": args, **(answer or {"aborted": True})})
    print(json.dumps(found, separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
