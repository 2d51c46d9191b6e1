"""Which rules a tensor map breaks, by documents or by what a real driver enforced.

Main statements: on the measured target, ``violations(tm) == ()`` exactly when the driver accepts ``tm``.

Implementation notes: the enforced rules are the predicates of ``limits``; here are their words, and the rules that
only documents state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, TargetRuleError, shown
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.facts import box_bytes, require_map
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, TensorMap, checked_ints, malformed
from layoutalg.targets.nvidia.tensormap.limits import (
    ALIGNED,
    ENFORCED,
    FIRST_WIDE,
    GLOBAL_ALIGN_BYTES,
    MAX_BOX_BYTES,
    MAX_RANK,
    RANGES,
    WIDE_ALIGN_BYTES,
    Numbers,
    conditions,
)
from layoutalg.targets.registry import having, lookup

_PACKED_SWIZZLES = {
    "u6_align16": ("NONE", "128B", "128B_ATOM_32B", "128B_ATOM_64B"),
    "u4_align16": ("NONE", "128B", "128B_ATOM_32B"),
}
_PACKED_MULTIPLES = {"u4_align8": 2, "u4_align16": 128, "u6_align16": 128}


class RefusedMapError(TargetRuleError):
    """The driver refuses this map; ``violations`` lists every broken rule."""

    def __init__(self, diagnostic: Diagnostic, rule: str, violations: tuple[Violation, ...]) -> None:
        super().__init__(diagnostic, rule)
        self.violations = violations

    def __reduce__(  # type: ignore[override]
        self,
    ) -> tuple[type, tuple[Diagnostic, str, tuple[Violation, ...]]]:
        return type(self), (self.diagnostic, self.rule, self.violations)


def violations(tm: TensorMap, target: str = "sm_90a", evidence: str = "enforced") -> tuple[Violation, ...]:
    """Return every rule the map breaks; the empty tuple means accepted.

    Args:
        tm: The map.
        target: Architecture, for example ``"sm_90a"``.
        evidence: ``"enforced"``: what a measured driver refuses. ``"documented"``: what the documents forbid, which
            is stricter in places (strides, interleave 32B) and laxer in others (whole box, first element stride).

    Raises: MalformedError: LA300, LA305, LA340. TargetRuleError: LA306 if the target has tensor maps but no measured
        device.

    Example:
        >>> tm = TensorMap("bf16", (500, 1024), (1000,), (64, 64), swizzle="128B")
        >>> [str(entry) for entry in violations(tm)]
        ['STRIDE_ALIGN: strides_bytes[0] = 1000 (mode 1) is not a multiple of 16 bytes']

    Laws: agrees with ``batch.verdicts``, and with 40,000 recorded verdicts of a driver.
    Source: measured on NVIDIA H200, driver 580.159.04; CUDA driver API 12.0 to 13.0.
    """
    require_map(tm, "violations")
    if isinstance(evidence, str) and evidence == "enforced":
        missing = no_tensor_maps(target)
        if not missing:
            require_measured(target)
        return missing or enforced_violations(tm)
    if not isinstance(evidence, str) or evidence != "documented":
        raise malformed("LA305", f"evidence {shown(evidence)} is not known", "evidence is 'enforced' or 'documented'")
    return no_tensor_maps(target) or _documented_violations(tm, target)


def no_tensor_maps(target: str) -> tuple[Violation, ...]:
    """Return the violation of every map on a target without tensor maps; () for other targets.

    Example:
        >>> [str(entry) for entry in no_tensor_maps("sm_80")]
        ['NO_TMA: sm_80 has no tensor maps: TMA needs compute capability 9.0 or later of NVIDIA']
    """
    if lookup(target).has_tensor_maps:
        return ()
    return (
        Violation(
            "NO_TMA", f"{target} has no tensor maps: TMA needs compute capability 9.0 or later of NVIDIA", "target"
        ),
    )


def require_measured(target: str) -> None:
    """Raise LA830 unless the target has tensor maps, LA306 unless a device of it was measured."""
    for missing in no_tensor_maps(target):
        source = "CUDA driver API, tensor map objects: compute capability 9.0 or higher"
        raise TargetRuleError(Diagnostic("LA830", missing.message, source=source), missing.rule)
    if not lookup(target).measured:
        raise TargetRuleError(
            Diagnostic(
                "LA306",
                f"no measured evidence for target {shown(target)}",
                because="what a driver accepts and writes was recorded for sm_90 and sm_90a only; "
                "violations(..., evidence='documented') needs no device",
                source="targets/registry.py",
            ),
            "NO_EVIDENCE",
        )


def broken(tm: TensorMap, rules: Iterable[str]) -> tuple[Violation, ...]:
    """Return where a map breaks some of the rules of ``limits``.

    Example:
        >>> [str(entry) for entry in broken(TensorMap("u8", (2**32,), (), (16,)), ("DIM_EXECUTE",))]
        ['DIM_EXECUTE: dims[0] = 4294967296 is outside 1..2^31']
    """
    numbers = Numbers.of(tm)
    return tuple([entry for rule in rules for entry in _broken(tm, numbers, rule)])


def _broken(tm: TensorMap, numbers: Numbers, rule: str) -> Iterator[Violation]:
    for field, at, holds in conditions(rule, numbers):
        if not holds:
            yield Violation(rule, _text(rule, tm, field, at), field, at)


@lru_cache(maxsize=1024)
def enforced_violations(tm: TensorMap) -> tuple[Violation, ...]:
    """Return the rules that the measured driver enforces and the map breaks."""
    return broken(tm, ENFORCED)


def require_accepted(tm: TensorMap, call: str, code: str = "LA307") -> None:
    """Raise ``RefusedMapError`` with every violation if the measured driver refuses the map."""
    found = enforced_violations(tm)
    if found:
        raise refused_map(tm, call, found, code, "the driver refuses this tensor map")


def refused_map(tm: object, call: str, found: tuple[Violation, ...], code: str, what: str) -> RefusedMapError:
    """Return the error of a call with a map that breaks rules."""
    rule, because = found[0].rule, "; ".join(str(entry) for entry in found)
    what = f"{what} ({len(found)} rule violations)"
    diagnostic = Diagnostic(code, what, (f"{call}({tm!r})",), because, source="rule " + rule)
    return RefusedMapError(diagnostic, rule, found)


def alignment(tm: TensorMap) -> int:
    """Return the alignment of the base address and the strides."""
    wide = tm.interleave == "32B" or DTYPES[tm.dtype].code >= FIRST_WIDE
    return WIDE_ALIGN_BYTES if wide else GLOBAL_ALIGN_BYTES


def _text(rule: str, tm: TensorMap, field: str, at: int | None) -> str:
    """What is wrong, with the numbers."""
    value = getattr(tm, field) if at is None else getattr(tm, field)[at]
    place = field if at is None else f"{field}[{at}]"
    place = f"{place} = {value}" + (f" (mode {at + 1})" if field == "strides_bytes" and at is not None else "")
    bits = DTYPES[tm.dtype].bits
    if rule in RANGES:
        return f"{place} is outside {_bound(RANGES[rule][1])}..{_bound(RANGES[rule][2])}"
    if rule in ALIGNED:
        return f"{place} is not a multiple of {alignment(tm)} bytes"
    if rule == "RANK":
        note = "1" if tm.interleave == "NONE" else "3"
        note += f"..{MAX_RANK}" + ("" if tm.interleave == "NONE" else f" with interleave {tm.interleave}")
        return f"dims has {tm.rank} entries, allowed {note}"
    if rule == "ARCH_ATOM":
        what = f"{field} {value} is packed, which" if field == "dtype" else f"{field} {value}"
        return f"{what} needs compute capability 10.0 or later"
    if rule == "BOX_INNER_16B":
        return f"{place} elements of {bits} bits are not a multiple of {GLOBAL_ALIGN_BYTES} bytes"
    if rule == "SWIZZLE_INNER":
        bits = Numbers.of(tm).slot_bits
        span = SWIZZLE_TABLE[tm.swizzle].span_bytes
        return (
            f"{place} elements of {bits} bits take {-(-value * bits // 8)} bytes, "
            f"more than the {span} bytes of swizzle {tm.swizzle}"
        )
    if rule == "OOB_NAN":
        return f"oob_fill NAN needs a floating-point type, not {tm.dtype}"
    return f"the whole box takes {box_bytes(tm)} bytes (floors of box / element stride), more than {MAX_BOX_BYTES}"


def _bound(number: int) -> str:
    """A limit as it is written: powers of two above 2^16, and one less, as such."""
    for offset, sign in ((0, ""), (1, "-1")):
        if number >= 1 << 16 and not number + offset & (number + offset - 1):
            return f"2^{number.bit_length() - 1 + offset}{sign}"
    return str(number)


@lru_cache(maxsize=1024)
def _documented_violations(tm: TensorMap, target: str) -> tuple[Violation, ...]:
    return tuple(_documented(tm, target))


def _documented(tm: TensorMap, target: str) -> Iterator[Violation]:
    """What the documents forbid."""
    capability = lookup(target).compute_capability
    plain = tm.interleave == "NONE"
    numbers = Numbers.of(tm)
    for rule in _DOCUMENTED:
        if rule in _ONLY_DOCUMENTED:
            yield from _ONLY_DOCUMENTED[rule](tm)
        elif (rule != "BOX_INNER_16B" or plain) and (rule != "ARCH_ATOM" or capability is None or capability < (10, 0)):
            for entry in _broken(tm, numbers, rule):
                if not (rule == "ELEM_STRIDE" and plain and entry.position == 0):
                    yield entry


def _stride_nest(tm: TensorMap) -> Iterator[Violation]:
    bits = DTYPES[tm.dtype].bits
    for index, stride in enumerate(tm.strides_bytes):
        message = ""
        if index == 0:
            if stride * 8 < tm.dims[0] * bits:
                message = f"is less than a row: dims[0] = {tm.dims[0]} elements of {bits} bits"
        else:
            before, extent = tm.strides_bytes[index - 1], tm.dims[index]
            if before <= 0 or stride % before or stride // before < extent:
                message = f"is not strides_bytes[{index - 1}] = {before} times at least dims[{index}] = {extent}"
        if message:
            place = f"strides_bytes[{index}] = {stride} (mode {index + 1})"
            yield Violation("STRIDE_NEST", f"{place} {message}", "strides_bytes", index)


def _interleave32(tm: TensorMap) -> Iterator[Violation]:
    if tm.interleave == "32B" and tm.swizzle != "32B":
        yield Violation("INTERLEAVE32", f"interleave 32B requires swizzle 32B, not {tm.swizzle}", "swizzle")


def _packed(tm: TensorMap) -> Iterator[Violation]:
    multiple = _PACKED_MULTIPLES.get(tm.dtype)
    if multiple is None or not tm.dims:
        return
    if tm.dims[0] % multiple:
        message = f"dims[0] = {tm.dims[0]} is not a multiple of {multiple} for dtype {tm.dtype}"
        yield Violation("PACKED_DIM0", message, "dims", 0)
    if multiple == 128 and tm.box[0] != 128:
        yield Violation("PACKED_BOX0", f"box[0] = {tm.box[0]} is not 128 for dtype {tm.dtype}", "box", 0)
    allowed = _PACKED_SWIZZLES.get(tm.dtype)
    if allowed is not None and tm.swizzle not in allowed:
        message = f"swizzle {tm.swizzle} does not go with dtype {tm.dtype}, allowed " + ", ".join(allowed)
        yield Violation("PACKED_SWIZZLE", message, "swizzle")
    if tm.dtype == "u6_align16" and tm.interleave != "NONE":
        message = f"interleave {tm.interleave} does not go with dtype {tm.dtype}"
        yield Violation("PACKED_SWIZZLE", message, "interleave")


_ONLY_DOCUMENTED: Mapping[str, Callable[[TensorMap], Iterator[Violation]]] = MappingProxyType(
    {"PACKED_DIM0": _packed, "STRIDE_NEST": _stride_nest, "INTERLEAVE32": _interleave32}
)
"""``_packed`` names the other rules of packed types too."""
_DOCUMENTED = (
    "RANK", "ARCH_ATOM", "BASE_ALIGN", "BASE_RANGE", "DIM_RANGE", "PACKED_DIM0", "STRIDE_ALIGN", "STRIDE_RANGE",
    "STRIDE_NEST", "BOX_RANGE", "BOX_INNER_16B", "ELEM_STRIDE", "SWIZZLE_INNER", "INTERLEAVE32", "OOB_NAN",
)  # fmt: skip


GATHER_TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gather4 to shared::cta": having("gather4"),
        "gather4 to shared::cluster": having("scatter4"),
        "scatter4": having("scatter4"),
    }
)
"""Architectures for which ptxas 13.0 accepts each form."""
_COORDS = 5
_COORD_LIMIT = 1 << 31


def row_violations(
    tm: TensorMap, coords: Sequence[int], target: str, form: str = "gather4 to shared::cta"
) -> tuple[Violation, ...]:
    """Return every documented rule that gathering or scattering four rows breaks.

    Args:
        tm: The map.
        coords: First column, then the four rows.
        target: Architecture.
        form: A name of ``GATHER_TARGETS``.

    Example:
        >>> tm = TensorMap("bf16", (64, 100), (128,), (64, 1), swizzle="128B")
        >>> row_violations(tm, (0, 2, 5, 0, 9), "sm_100a")
        ()
        >>> [entry.rule for entry in row_violations(tm, (0, 2, 5, 0, 9), "sm_90a")]
        ['GATHER_ARCH']
    """
    if not isinstance(form, str) or form not in GATHER_TARGETS:
        raise malformed("LA856", f"unknown form {shown(form)}", "the forms are " + ", ".join(GATHER_TARGETS))
    lookup(target)
    starts = checked_ints("coords", coords, "LA856")
    found = list(violations(tm, target, "documented"))
    if target not in GATHER_TARGETS[form]:
        message = f"{target} does not have {form}; these do: " + ", ".join(GATHER_TARGETS[form])
        found.append(Violation("GATHER_ARCH", message, "target"))
    if tm.rank != 2:
        found.append(Violation("GATHER_RANK", f"dims has {tm.rank} entries, not 2", "dims"))
    elif tm.box[1] != 1:
        found.append(Violation("GATHER_BOX", f"box[1] = {tm.box[1]}, not 1", "box", 1))
    if tm.interleave != "NONE":
        found.append(Violation("GATHER_INTERLEAVE", f"interleave is {tm.interleave}, not NONE", "interleave"))
    if len(starts) != _COORDS:
        because = f"got {len(starts)}"
        raise malformed("LA856", "coords must be the first column and four rows", because)
    for index, start in enumerate(starts):
        if not -_COORD_LIMIT <= start < _COORD_LIMIT:
            message = f"coords[{index}] = {start} is not a signed 32-bit integer"
            found.append(Violation("COORD_RANGE", message, "coords", index))
    if starts[0] * DTYPES[tm.dtype].bits % 128:
        message = f"coords[0] = {starts[0]} is not a multiple of 16 bytes"
        found.append(Violation("BOX_ADDR", message, "coords", 0))
    if form == "scatter4" and min(starts) < 0:
        found.append(Violation("STORE", f"a store starts at a negative coordinate: {starts}", "coords"))
    return tuple(found)


def gathered_boxes(tm: TensorMap, coords: Sequence[int], target: str = "sm_100a") -> tuple[tuple[int, int], ...]:
    """Return the start (column, row) of each of the four boxes, in shared-memory order.

    Example:
        >>> gathered_boxes(TensorMap("bf16", (64, 100), (128,), (64, 1)), (0, 2, 5, 0, 9))
        ((0, 2), (0, 5), (0, 0), (0, 9))
    """
    broken = row_violations(tm, coords, target)
    if broken:
        raise malformed("LA856", "these rows cannot be gathered", "; ".join(str(entry) for entry in broken))
    column, *rows = (int(value) for value in coords)
    return tuple((column, row) for row in rows)
