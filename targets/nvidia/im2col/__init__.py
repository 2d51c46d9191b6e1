"""Im2col tensor maps: fields, rules, the 128 bytes, what a load does and what it denotes.

Implementation notes: im2col-wide needs compute capability 10.0, which was not available: it has documented rules and no
bytes.
"""

from __future__ import annotations

from layoutalg.targets.nvidia.im2col.checks import (
    RULES,
    require_accepted,
    store_violations,
    use_violations,
    violations,
    wide_use_violations,
)
from layoutalg.targets.nvidia.im2col.encoding import FIELDS, column_bytes, decode, encode
from layoutalg.targets.nvidia.im2col.execute import (
    im2col_load,
    im2col_store,
    layout,
    load_bytes,
    pixel_addresses,
    pixel_places,
    require_use,
    row_bytes,
    row_pitch_bytes,
)
from layoutalg.targets.nvidia.im2col.fields import (
    CORNER_RANGES,
    MAX_CHANNELS,
    MAX_PIXELS,
    OFFSET_LIMITS,
    WIDE_SWIZZLES,
    Im2colMap,
    Im2colWideMap,
)

__all__ = [
    "CORNER_RANGES", "FIELDS", "MAX_CHANNELS", "MAX_PIXELS", "OFFSET_LIMITS", "RULES", "WIDE_SWIZZLES", "Im2colMap",
    "Im2colWideMap", "column_bytes", "decode", "encode", "im2col_load", "im2col_store", "layout", "load_bytes",
    "pixel_addresses", "pixel_places", "require_accepted", "require_use", "row_bytes", "row_pitch_bytes",
    "store_violations", "use_violations", "violations", "wide_use_violations",
]  # fmt: skip
