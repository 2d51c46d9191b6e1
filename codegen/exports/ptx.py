"""PTX: the bytes of a map, patches that turn one map into another, and wgmma descriptors as constants.

Applying ``patches(base, wanted)`` to the bytes of ``base`` gives all 128 bytes of ``wanted``. Ordinals follow the map's
modes, innermost first; strides start at ordinal 0 for mode 1.

Notation: PTX numbers element types differently from the driver: 8 is f32 with denormals flushed, 9 f64, 10 bf16, 11 and
12 the tf32 types; the rank is written as rank - 1, every extent, box and step as itself.

Implementation notes: the text is a fragment to be placed inside PTX braces, so that its registers do not clash. It uses
one register of its surroundings: ``map``, the address of the map, or ``tile``, the shared byte address of the tile.
``tensormap.replace`` takes strides in bytes since PTX ISA 8.5 (CUDA 12.5).

References: PTX ISA 9.1, tensormap.replace; machine code of ptxas 13 for sm_90a.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.codegen.exports.refusal import refuse
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap import DTYPES, TensorMap, encode
from layoutalg.targets.nvidia.tensormap.fields import INTERLEAVE_CODES, OOB_FILL_CODES

CHECK = Checker("LA895", "not a patch of a tensor map")
_WIDE = ("global_address", "global_stride")
_BY_MODE = ("box_dim", "global_dim", "global_stride", "element_stride")
_IMMEDIATE = ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
FIELDS = ("global_address", "rank", *_BY_MODE, *_IMMEDIATE)
_TF32 = {"tf32": 11, "tf32_ftz": 12}


@dataclass(frozen=True, slots=True)
class Patch(Checked, code="LA895"):
    """One ``tensormap.replace``."""

    field: str  # field of the map, as PTX names it
    value: int  # the new value, in the instruction's encoding
    ordinal: int | None = None  # the mode, for per-mode fields; otherwise None

    def _validate(self) -> None:
        CHECK.choice(self.field, "field", FIELDS)
        if (self.ordinal is None) == (self.field in _BY_MODE) or not 0 <= (self.ordinal or 0) < 5:
            raise CHECK.malformed(
                "ordinal", "must be a mode of the map for per-mode fields, otherwise None", self.ordinal
            )

    def text(self) -> str:
        """Return the instruction; ``map`` is the address of a map in global memory."""
        width = 64 if self.field in _WIDE else 32
        ordinal = "" if self.ordinal is None else f"{self.ordinal}, "
        value = f"{self.value:#x}" if width == 64 else str(self.value)
        return f"tensormap.replace.tile.{self.field}.global.b1024.b{width} [map], {ordinal}{value};"


def elemtype(dtype: str) -> int:
    """Return the number by which ``tensormap.replace`` names an element type.

    Example:
        >>> elemtype("bf16"), elemtype("f64"), elemtype("tf32")
        (10, 9, 11)
    """
    entry = DTYPES[dtype]
    if entry.packed:
        raise CHECK.malformed("dtype", "must be a type that sm_90a can copy", dtype)
    return _TF32.get(dtype, entry.format_code)


def patches(base: TensorMap, wanted: TensorMap, target: str = "sm_90a") -> tuple[Patch, ...]:
    """Return the field replacements, in order, that turn one map into another.

    Mathematically: the shortest list of replacements whose result on ``encode(base)`` is ``encode(wanted)``.

    Args:
        base: The existing map.
        wanted: The new map.
        target: ``"sm_90a"``.

    Raises: RepresentabilityError: LA894, and as ``targets.nvidia.tensormap.encode``.

    Example:
        >>> base = TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B")
        >>> wanted = TensorMap("bf16", (512, 1000), (2048,), (64, 64), swizzle="128B", base_address=4096)
        >>> for patch in patches(base, wanted):
        ...     print(patch.text())
        tensormap.replace.tile.global_address.global.b1024.b64 [map], 0x1000;
        tensormap.replace.tile.global_dim.global.b1024.b32 [map], 1, 1000;
        tensormap.replace.tile.global_stride.global.b1024.b64 [map], 0, 0x800;

    Source: PTX ISA 9.1, tensormap.replace.
    """
    if target != "sm_90a":
        refuse("ptx", "PTX_TARGET", f"the target is {target}")
    if encode(base, target)[64:] != encode(wanted, target)[64:]:
        because = f"boxes {base.box} of {base.dtype} {base.swizzle} and {wanted.box} of {wanted.dtype} {wanted.swizzle}"
        refuse("ptx", "PTX_BOX_BYTES", because)
    if base.l2_promotion != wanted.l2_promotion:
        refuse("ptx", "PTX_L2_PROMOTION", f"{base.l2_promotion} to {wanted.l2_promotion}")
    if base.dtype in _TF32 and wanted.dtype not in _TF32:
        refuse("ptx", "PTX_TF32", f"{base.dtype} to {wanted.dtype}")
    found: list[Patch] = []
    if base.base_address != wanted.base_address:
        found.append(Patch("global_address", wanted.base_address))
    if base.rank != wanted.rank:
        found.append(Patch("rank", wanted.rank - 1))
    for field, name, unused in (
        ("global_dim", "dims", 1), ("global_stride", "strides_bytes", 0), ("box_dim", "box", 1),
        ("element_stride", "element_strides", 1),
    ):  # fmt: skip
        old, new = getattr(base, name), getattr(wanted, name)
        width = max(len(old), len(new))
        # unused modes are encoded as 0 in the map: extent 1, stride 0
        pairs = zip(old + (unused,) * (width - len(old)), new + (unused,) * (width - len(new)), strict=True)
        found += [Patch(field, after, mode) for mode, (before, after) in enumerate(pairs) if before != after]
    for field, before, after in (
        ("elemtype", elemtype(base.dtype), elemtype(wanted.dtype)),
        ("interleave_layout", INTERLEAVE_CODES[base.interleave], INTERLEAVE_CODES[wanted.interleave]),
        ("swizzle_mode", SWIZZLE_TABLE[base.swizzle].map_code, SWIZZLE_TABLE[wanted.swizzle].map_code),
        ("fill_mode", OOB_FILL_CODES[base.oob_fill], OOB_FILL_CODES[wanted.oob_fill]),
    ):
        if before != after:
            found.append(Patch(field, after))
    return tuple(found)


def ptx_text(
    value: TensorMapPlan | TensorMap | OperandPlan,
    name: str,
    target: str,
    base: TensorMapPlan | TensorMap | None = None,
) -> str:
    """Return a map's bytes as a PTX constant, the fragment that patches ``base`` into it, or wgmma descriptors."""
    if isinstance(value, OperandPlan):
        return _operand(value)
    wanted = value.tensor_map if isinstance(value, TensorMapPlan) else value
    if base is None:
        raw = value.raw if isinstance(value, TensorMapPlan) else encode(wanted, target=target)
        return (
            "// PTX ISA 8.0 and later, for sm_90 and sm_90a: the bytes of a tensor map.\n"
            f".visible .const .align 128 .b8 {name}[128] = {{{', '.join(map(str, raw))}}};\n"
        )
    before = base.tensor_map if isinstance(base, TensorMapPlan) else base
    lines = [patch.text() for patch in patches(before, wanted, target)]
    return "\n".join(
        [
            "// PTX ISA 8.5 and later, for sm_90a: one thread patches the map at `map`. Before a copy reads it:",
            "// fence.proxy.tensormap::generic.release.gpu here, ...acquire.gpu [map], 128 in the thread that copies.",
            *lines, "",
        ]
    )  # fmt: skip


def _operand(plan: OperandPlan) -> str:
    count = len(plan.tiles)
    lines = [
        f"// PTX ISA 8.0 and later, for sm_90a: wgmma operand {plan.problem.operand}, {plan.problem.dtype}, "
        f"{plan.major}-major, transpose immediate {plan.transpose}.",
        f"// `tile`: a .b64 register with the tile's shared byte address, a multiple of {plan.align_bytes}.",
        f".reg .b64 sixteenths, descriptor<{count}>;",
        "shr.u64 sixteenths, tile, 4;",
    ]
    for index, tile in enumerate(plan.tiles):
        lines.append(f"mov.b64 descriptor{index}, {tile.encoded:#018x};  // row {tile.mn}, K {tile.k}")
        lines.append(f"add.s64 descriptor{index}, descriptor{index}, sixteenths;")
    return "\n".join(lines) + "\n"
