"""What is wrong with the bytes of a tensor map, or with the arguments of a failed ``cuTensorMapEncodeTiled`` call.

Main statements: a repair is shown only if the repaired map breaks no rule that the measured driver enforces; if no
change of single fields achieves that, none is shown. Bits that this module cannot read (im2col, other architectures)
are named and left unchanged.

References: NVIDIA/TensorRT-LLM ``tmaDescriptor.h`` (Apache-2.0); CUDA driver API, ``cuTensorMapEncodeTiled``;
measurements on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from layoutalg.ground.errors import DeviceMismatchError, Diagnostic, LayoutError, Repair, plain, shown
from layoutalg.targets.model import Violation, fact
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import alignment, enforced_violations, violations
from layoutalg.targets.nvidia.tensormap.encoding import CODEC, MAP_BYTES, encode, lower_half, mode_of
from layoutalg.targets.nvidia.tensormap.facts import box_bytes, is_measured
from layoutalg.targets.nvidia.tensormap.fields import CODES, DTYPES, TensorMap, malformed
from layoutalg.targets.nvidia.tensormap.limits import MAX_BOX, MAX_BOX_BYTES, RANGES
from layoutalg.targets.nvidia.tensormap.rules import RULES
from layoutalg.targets.nvidia.tensormap.texts import HALF_BYTES, is_call, read_call, read_map

SCHEMA = "layoutalg/tensormap-diagnosis/1"
CALL = "layoutalg/driver-call/1"
"""Schema of the arguments of ``cuTensorMapEncodeTiled``."""
_DRIVER_NAMES = {
    "tensorDataType": "dtype", "globalAddress": "base_address", "globalDim": "dims", "globalStrides": "strides_bytes",
    "boxDim": "box", "elementStrides": "element_strides", "l2Promotion": "l2_promotion", "oobFill": "oob_fill",
}  # fmt: skip
_NUMBERS = {field: {code: name for name, code in codes.items()} for field, codes in CODES.items()}
_OTHERS = {
    "kind": ("IM2COL", "this is an im2col map; diagnose() reads tiled maps"),
    "version": ("VERSION", "public headers write 1 here, the measured driver 0"),
    "swizzle_atom": ("ARCH_ATOM", "swizzle atoms need compute capability 10.0 or later"),
    "allocation_class": ("ALLOCATION_CLASS", "allocation class LARGE, which the measured driver never sets"),
    "swizzle_96B": ("ARCH_ATOM", "the 96-byte swizzle exists only on sm_103a"),
    "reserved": ("RESERVED", "reserved bits are 0 in every map a driver wrote"),
}


@fact("LA374")
class Trouble:
    """One problem: something the driver refuses, or that only documents forbid.

    Args:
        rule: Id of the rule, or a name for the bits: ``RESERVED``, ``UNUSED_MODE``, ``UPPERHALF_BYTES``, ...
        field: The field, with its position.
        message: A sentence with the numbers.
        enforced: Whether the measured driver refuses it, or never writes it.
        documented: Whether a document of the vendor states the rule.
        since: The documents that state it, with versions.
    """

    rule: str
    field: str
    message: str
    enforced: bool
    documented: bool
    since: tuple[str, ...] = ()

    def __str__(self) -> str:
        kind = "enforced" if self.enforced else "documented only"
        return f"{self.rule} ({kind}): {self.message}" + (f" [{'; '.join(self.since)}]" if self.since else "")


@fact("LA374")
class Diagnosis:
    """The fields of a map, what is wrong with them, and a repair.

    Args:
        fields: ``(name, value)`` of every readable field.
        troubles: What the measured driver refuses, then what only documents forbid.
        tensor_map: The map, if the fields form one.
        repairs: Changes that together, as verified, leave no enforced rule broken.
        repaired: The repaired map.
        read_as: How a text was read.
    """

    fields: tuple[tuple[str, str], ...]
    troubles: tuple[Trouble, ...]
    tensor_map: TensorMap | None = None
    repairs: tuple[Repair, ...] = ()
    repaired: TensorMap | None = None
    read_as: str = ""

    @property
    def accepted(self) -> bool:
        """Whether nothing is wrong that the measured driver enforces."""
        return not any(trouble.enforced for trouble in self.troubles)

    def __str__(self) -> str:
        head = "accepted" if self.accepted else "not accepted"
        lines = [f"tensor map    {head} by the measured driver"]
        lines += [f"  {name:<18} {value}" for name, value in (("read as", self.read_as), *self.fields) if value]
        lines += [f"  wrong         {trouble}" for trouble in self.troubles]
        return "\n".join(lines + [f"  try           {repair.name}: {repair.detail}" for repair in self.repairs])

    def to_json(self) -> dict[str, object]:
        """Return the diagnosis as JSON-ready data."""
        return {
            "schema": SCHEMA, "accepted": self.accepted, "fields": dict(self.fields),
            "troubles": [plain(asdict(trouble)) for trouble in self.troubles],
            "repairs": [repair.to_json() for repair in self.repairs],
            "repaired_hex": None if self.repaired is None else encode(self.repaired).hex(),
            **({"read_as": self.read_as} if self.read_as else {}),
        }  # fmt: skip


def diagnose(source: object, target: str = "sm_90a", *, status: int | None = None) -> Diagnosis:
    """Report the fields of a tensor map, the rules it breaks, and a repair.

    Args:
        source: A ``TensorMap``; 128 bytes, or the 64 that hold fields, or a dump of them, as
            ``layoutalg.targets.dumps`` reads it; C++ that calls ``cuTensorMapEncodeTiled``; a mapping of its arguments:
            fields of ``TensorMap``, or the driver's names (``globalDim``, ...), with names, enumerators or numbers.
        target: Architecture; enforced rules and repairs exist only for a measured one.
        status: The driver's return code for these arguments; 0 means accepted.

    Raises: MalformedError: LA300, LA301, LA340, LA806, LA989. DeviceMismatchError: LA807: the driver disagrees.

    Example:
        >>> found = diagnose(TensorMap("bf16", (500, 1024), (1000,), (72, 64), swizzle="128B"))
        >>> [trouble.rule for trouble in found.troubles if trouble.enforced]
        ['STRIDE_ALIGN', 'SWIZZLE_INNER']
        >>> print(found.repairs[0].detail)
        strides_bytes (1000,) -> (1008,); box (72, 64) -> (64, 64)

    Source: rules of ``tensormap.RULES``; bits of ``tensormap.FIELDS``.
    """
    if status is not None and (isinstance(status, bool) or not isinstance(status, int)):
        raise malformed("LA806", "invalid driver status", f"status must be an integer, not {shown(status)}")
    if isinstance(source, TensorMap):
        found = _of_map(source, target)
    elif isinstance(source, Mapping):
        found = _of_map(_read_arguments(source), target)
    elif isinstance(source, str) and is_call(source):
        given, how = read_call(source)
        found = replace(_of_map(_read_arguments(given), target), read_as=how)
    elif isinstance(source, str):
        reading = read_map(source, target, (MAP_BYTES, HALF_BYTES))
        found = replace(_of_bytes(reading.raw, target), read_as=reading.form)
    else:
        found = _of_bytes(_raw(source), target)
    if status is not None and (status == 0) != found.accepted:
        said = "accepted" if status == 0 else f"refused (status {status})"
        mine = "accept" if found.accepted else "refuse: " + "; ".join(t.rule for t in found.troubles if t.enforced)
        because = f"the driver {said} what the measured driver's rules {mine}"
        raise DeviceMismatchError(Diagnostic("LA807", "the driver disagrees", (str(found.fields),), because))
    return found


def _raw(source: object) -> bytes:
    if not isinstance(source, (bytes, bytearray, memoryview)) or len(bytes(source)) not in (HALF_BYTES, MAP_BYTES):
        because = "expected a TensorMap, 64 or 128 bytes, a dump of them, or the driver's call or its arguments"
        raise malformed("LA806", "cannot diagnose this object", because)
    return bytes(source)


def _read_arguments(given: Mapping[Any, Any]) -> TensorMap:
    """The map described by a driver call's arguments."""
    values: dict[str, Any] = {}
    if given.get("schema", CALL) != CALL:
        raise malformed("LA806", "these are not the arguments of the driver's call", f"the schema must be {CALL!r}")
    for key, value in given.items():
        name = _DRIVER_NAMES.get(key, key)
        if name in ("tensorRank", "schema"):
            continue
        if name in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
            if value not in _NUMBERS[name]:
                raise malformed("LA806", f"{name} {value} is not a driver enumerator", f"known: {_NUMBERS[name]}")
            value = _NUMBERS[name][value]
        values[name] = value
    rank = given.get("tensorRank")
    if isinstance(rank, int):
        for name in ("dims", "box", "element_strides"):
            with contextlib.suppress(TypeError):
                values[name] = tuple(values.get(name, ()))[:rank]
        with contextlib.suppress(TypeError):
            values["strides_bytes"] = tuple(values.get("strides_bytes", ()))[: max(rank - 1, 0)]
    try:
        return TensorMap(**values)
    except TypeError as error:
        raise malformed("LA806", "these are not the arguments of the driver's call", str(error)[:200]) from None


