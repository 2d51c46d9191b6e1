"""MLIR: a plan as ``nvgpu`` text, an operand as ``nvvm`` text.

Since LLVM 19 the lowering calls the driver with the extents and strides of the memref, no element strides and the box
of the operation, so the resulting map is the plan's; ``nvgpu.tma.async.load`` and ``.store`` take coordinates innermost
first, as plans do.

Implementation notes: anything that the verifier or the lowering of ``nvgpu`` does not support is refused: interleave,
element strides, swizzled boxes with rows other than 128 bytes, memref offsets. The map's base is the memref's pointer.

References: LLVM, ``mlir/lib/Dialect/NVGPU/IR/NVGPUDialect.cpp``, ``NVGPUToNVVM.cpp``, ``CudaRuntimeWrappers.cpp``.
"""

from __future__ import annotations

from layoutalg.codegen.exports.refusal import demand, refuse
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.swizzles import PLAIN
from layoutalg.targets.nvidia.tensormap import DTYPES, TensorMap

_TYPES = {
    "u8": "ui8", "u16": "ui16", "u32": "ui32", "u64": "ui64", "s32": "i32", "s64": "i64", "f16": "f16", "bf16": "bf16",
    "f32": "f32", "f64": "f64",
}  # fmt: skip
_SWIZZLES = {name: "none" if name == "NONE" else f"swizzle_{name.lower()}" for name in PLAIN}
_PROMOTIONS = {"NONE": "none", "64B": "l2promo_64b", "128B": "l2promo_128b", "256B": "l2promo_256b"}
_FILLS = {"ZERO": "zero", "NAN": "nan"}
_BARRIER = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>"
_ROW_BYTES = 128
_HEAD = "// MLIR of LLVM 19 and later"


def mlir_text(value: TensorMapPlan | TensorMap | OperandPlan, name: str) -> str:
    """Return a module that makes the map (for a plan, also one that copies a tile), or multiplies by an operand."""
    if isinstance(value, OperandPlan):
        return _operand(value, name)
    tm = value.tensor_map if isinstance(value, TensorMapPlan) else value
    lines = [*_make(tm, name)]
    if isinstance(value, TensorMapPlan):
        lines += _copy(value, name)
    return "\n".join([f"{_HEAD}, dialect nvgpu, sm_90a.", "module {", *lines, "}", ""])


def descriptor_type(tm: TensorMap) -> str:
    """Return the type ``!nvgpu.tensormap.descriptor`` of a map, refused if the dialect cannot express it.

    Example:
        >>> descriptor_type(TensorMap("bf16", (512,), (), (64,), oob_fill="NAN")).partition(", l2promo")[0]
        '!nvgpu.tensormap.descriptor<tensor = memref<64xbf16, 3>, swizzle = none'
    """
    row = tm.box[0] * DTYPES[tm.dtype].bits // 8
    demand(
        "mlir",
        (tm.interleave == "NONE", "NVGPU_INTERLEAVE", tm.interleave),
        (set(tm.element_strides) == {1}, "NVGPU_ELEMENT_STRIDES", tm.element_strides),
        (tm.dtype in _TYPES, "NVGPU_DTYPE", tm.dtype),
        (tm.swizzle in _SWIZZLES, "NVGPU_SWIZZLE", tm.swizzle),
        (tm.swizzle == "NONE" or tm.rank == 1 or row == _ROW_BYTES, "NVGPU_ROW", f"{row} bytes"),
    )
    return (
        f"!nvgpu.tensormap.descriptor<tensor = {_box(tm)}, swizzle = {_SWIZZLES[tm.swizzle]}, "
        f"l2promo = {_PROMOTIONS[tm.l2_promotion]}, oob = {_FILLS[tm.oob_fill]}, interleave = none>"
    )


def _box(tm: TensorMap) -> str:
    return f"memref<{'x'.join(map(str, reversed(tm.box)))}x{_TYPES[tm.dtype]}, 3>"


