"""Shared-memory banks by target and instruction: how many turns one access of a warp or wave takes.

Main definitions: ``turns``, ``Access``, ``nvidia_access``, ``AMD_RULES``.

Main statements: within a phase, lanes that touch the same word are served together and different words of one bank take
turns; phases follow each other. What differs between targets and instructions is which lanes form a phase and how many
banks there are. An instruction whose phases nobody published is refused, and so is one on which sources disagree.

References: NVIDIA: see ``nvidia.banks``, measured on an H200. AMD: nod-ai/amd-shark-ai, kernel optimisation guide and
empirical LDS notes (MI300X, MI350X, W7900, RX 9070 XT); HazyResearch/HipKittens, phases of gfx950 by pairwise counters;
composable kernel, LDS bank conflicts (``ds_write_b128`` of gfx942); Triton pull request 11365 (gfx1201). No AMD device
was measured for this package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, RepresentabilityError, shown
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.nvidia import banks
from layoutalg.targets.nvidia.accesses import FORMS, VECTOR_RULE, vector_name
from layoutalg.targets.registry import TARGETS

_MATRIX = re.compile(
    r"(ld|st)matrix(?:\.sync)?(?:\.aligned)?(?:\.m8n8)?\.x([124])(\.trans)?(?:\.shared(?:::cta)?)?(?:\.b16)?"
)
_NAMES = "ld.shared.b32, ld.shared.v4.b32, st.shared.v2.b32, ldmatrix.x4, ldmatrix.x4.trans, stmatrix.x2, ..."


@dataclass(frozen=True, slots=True)
class Access:
    """A shared-memory instruction of NVIDIA.

    Args:
        kind: As in ``nvidia.banks.wavefronts``.
        bits: Bits that each address leads to.
        matrices: Matrices of ``ldmatrix`` and ``stmatrix``, each with 8 addresses; 0 for loads and stores.
        transposed: Whether the instruction has ``.trans``.
    """

    kind: str
    bits: int
    matrices: int = 0
    transposed: bool = False

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    @property
    def addresses(self) -> int:
        """How many lanes supply an address."""
        return 8 * self.matrices or banks.LANES


@dataclass(frozen=True, slots=True)
class LdsRule:
    """How LDS serves one instruction of AMD.

    Args:
        lanes: Lanes of a wave.
        banks: Banks of 4 bytes.
        access_bytes: Bytes of a lane.
        phases: Lanes that are served together.
        evidence: ``"measured"`` or ``"documented"``, by the sources above.
    """

    lanes: int
    banks: int
    access_bytes: int
    phases: tuple[tuple[int, ...], ...]
    evidence: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


def _lanes(text: str, wave: int) -> tuple[tuple[int, ...], ...]:
    """Read phases of 32 lanes, ``"0-3 20-23 / 4-7 16-19"``; a wave of 64 has them twice."""
    half = []
    for phase in text.split("/"):
        spans = [tuple(map(int, span.split("-"))) for span in phase.split()]
        half.append(tuple(lane for first, last in spans for lane in range(first, last + 1)))
    return tuple(tuple(base + lane for lane in phase) for base in range(0, wave, 32) for phase in half)


_PAIRED = "0-3 20-23 / 4-7 16-19 / 8-11 28-31 / 12-15 24-27"
_EIGHTS = "0-7 / 8-15 / 16-23 / 24-31"
AMD_RULES: Mapping[tuple[str, str], LdsRule] = MappingProxyType(
    {
        ("gfx942", "ds_read_b32"): LdsRule(64, 32, 4, _lanes("0-31", 64), "measured"),
        ("gfx942", "ds_read_b64"): LdsRule(64, 32, 8, _lanes("0-15 / 16-31", 64), "measured"),
        ("gfx942", "ds_read_b128"): LdsRule(64, 32, 16, _lanes(_PAIRED, 64), "measured"),
        ("gfx942", "ds_write_b128"): LdsRule(64, 32, 16, _lanes(_EIGHTS, 64), "documented"),
        ("gfx950", "ds_read_b64"): LdsRule(64, 64, 8, _lanes("0-31", 64), "measured"),
        ("gfx950", "ds_read_b96"): LdsRule(64, 32, 12, _lanes(_PAIRED, 64), "measured"),
        ("gfx950", "ds_read_b128"): LdsRule(64, 64, 16, _lanes("0-3 12-15 20-27 / 4-11 16-19 28-31", 64), "measured"),
        ("gfx950", "ds_write_b64"): LdsRule(64, 32, 8, _lanes("0-15 / 16-31", 64), "measured"),
        ("gfx1100", "ds_read_b32"): LdsRule(32, 32, 4, _lanes("0-31", 32), "measured"),
        ("gfx1100", "ds_read_b64"): LdsRule(32, 32, 8, _lanes("0-15 / 16-31", 32), "measured"),
        ("gfx1100", "ds_read_b128"): LdsRule(32, 32, 16, _lanes(_PAIRED, 32), "measured"),
        ("gfx1201", "ds_read_b128"): LdsRule(32, 32, 16, _lanes(_EIGHTS, 32), "measured"),
    }
)
"""By target and instruction: what sources measured or the vendor documents."""


def turns(target: str, operation: str, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
    """Return the turns that shared memory needs for one instruction of a warp or wave.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction's own name: ``"ld.shared.v4.b32"``, ``"st.shared.b16"``, ``"ldmatrix.x4"``,
            ``"ds_read_b128"``, ...
        byte_addresses: One byte address per lane, None for an inactive lane; for ``ldmatrix`` and ``stmatrix`` one per
            row: 8 for x1, 16 for x2, 32 for x4. Inactive lanes touch nothing.

    Raises: MalformedError: LA709. RepresentabilityError: LA712.

    Example:
        >>> turns("sm_90a", "ld.shared.v4.b32", [16 * lane for lane in range(32)])
        4
        >>> rows = [128 * (lane % 32) for lane in range(64)]
        >>> turns("sm_90a", "ldmatrix.x1", rows[:8]), turns("gfx942", "ds_read_b32", rows)
        (8, 64)

    Source: see the head of the file.
    """
    if not isinstance(target, str) or (target not in TARGETS and not target.startswith("gfx")):
        raise banks.malformed("target", f"must be one of {', '.join(TARGETS)}", target)
    if target.startswith("gfx"):
        return _lds_turns(target, operation, byte_addresses)
    access = nvidia_access(operation)
    if not TARGETS[target].measured and (access.matrices or access.bits > 32):
        because = f"which lanes of {operation} are served together is not documented, and no {target} was measured"
        raise unknown(target, operation, because)
    if hasattr(byte_addresses, "__len__") and len(byte_addresses) != access.addresses:
        rule = f"must hold {access.addresses} integers for {operation}, None where a lane is inactive"
        raise banks.malformed("byte_addresses", rule, f"{len(byte_addresses)} entries")
    return banks.wavefronts(byte_addresses, access.bits, access.kind)


def nvidia_access(operation: object) -> Access:
    """Return what a shared-memory instruction of PTX accesses.

    Raises: MalformedError: LA709.

    Example:
        >>> nvidia_access("st.shared.v2.b32")
        Access(kind='store', bits=64, matrices=0, transposed=False)
        >>> nvidia_access("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
        Access(kind='ldmatrix', bits=128, matrices=2, transposed=True)
    """
    text = operation if isinstance(operation, str) else ""
    if found := _MATRIX.fullmatch(text):
        return Access(f"{found[1]}matrix", 128, int(found[2]), bool(found[3]))
    if name := vector_name(text):
        return Access("store" if name.startswith("st") else "load", FORMS[name].row_bits)
    rule = f"PTX: {VECTOR_RULE}" if text.startswith(("ld.", "st.")) else _NAMES
    raise banks.malformed("operation", f"must be a shared-memory instruction ({rule})", operation)


def lds_rule(target: str, operation: object) -> LdsRule:
    """Return how LDS serves an instruction.

    Raises: RepresentabilityError: LA712.
    """
    rule = AMD_RULES.get((target, operation)) if isinstance(operation, str) else None
    if rule is None:
        known = ", ".join(f"{name} {instruction}" for name, instruction in AMD_RULES)
        because = f"its phases are not published, or sources disagree on them; known are {known}"
        raise unknown(target, operation, because)
    return rule


def _lds_turns(target: str, operation: object, byte_addresses: object) -> int:
    rule = lds_rule(target, operation)
    grain = 4 if rule.access_bytes == 12 else rule.access_bytes
    offsets = banks.checked_offsets(byte_addresses, grain, (rule.lanes,), "byte_addresses")
    total = 0
    for phase in rule.phases:
        starts = [offset // 4 for lane in phase if (offset := offsets[lane]) is not None]
        words = {start + word for start in starts for word in range(rule.access_bytes // 4)}
        busy = [0] * rule.banks
        for word in words:
            busy[word % rule.banks] += 1
        total += max(busy)
    return total


def unknown(target: str, operation: object, because: str) -> RepresentabilityError:
    """Return the error for an instruction whose groups of lanes are not known."""
    what = "the turns of this access are not known"
    return RepresentabilityError(Diagnostic("LA712", what, (f"{target} {shown(operation)}",), because))
