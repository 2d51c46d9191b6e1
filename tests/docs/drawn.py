"""One picture of each kind, as the documentation and notebooks show them."""

from __future__ import annotations

from functools import cache
from typing import Any

import layoutalg as la
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.synth import factorise, synthesize_ragged, universal_swizzle
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.targets.layouts import nvidia
from layoutalg.targets.nvidia import tcgen05
from layoutalg.targets.nvidia.im2col import Im2colMap


@cache
def pictures() -> dict[str, str]:
    """One of each kind."""
    swizzled = la.parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
    verdict = la.equivalent(la.CuteLayout((4, 8), (8, 1)), la.CuteLayout((4, 8), (1, 4)))
    plan = la.tensormap(la.Tensor((300, 520)), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
    return {
        "grid": la.draw.svg(swizzled),
        "both": la.draw.svg(la.parse("(4,8):(8,1)"), show="both"),
        "negative": la.draw.svg(la.parse("(40):(-1000)")),
        "large": la.draw.svg(la.CuteLayout((128, 128), (128, 1))),
        "owners": la.draw.svg(nvidia.mma_accumulator((16, 8), (1, 1))),
        "matrix": la.draw.svg(la.convert.to_linear(swizzled), "matrix"),
        "swizzle": la.draw.svg(la.Swizzle(3, 4, 3)),
        "banks": la.draw.banks([128 * (lane % 8) + 16 * (lane // 8) for lane in range(32)], 128),
        "plan": la.draw.svg(plan),
        "plan-dots": la.draw.svg(la.tensormap(la.Tensor((4100, 131080)), (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)")),
        "difference": la.draw.difference(la.CuteLayout((4, 8), (8, 1)), la.CuteLayout((4, 8), (1, 4))),
        "families": la.draw.families(la.CuteLayout((4, 6), (6, 1))),
        "verdict": verdict._repr_mimebundle_()["image/svg+xml"],
        **answers(),
        **moves(),
        **pipelines(),
    }


def answers() -> dict[str, str]:
    """One of each kind of answer and plan, at the sizes that people have."""
    tile, tall = "Sw<3,3,3> o 0 o (64,64):(64,1)", "Sw<3,3,3> o 0 o (128,64):(64,1)"
    lanes, warps = [(1 << bit, 0) for bit in range(5)], [(32, 0), (64, 0)]
    held = la.LinearLayout.from_bases(
        {"register": [(0, 1 << bit) for bit in range(6)], "lane": lanes, "warp": warps}, {"row": 128, "col": 64}
    )
    convolution = ConvolutionProblem(la.Tensor((2, 32, 32, 64)), (3, 3), 128, 64, padding=(1, 1))
    use = tcgen05.TmemUse().alloc(tcgen05.TmemAllocation(256), warp=0).alloc(tcgen05.TmemAllocation(32, 256), warp=0)
    ragged = la.Tensor((1024, 512))
    asked = {
        "admitted-tma": (tile, "tma"), "admitted-wgmma": (tall, "wgmma.A"), "admitted-bulk": (tile, "bulk"),
        "admitted-wgmma-mn": ("Sw<3,3,3> o 0 o (64,128):(1,64)", "wgmma.B"), "ldmatrix": (tall, "ldmatrix.x4"),
        "conflicts": ("(128,64):(64,1)", "ldmatrix.x4.trans"), "vectors": ("(128,64):(64,1)", "ld.shared.v4.b32"),
        "bits16": (tile, "st.shared.b16"), "copies": (tile, "cp.async"),
        "tcgen05": (tall, "tcgen05.A", "sm_100a"), "lds": ("(128,64):(72,1)", "ds_read_b128", "gfx942"),
        "accumulator": (held, "tcgen05.D", "sm_100a", "f32"), "no-shape": (held, "tcgen05.ld.16x64b", "sm_100a", "f32"),
        "refused": ("(64,64):(64,1)", "wgmma.A"), "refused-near": ("(128,64):(65,1)", "ldmatrix.x4"),
        "refused-tma": ("(64,64):(72,1)", "tma"), "refused-arch": (tile, "wgmma.A", "gfx942"),
    }  # fmt: skip
    return {
        **{
            name: la.draw.admission(words[0], la.admissible(*words)) if isinstance(words[0], str)
            else la.draw.svg(la.admissible(*words))
            for name, words in asked.items()
        },
        "factors": la.draw.svg(factorise("F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]")),
        "no-shuffles": la.draw.svg(factorise("(64,64):(64,1)")),
        **{
            f"ragged-{name}": la.draw.svg(synthesize_ragged(ragged, (64, 64), strategy=name))
            for name in ("auto", "descriptors", "exact_pool", "overlap_pool", "shift_back", "overfetch")
        },
        "symbolic": la.draw.svg(la.tensormap(la.Tensor(("B", "M", "K"), assume=("K % 8 == 0",)), (1, 128, 64))),
        "tmem": la.draw.svg(use),
        "tmem-access": la.draw.svg(tcgen05.TmemAccess("16x256b", 4, warp=1, lane=32, column=64)),
        "im2col": la.draw.svg(Im2colMap("f16", (64, 300, 9), (128, 38400), (-1,), (-1,), 8, 1024)),
        "convolution": la.draw.svg(synthesize_im2col(convolution)),
    }  # fmt: skip


def moves() -> dict[str, str]:
    """Answers about banks, swizzles, paddings and conversions."""
    rows, columns = "(64,8):(64,1)", ["rows", "columns"]
    wave = ["gfx942", "gfx950"]
    crossing = [
        "F2[register=(1), lane=(2)(4)(8)(16)(32), warp=(64), block=(128) -> x:256]",
        "F2[register=(128), lane=(1)(2)(4)(8)(16), warp=(32), block=(64) -> x:256]",
    ]
    asked = {
        "report": la.banks("(32,8):(64,1)"), "report-free": la.banks("(32,4):(4,1)"),
        "report-wave": la.banks(rows, None, 16, target="gfx942"),
        "report-banks": la.banks(rows, None, 16, target="gfx950"),
        "swizzle-any": la.swizzle([*columns, "ldmatrix.trans"], tile=(64, 64)),
        "swizzle-tma": la.swizzle(columns, tile=(64, 64), form="tma"),
        "swizzle-waves": la.swizzle("rows:load", wave, tile=(64, 64)),
        "swizzle-small": la.swizzle(["rows"], tile=(8, 64), element_bits=32),
        "padding": la.padding((64, 64), ["store antidiagonals:1", "columns", "rows"], ["sm_90a"]),
        "padding-waves": la.padding((64, 64), ["rows", "columns:8"], wave, form="padded_shared"),
        "universal": universal_swizzle(8, 128, ("columns", "rows", "diagonals")),
        "universal-large": universal_swizzle(64, 1024, "rows"),
        "registers": la.conversion("(32,4):(4,1)", "(32,(2,2)):(4,(2,1))", 16),
        "shuffles": la.conversion("(32,4):(4,1)", "(32,4):(1,32)", 32, mechanism="shuffles"),
        "shared": la.conversion("(128,32):(32,1)", "(128,32):(1,128)", 16, mechanism="shared"),
        "shared-wave": la.conversion("(64,8):(8,1)", "(64,8):(1,64)", 16, "gfx942", mechanism="shared"),
        "listed": la.conversion("(96,5):(5,1)", "(96,5):(1,96)", 16),
        "rounds": la.conversion("(32,3):(3,1)", "(32,3):(1,32)", 32, mechanism="shuffles"),
        "cluster": la.conversion(*crossing, 32),
        "gather": la.gather("(32,4):(4,1)", "(32,4):(4,1)", 0, 16, shape=(16, 8)),
        "gather-shared": la.gather("(64,4):(4,1)", "(64,4):(4,1)", 0, 32, shape=(256,)),
        "nothing": la.conversion("(32,4):(4,1)", "(32,4):(4,1)", 8),
    }  # fmt: skip
    return {name: la.draw.svg(value) for name, value in asked.items()}


def pipelines() -> dict[str, str]:
    """Pipelines: proved, refuted by runs of each kind, not decided."""
    block = la.pipeline.Builder(stages=3)
    tiles, result = block.ring("tiles", A=16384, B=32768), block.ring("result", stages=2, C=8192)
    load, work, store = block.role("load"), block.role("work"), block.role("store")
    tiles.acquire(load).load().commit()
    full = tiles.wait(work).read()
    made = result.acquire(work).write()
    full.release()
    made.commit()
    result.wait(store).store().release()
    found: dict[str, object] = {"pipeline": block.pipeline()}
    for name, (role, place, change) in {
        "pipeline-bytes": (0, 1, {"bytes": 16384}), "pipeline-phase": (0, 0, {"ph": 0}),
        "pipeline-race": (1, 0, {"ph": -1}), "pipeline-fence": (1, 5, {"op": "mma_commit"}),
        "pipeline-early": (2, 3, {"n": 1}),
    }.items():  # fmt: skip
        document: Any = block.pipeline().to_json()
        document["roles"][role]["loop"][place] |= change
        found[name] = la.pipeline.verify(document)
    document = block.pipeline().to_json()
    document["roles"][2]["loop"].insert(1, {"op": "bulk_commit", "guard": {"from": 1}})
    found["pipeline-unknown"] = la.pipeline.Pipeline.from_json(document)
    document = block.pipeline().to_json()
    document["barriers"]["tiles.full"]["count"] = 0
    found["pipeline-infeasible"] = la.pipeline.verify(document)
    return {name: la.draw.svg(value) for name, value in found.items()}