def _make(tm: TensorMap, name: str) -> list[str]:
    """The function that makes the map."""
    kind = descriptor_type(tm)
    if tm.base_address:
        refuse("mlir", "NVGPU_OFFSET", f"element 0 is {tm.base_address} bytes after the base")
    size = DTYPES[tm.dtype].bits // 8
    strides = [1, *(stride // size for stride in tm.strides_bytes)]
    shape = "x".join(map(str, reversed(tm.dims)))
    tensor = f"memref<{shape}x{_TYPES[tm.dtype]}, strided<[{', '.join(map(str, reversed(strides)))}]>>"
    any_rank = f"memref<*x{_TYPES[tm.dtype]}>"
    box = list(reversed(tm.box))
    return [
        f"  func.func @make_{name}(%tensor: {tensor}) -> {kind} {{",
        *[f"    %box{i} = arith.constant {extent} : index" for i, extent in enumerate(box)],
        f"    %any = memref.cast %tensor : {tensor} to {any_rank}",
        f"    %map = nvgpu.tma.create.descriptor %any box[{_names('box', len(box))}] : {any_rank} -> {kind}",
        f"    return %map : {kind}",
        "  }",
    ]


def _copy(plan: TensorMapPlan, name: str) -> list[str]:
    """The function that copies the tile at an origin: every issue, and the barrier's byte count."""
    tm, load = plan.tensor_map, plan.direction == "load"
    kind, box = descriptor_type(tm), _box(tm)
    tile = f"memref<{plan.smem_bytes}xi8, 3>"
    origin = [f"%origin{dim}" for dim in range(plan.problem.rank)]
    arguments = [f"%map: {kind}", *([f"%barriers: {_BARRIER}", "%barrier: index"] if load else []), f"%tile: {tile}"]
    arguments += [f"{entry}: index" for entry in origin]
    lines = [
        f"  // The tile is aligned to {plan.smem_align_bytes} bytes; origins: outermost dimension first, "
        f"multiples of {plan.problem.origin_multiple}.",
        f"  func.func @{'load' if load else 'store'}_{name}({', '.join(arguments)}) {{",
    ]
    if load:
        lines.append(f"    %bytes = arith.constant {plan.expect_tx_bytes} : index")
        lines.append(f"    nvgpu.mbarrier.arrive.expect_tx %barriers[%barrier], %bytes : {_BARRIER}")
    for mode, terms in enumerate(plan.origin_map):
        lines += _start(mode, terms)
    for q, issue in enumerate(plan.issues):
        lines.append(f"    %at{q} = arith.constant {issue.smem_offset_bytes} : index")
        lines.append(f"    %box{q} = memref.view %tile[%at{q}][] : {tile} to {box}")
        for mode, coordinate in enumerate(issue.coords):
            lines.append(f"    %k{q}_{mode} = arith.constant {coordinate} : index")
            lines.append(f"    %c{q}_{mode} = arith.addi %start{mode}, %k{q}_{mode} : index")
        coordinates = _names(f"c{q}_", len(issue.coords))
        if load:
            operands = f"%map[{coordinates}], %barriers[%barrier] to %box{q} : {kind}, {_BARRIER} -> {box}"
            lines.append(f"    nvgpu.tma.async.load {operands}")
        else:
            lines.append(f"    nvgpu.tma.async.store %box{q} to %map[{coordinates}] : {box} -> {kind}")
    return [*lines, "    return", "  }"]


def _start(mode: int, terms: tuple[tuple[int, int, int], ...]) -> list[str]:
    """The origin's contribution to the start coordinate of one mode; divisions are exact for valid origins."""
    lines = [f"    %sum{mode}_0 = arith.constant 0 : index"]
    for number, (dim, top, bottom) in enumerate(terms):
        here = f"{mode}_{number}"
        lines += [
            f"    %top{here} = arith.constant {top} : index",
            f"    %bottom{here} = arith.constant {bottom} : index",
            f"    %times{here} = arith.muli %origin{dim}, %top{here} : index",
            f"    %term{here} = arith.floordivsi %times{here}, %bottom{here} : index",
            f"    %sum{mode}_{number + 1} = arith.addi %sum{here}, %term{here} : index",
        ]
    last = f"%sum{mode}_{len(terms)}"
    return [line.replace(f"{last} =", f"%start{mode} =") for line in lines]


def _names(stem: str, count: int) -> str:
    return ", ".join(f"%{stem}{i}" for i in range(count))


_STEP = """\
    %bits{i} = llvm.mlir.constant({bits} : i64) : i64
    %descriptor{i} = llvm.add %bits{i}, %tile16 : i64
    %sum{next} = nvvm.wgmma.mma_async {a}, {b}, %sum{i},
      #nvvm.shape<m = 64, n = {n}, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>],
      A [<{dtype}>, #nvvm.wgmma_scale_in<one>, <{a_layout}>], B [<{dtype}>, #nvvm.wgmma_scale_in<one>, <{b_layout}>]
      : {kind} -> {kind}
"""


def _operand(plan: OperandPlan, name: str) -> str:
    """The multiply of one row of instructions, all K steps; the other operand's descriptors are arguments."""
    dtype = plan.problem.dtype
    if dtype not in ("f16", "bf16"):
        refuse("mlir", "NVVM_DTYPE", dtype)
    first = [tile for tile in plan.tiles if tile.mn == plan.tiles[0].mn]
    if len(first) != len(plan.tiles):
        because = f"the operand has {len(plan.tiles) // len(first)} rows of instructions"
        what = "one nvvm function multiplies one row of instructions"
        raise InfeasibleError(Diagnostic("LA896", what, ("plan",), f"{because}; export a plan with {plan.rows} rows"))
    is_a = plan.problem.operand == "A"
    n = 8 if is_a else plan.rows
    kind = f"!llvm.struct<({', '.join(['f32'] * (n // 2))})>"
    others = [f"%other{i}: i64" for i in range(len(first))]
    own, free = ("row" if plan.major == "K" else "col"), "row"
    if not is_a:
        own, free = ("col" if plan.major == "K" else "row"), "row"
    body = ""
    for i, tile in enumerate(first):
        bits = tile.encoded - (1 << 64) if tile.encoded >> 63 else tile.encoded
        mine, other = f"%descriptor{i}", f"%other{i}"
        body += _STEP.format(
            i=i, next=i + 1, bits=bits, n=n, dtype=dtype, kind=kind, a=mine if is_a else other,
            b=other if is_a else mine, a_layout=own if is_a else free, b_layout="col" if is_a else own,
        )  # fmt: skip
    return (
        f"{_HEAD}, dialect nvvm, sm_90a. %tile: shared byte address of the tile, a multiple of {plan.align_bytes}.\n"
        "// The other operand is K-major; its descriptors, one for each K step, are arguments.\n"
        "module {\n"
        f"  llvm.func @{name}(%tile: i64, {', '.join(others)}, %sum0: {kind}) -> {kind} {{\n"
        "    %four = llvm.mlir.constant(4 : i64) : i64\n"
        "    %tile16 = llvm.lshr %tile, %four : i64\n"
        f"{body}    llvm.return %sum{len(first)} : {kind}\n  }}\n}}\n"
    )
