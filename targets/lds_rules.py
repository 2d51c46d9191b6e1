"""AMD LDS phases by target and instruction: which lanes are served together, and what is unpublished.

Main statements: a rule is listed only if it was measured or the vendor's guide gives its phases; phases that were
inferred, assumed from a similar chip or contradicted by another source are left out. ``ds_read2_b64`` takes two
addresses per lane: its phases number the wave's first addresses from 0 and the second ones from 64.

References: nod-ai/amd-shark-ai, kernel optimisation guide (``ds_read2_b64``, ``ds_write_b128`` of gfx942) and
empirical LDS notes (MI300X, MI350X, W7900, RX 9070 XT); HazyResearch/HipKittens, phases of gfx950 by pairwise counters;
composable kernel 29bbf41, docs/conceptual/ck_tile/hardware/lds_bank_conflicts.rst, Bank Mapping (``ds_write_b128`` of
gfx942; its phases of ``ds_read_b128`` are those measured); CDNA4 ISA guide, 11.1 (64 banks of gfx950); Triton pull
request 11365 (gfx1201); rocRoller, LDS bank model (gfx950).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import fact
from layoutalg.targets.registry import AMD, TARGETS

WAVES: Mapping[str, int] = MappingProxyType({name: TARGETS[name].lanes for name in AMD} | {"gfx1250": 32})
"""Lanes per wave; gfx1250 is included although nothing about its banks is published."""


@fact("LA374")
class LdsRule:
    """How LDS serves one instruction of AMD.

    Args:
        lanes: Lanes of a wave; doubled for instructions with two addresses per lane.
        banks: Banks of 4 bytes.
        access_bytes: Bytes accessed per address.
        phases: Lanes that are served together.
        evidence: ``"measured"`` or ``"documented"``, by the sources above.
    """

    lanes: int
    banks: int
    access_bytes: int
    phases: tuple[tuple[int, ...], ...]
    evidence: str


def _lanes(text: str, wave: int) -> tuple[tuple[int, ...], ...]:
    """Parse phases of 32 lanes, ``"0-3 20-23 / 4-7 16-19"``; a wave of 64 repeats them."""
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
        ("gfx1201", "ds_read_b32"): LdsRule(32, 32, 4, _lanes("0-31", 32), "measured"),
        ("gfx1201", "ds_read_b64"): LdsRule(32, 32, 8, _lanes("0-15 / 16-31", 32), "measured"),
        ("gfx1201", "ds_read_b128"): LdsRule(32, 32, 16, _lanes(_EIGHTS, 32), "measured"),
    }
)
"""Phases by target and instruction, as measured or as the vendor documents them."""

PAIRED_RULES: Mapping[tuple[str, str], LdsRule] = MappingProxyType(
    {("gfx942", "ds_read2_b64"): LdsRule(128, 32, 8, _lanes("0-15 / 16-31", 128), "documented")}
)
"""The same for instructions with two addresses per lane: all first addresses, then all second ones."""

DISPUTED: Mapping[tuple[str, str], tuple[tuple[str, LdsRule], ...]] = MappingProxyType(
    {
        ("gfx950", "ds_read_b32"): (
            ("64 banks serve the whole wave (guide)", LdsRule(64, 64, 4, (tuple(range(64)),), "disputed")),
            ("32 banks serve 32 lanes at a time (rocRoller)", LdsRule(64, 32, 4, _lanes("0-31", 64), "disputed")),
        )
    }
)
"""Instructions on which sources disagree: each source's claim and the rule it implies."""

_B32 = "the guide and the MI350X notes serve 64 lanes at once from 64 banks, rocRoller's model has 32 banks"
_MISSING: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("gfx950", "ds_read_b32"): f"sources disagree, and nothing published settles it: {_B32}",
        ("gfx950", "ds_read_b64_tr_b16"): "the phases of transposing reads are not published; "
        "a plain swizzle is suspected not to clear all their conflicts (Triton pull request 6065)",
        ("gfx950", "ds_write_b128"): "its phases are not published; rocRoller's cost model assumes groups of 8 "
        "neighbouring lanes and 32 banks, without a measurement",
        ("gfx950", "ds_write_b32"): "its phases are not published, and sources disagree on ds_read_b32",
        ("gfx942", "ds_write_b32"): "its phases are not published; the guide mentions in passing that 32 "
        "neighbouring lanes are served together, without a measurement",
        ("gfx942", "ds_write_b64"): "its phases are not published; those of ds_read_b64 are",
        ("gfx942", "ds_read2_b32"): "its phases are not published; those of ds_read2_b64 are",
        ("gfx942", "ds_read2st64_b64"): "its phases are not published; those of ds_read2_b64 are, which differs in its "
        "offset unit",
    }
)
_BY_TARGET: Mapping[str, str] = MappingProxyType(
    {
        "gfx90a": "its phases are not published: that gfx90a has the 32 banks of gfx942 is assumed, not measured",
        "gfx1250": "its phases and the number of banks are not published; waves of 32 and 320 KB of LDS in partitions "
        "of 64 KB are",
    }
)
_NAME = re.compile(
    r"ds_(?:(?:read|load|write|store)_b(?:8|16|32|64|96|128)|(?:read|load)_[iu](?:8|16)(?:_d16(?:_hi)?)?"
    r"|(?:write|store)_b(?:8|16)(?:_d16_hi)?|(?:read|write)2(?:st64)?_b(?:32|64)"
    r"|(?:load|store)_2addr(?:_stride64)?_b(?:32|64)|read_b64_tr_b(?:4|8|16)|read_b96_tr_b6|load_tr\d+_b\d+)"
)
_NEW = ((r"2addr_stride64_(?=b)", "2st64_"), (r"2addr_(?=b)", "2_"))


def lds_name(operation: object) -> str | None:
    """Return the (older) name under which an LDS instruction is listed here; None if it is not one.

    Example:
        >>> lds_name("ds_read_b128"), lds_name("ds_store_b64"), lds_name("ds_load_2addr_b64"), lds_name("ds_read_b77")
        ('ds_read_b128', 'ds_write_b64', 'ds_read2_b64', None)
    """
    if not isinstance(operation, str) or not _NAME.fullmatch(operation):
        return None
    name = operation.replace("ds_load_2addr", "ds_read_2addr").replace("ds_store_2addr", "ds_write_2addr")
    for pattern, new in _NEW:
        name = re.sub(f"_{pattern}", new, name)
    return re.sub(r"ds_load_(?!tr)", "ds_read_", name).replace("ds_store_", "ds_write_")


def unpublished(target: str, operation: str) -> str:
    """Return why the phases of an instruction are unknown.

    Example:
        >>> unpublished("gfx942", "ds_write_b64")
        'its phases are not published; those of ds_read_b64 are'
    """
    found = _MISSING.get((target, operation)) or _BY_TARGET.get(target)
    return found or "its phases are not published"


def known_names(target: str) -> tuple[str, ...]:
    """Return the instructions of a target whose phases are known.

    Example:
        >>> known_names("gfx1201")
        ('ds_read_b32', 'ds_read_b64', 'ds_read_b128')
    """
    return tuple(name for where, name in (*AMD_RULES, *PAIRED_RULES) if where == target)
