"""Ask Triton to write its layouts as text; run as ``python triton_texts.py SEED COUNT``.

Prints one JSON list of ``{"family", "gluon", "type", "shape", "bases", "pairs"}``: the Gluon constructor as Python
prints it, the MLIR type as the compiler prints it, the shape, and the bases that the compiler computes; and of
``{"family": "view", "gluon", "shape", "view"}``: how Triton draws a layout. Each case runs in a child process.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from triton_families import Case, Oracle, draw, guarded, shape, splits

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
    "partitioned_shared",
    "padded_shared",
    "nvmma_shared",
    "tensor_memory",
    "slice_of_mma",
)


class Writer(Oracle):
    """Triton's builder, asked for texts beside the answer."""

    def encoding(self, family: str, a: Case) -> Any:
        if family == "slice_of_mma":
            return self.gl.SliceLayout(a["dim"], super().encoding(a["parent_family"], a["parent"]))
        return super().encoding(family, a)

    def answer(self, family: str, a: Case) -> Case:
        found = super().answer(family, a)
        sizes = found["shape"]
        encoding = self.encoding(family, a)
        lowered = encoding._to_ir(self.builder)
        half = self.builder.get_half_ty()
        if family == "tensor_memory":
            kind = self.builder.get_tensor_mem_desc_ty(self.builder.get_float_ty(), sizes, lowered, sizes)
        elif family.endswith("_shared"):
            kind = self.builder.get_shared_mem_desc_ty(half, sizes, lowered, sizes)
        else:
            kind = self.builder.get_distributed_ty(half, sizes, lowered)
        return {**found, "gluon": str(encoding), "type": str(kind), "pairs": a.get("pairs", [])}


class Drawer(Writer):
    """Triton's pictures of layouts."""

    def answer(self, family: str, a: Case) -> Case:
        encoding = self.encoding(family, a)
        view = getattr(encoding, a["view"])(a["shape"])
        return {**super().answer(family, a), "gluon": str(encoding), "kind": a["view"], "view": view}


def asked(family: str, rng: random.Random) -> Case:
    """Return random arguments of one family."""
    if family != "slice_of_mma":
        return draw(family, rng)
    parent_family = rng.choice(["mma_accumulator", "wgmma_accumulator", "mfma_accumulator", "wmma_accumulator"])
    parent = draw(parent_family, rng)
    while len(parent["shape"]) != 2:
        parent = draw(parent_family, rng)
    dim = rng.randrange(2)
    return {"parent_family": parent_family, "parent": parent, "dim": dim, "shape": [parent["shape"][1 - dim]]}


def small(rng: random.Random) -> Case:
    """Return a small blocked layout and the way to draw it."""
    rank = rng.choice([1, 2])
    return {
        "size_per_thread": splits(rng, rng.randint(0, 2), rank),
        "threads_per_warp": splits(rng, rng.choice([5, 6]), rank),
        "warps_per_cta": splits(rng, rng.randint(0, 2), rank),
        "order": rng.sample(range(rank), rank),
        "shape": shape(rng, rank, 2, 4),
        "cga": [],
        "view": rng.choice(["format_tensor_view", "format_hardware_view"]),
    }


def main(seed: int, count: int) -> None:
    """Print ``count`` cases per family and as many pictures."""
    found = []
    writer, drawer = Writer(), Drawer()
    for family in FAMILIES:
        rng = random.Random(f"{seed} {family}")
        have = 0
        for _ in range(20 * count):
            answer = guarded(writer, family, asked(family, rng)) if have < count else None
            if answer is not None and "refused" not in answer:
                have += 1
                found.append({"family": family, **answer})
    rng = random.Random(f"{seed} view")
    for _ in range(2 * count):
        answer = guarded(drawer, "blocked", small(rng))
        if answer is not None:
            found.append({**answer, "family": "view"})
    print(json.dumps(found, separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
