"""Rules of accesses between registers and shared memory.

References: PTX ISA 9.1, ldmatrix, stmatrix, ld, st, cp.async.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import Rule, Source

_TABLE = (
    ("ACCESS_ARCH", "the target has the instruction",
     "ldmatrix sm_75, stmatrix sm_90, cp.async sm_80; forms of 8 bits and fewer sm_100a, sm_103a, sm_120a"),
    ("ACCESS_ELEMENT", "elements fill the units that the instruction moves",
     "32 bits, with .trans 16; the narrow forms have one width"),
    ("ACCESS_TILE", "the tile divides into rows, matrices and whole instructions",
     "8 or 16 rows of 16 bytes; 32 vectors"),
    ("ACCESS_CONTIGUOUS", "the elements of a row are contiguous in shared memory", "16 bytes, or the vector"),
    ("ACCESS_ALIGNED", "a row starts at a multiple of its size", "16 bytes, or the vector"),
    ("ACCESS_LANES", "lanes that share a row hold their own part of it", "4 lanes; with .trans 8"),
    ("ACCESS_REGISTERS", "the registers of a lane hold whole units", "the units of the instruction"),
    ("ACCESS_OVERLAP", "a store writes each byte for only one element", "one element per byte"),
    ("ASYNC_GLOBAL", "the elements of a copy are contiguous in global memory and aligned to its size",
     "4, 8 or 16 bytes"),
    ("ASYNC_TAIL", "a copy fills only its end with zeros", "src-size up to cp-size"),
)  # fmt: skip
_SOURCE = Source("PTX ISA", "9.1", "ldmatrix, stmatrix, ld, st, cp.async")
RULES: Mapping[str, Rule] = MappingProxyType(
    {name: Rule(name, statement, limit, (_SOURCE,), documented=True, scope="use") for name, statement, limit in _TABLE}
)
"""The rules by id."""