def _of_map(tm: TensorMap, target: str) -> Diagnosis:
    measured = is_measured(target)
    enforced = enforced_violations(tm) if measured else ()
    documented = violations(tm, target, "documented")
    stated = {str(entry) for entry in documented}
    said = {str(entry) for entry in enforced}
    troubles = [_trouble(entry, True, str(entry) in stated) for entry in enforced]
    troubles += [_trouble(entry, not measured, True) for entry in documented if str(entry) not in said]
    fields = tuple((name, str(getattr(tm, name))) for name in tm.__dataclass_fields__)
    if not enforced:
        return Diagnosis(fields, tuple(troubles), tm)
    repaired = _repaired(tm)
    if repaired is None:
        return Diagnosis(fields, tuple(troubles), tm)
    changed = [name for name in tm.__dataclass_fields__ if getattr(tm, name) != getattr(repaired, name)]
    detail = "; ".join(f"{name} {getattr(tm, name)} -> {getattr(repaired, name)}" for name in changed)
    repair = Repair(f"change {', '.join(changed)}", detail, asdict(repaired))
    return Diagnosis(fields, tuple(troubles), tm, (repair,), repaired)


def _trouble(entry: Violation, enforced: bool, documented: bool) -> Trouble:
    place = entry.field if entry.position is None else f"{entry.field}[{entry.position}]"
    rule = RULES.get(entry.rule)
    since = tuple(dict.fromkeys(f"{one.document} {one.version}" for one in rule.sources)) if rule else ()
    return Trouble(entry.rule, place, entry.message, enforced, documented and bool(since), since)


