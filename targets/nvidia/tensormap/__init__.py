"""TMA tensor maps: their fields, the rules they obey, their 128 bytes and what a tile copy does.

Implementation notes: tiled mode only. Enforced facts come from one chip and driver (NVIDIA H200, driver 580.159.04,
CUDA 13.0); the ``evidence`` argument selects them or the documented ones.
"""

from __future__ import annotations

from layoutalg.targets.codec import Field
from layoutalg.targets.nvidia.tensormap import batch
from layoutalg.targets.nvidia.tensormap.checks import (
    GATHER_TARGETS,
    RefusedMapError,
    gathered_boxes,
    row_violations,
    violations,
)
from layoutalg.targets.nvidia.tensormap.convert import fill_bytes, load_convert
from layoutalg.targets.nvidia.tensormap.diagnose import Diagnosis, Trouble, diagnose
from layoutalg.targets.nvidia.tensormap.encoding import (
    FIELDS,
    MAP_BYTES,
    decode,
    decode_documented,
    encode,
    encode_documented,
)
from layoutalg.targets.nvidia.tensormap.execute import stored_runs, tile_load, tile_store
from layoutalg.targets.nvidia.tensormap.facts import (
    apply_swizzle,
    box_bytes,
    element_bytes,
    footprint_bytes,
    is_measured,
    loaded_counts,
    row_pitch_bytes,
    swizzle_period_bytes,
    swizzle_span_bytes,
    swizzle_supported,
    swizzle_xor,
    tile_align_bytes,
    transaction_bytes,
    unit_bytes,
)
from layoutalg.targets.nvidia.tensormap.fields import (
    BIT_PRESERVING_DTYPES,
    DTYPES,
    ENUMERATORS,
    FLOAT_DTYPES,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    PLAIN_DTYPES,
    SWIZZLES,
    DType,
    TensorMap,
)
from layoutalg.targets.nvidia.tensormap.limits import ENFORCED as RULE_IDS_ENFORCED
from layoutalg.targets.nvidia.tensormap.limits import (
    MAX_BOX,
    MAX_BOX_BYTES,
    MAX_DIM,
    MAX_DIM_ENCODED,
    MAX_ELEMENT_STRIDE,
    MAX_RANK,
    MAX_SMEM_BYTES,
    SMEM_DESTINATION_ALIGN_BYTES,
    STORE_CHUNK_BYTES,
    STRIDE_LIMIT_BYTES,
)
from layoutalg.targets.nvidia.tensormap.meaning import layout
from layoutalg.targets.nvidia.tensormap.rules import RULES
from layoutalg.targets.nvidia.tensormap.texts import read_call, read_map
from layoutalg.targets.nvidia.tensormap.versions import TOOLKITS, Acceptance, accepted_since
from layoutalg.targets.registry import NVIDIA as ARCHITECTURES

__all__ = [
    "ARCHITECTURES", "BIT_PRESERVING_DTYPES", "DTYPES", "ENUMERATORS", "FIELDS", "FLOAT_DTYPES", "GATHER_TARGETS",
    "INTERLEAVES", "L2_PROMOTIONS", "MAP_BYTES", "MAX_BOX", "MAX_BOX_BYTES", "MAX_DIM", "MAX_DIM_ENCODED",
    "MAX_ELEMENT_STRIDE", "MAX_RANK", "MAX_SMEM_BYTES", "OOB_FILLS", "PLAIN_DTYPES", "RULES", "RULE_IDS_ENFORCED",
    "SMEM_DESTINATION_ALIGN_BYTES", "STORE_CHUNK_BYTES", "STRIDE_LIMIT_BYTES", "SWIZZLES", "TOOLKITS", "Acceptance",
    "DType", "Diagnosis", "Field", "RefusedMapError", "TensorMap", "Trouble", "accepted_since", "apply_swizzle",
    "batch", "box_bytes", "decode", "decode_documented", "diagnose", "element_bytes", "encode", "encode_documented",
    "fill_bytes", "footprint_bytes", "gathered_boxes", "is_measured", "layout", "load_convert", "loaded_counts",
    "read_call", "read_map", "row_pitch_bytes", "row_violations", "stored_runs", "swizzle_period_bytes",
    "swizzle_span_bytes", "swizzle_supported", "swizzle_xor", "tile_align_bytes", "tile_load", "tile_store",
    "transaction_bytes", "unit_bytes", "violations",
]  # fmt: skip
