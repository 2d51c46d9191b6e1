"""Ask Triton for ``#ttg.linear`` on tensors of other sizes; run as ``python triton_linear.py SEED COUNT``, prints JSON.

Needs Triton (3.9.0 gave ``tests/data/triton_linear.json.gz``: seed 5, 300 cases), no device.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon import language as gl


def case(source: random.Random) -> dict[str, Any]:
    """Basis vectors of a small tile in any order, some registers, lanes and warps without, and a tensor's sizes."""
    rank = source.choice([1, 2, 2, 3])
    logs = [source.randint(0, 4) for _ in range(rank)]
    vectors = [[1 << bit if dim == at else 0 for dim in range(rank)] for at in range(rank) for bit in range(logs[at])]
    source.shuffle(vectors)
    count = source.randint(0, len(vectors))
    parts = {"register": vectors[:count], "lane": vectors[count : count + 5], "warp": vectors[count + 5 : count + 7]}
    parts["register"] = parts["register"] + vectors[count + 7 :]
    for axis, bits in (("lane", 5), ("warp", 2)):
        parts[axis] = parts[axis] + [[0] * rank] * (bits - len(parts[axis]))
    shape = [1 << max(0, log + source.choice([-1, 0, 0, 1, 2])) for log in logs]
    return {"bases": parts, "tile": [1 << log for log in logs], "shape": shape}


def main() -> None:
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    source, cases = random.Random(int(sys.argv[1])), []
    for _ in range(int(sys.argv[2])):
        one = case(source)
        given = gl.DistributedLinearLayout(*one["bases"].values(), [], one["tile"])
        found = builder.to_linear_layout(given._to_ir(builder), one["shape"])
        fields = {"register": "reg_bases", "lane": "lane_bases", "warp": "warp_bases"}
        one["found"] = {axis: [list(vector) for vector in getattr(found, name)] for axis, name in fields.items()}
        cases.append(one)
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