def _repaired(tm: TensorMap) -> TensorMap | None:
    """The map with each broken field moved to the nearest value that its rule takes; None where rules stay broken."""
    for _ in range(8):
        found = enforced_violations(tm)
        if not found:
            return tm
        changed = tm
        for entry in found:
            with contextlib.suppress(LayoutError):
                changed = _moved(changed, entry)
        if changed == tm:
            return None
        tm = changed
    return None


def _moved(tm: TensorMap, entry: Violation) -> TensorMap:
    """The map with one field moved to the nearest value that the rule accepts, if there is one."""
    rule, at = entry.rule, entry.position
    bits, grain = DTYPES[tm.dtype].bits, alignment(tm)
    if rule in ("BOX_RANGE", "ELEM_STRIDE") and at is not None:
        field, low, high = RANGES[rule]
        values = getattr(tm, field)
        change: dict[str, Any] = {field: _put(values, at, min(max(low, values[at]), high))}
        return replace(tm, **change)
    if rule == "STRIDE_ALIGN" and at is not None:
        return replace(tm, strides_bytes=_put(tm.strides_bytes, at, -(-tm.strides_bytes[at] // grain) * grain))
    if rule == "BASE_ALIGN":
        return replace(tm, base_address=tm.base_address // grain * grain)
    if rule == "BOX_INNER_16B" and tm.box[0] > 0:
        per = 128 // bits
        return replace(tm, box=_put(tm.box, 0, min(-(-tm.box[0] // per) * per, MAX_BOX)))
    if rule == "SWIZZLE_INNER":
        return replace(tm, box=_put(tm.box, 0, SWIZZLE_TABLE[tm.swizzle].span_bytes * 8 // bits))
    if rule == "OOB_NAN":
        return replace(tm, oob_fill="ZERO")
    if rule == "ARCH_ATOM" and entry.field == "swizzle":
        return replace(tm, swizzle="128B")
    if rule == "BOX_SMEM":
        widest = max(range(1, tm.rank), key=lambda mode: tm.box[mode], default=0)
        if widest and box_bytes(tm) > MAX_BOX_BYTES:
            return replace(tm, box=_put(tm.box, widest, max(1, tm.box[widest] // 2)))
    return tm


def _put(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _of_bytes(raw: bytes, target: str) -> Diagnosis:
    words = list(struct.unpack(f"<{len(raw) // 4}I", raw))[:16]
    held = [(field, field.of(words)) for field in CODEC.fields if field.word < 16 and field.of(words)]
    fields = tuple((field.name, f"{bits:#x}") for field, bits in held)
    troubles: list[Trouble] = []
    rank = CODEC.named["rank"].of(words) + 1
    for field, bits in held:
        place = f"{field.bits} hold {bits:#x}"
        mode = mode_of(field.name)
        if field.name in _OTHERS:
            rule, text = _OTHERS[field.name]
            troubles.append(Trouble(rule, field.name, f"{place}: {text}", True, rule == "ARCH_ATOM"))
        elif mode is not None and mode >= rank:
            text = f"{place}, and mode {mode} is unused at rank {rank}"
            troubles.append(Trouble("UNUSED_MODE", field.name, text, True, False))
        else:
            continue
        words[field.word] ^= bits << field.low
    im2col = any(trouble.rule == "IM2COL" for trouble in troubles)
    if im2col or not is_measured(target):
        return Diagnosis(fields, tuple(troubles))
    try:
        tm = lower_half(words)
    except LayoutError as error:
        because = error.diagnostic.because or error.diagnostic.what
        return Diagnosis(fields, (*troubles, Trouble("FIELD", "", because, True, False)))
    exact = encode(tm, target)
    if len(raw) == MAP_BYTES and raw[HALF_BYTES:] != exact[HALF_BYTES:]:
        text = "the upper half does not match the box bytes and alignment that the lower half implies"
        troubles.append(Trouble("UPPERHALF_BYTES", "box_bytes", text, True, False))
    troubles += [_trouble(entry, False, True) for entry in violations(tm, target, "documented")]
    if not any(trouble.enforced for trouble in troubles):
        return Diagnosis(fields, tuple(troubles), tm)
    detail = f"clear or rewrite {', '.join(dict.fromkeys(t.field for t in troubles if t.enforced))}"
    repair = Repair("write these bytes", detail, {"hex": exact.hex()})
    return Diagnosis(fields, tuple(troubles), tm, (repair,), tm)
