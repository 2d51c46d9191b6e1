"""Limits that several files share: sizes, bits, bytes, depth, time.

Each constant is followed by its unit and what it bounds. A limit of one file is in that file, in the same form;
``docs/reliability.md`` shows all of them. Hardware limits are in ``layoutalg.targets``.
"""

from __future__ import annotations

from typing import Final

TABLE_BYTES: Final = 2**30
"""bytes: all arrays of one answer that lists points (a table, an enumeration)"""

POINTS: Final = 2**20
"""points: enumerated by one decision that algebra does not make, or listed by one table"""

ISL_SECONDS: Final = 3.0
"""seconds: one ISL query, by default"""

SMT_SECONDS: Final = 2.0
"""seconds: one z3 query, by default"""

COMPILE_SECONDS: Final = 60.0
"""seconds: compiling one kernel text as C++"""

COMPILER_WORDS: Final = 4_000
"""characters: the tail of the compiler output shown in an error"""

KERNEL_TEXT: Final = 2**20
"""characters: the text of one kernel"""

KERNELS: Final = 64
"""entries: cached compiled kernels (each of at most about 100 KB)"""

PTX_STEPS: Final = 1 << 22
"""instructions: of one thread of a kernel that is read back"""

DOCUMENT_BYTES: Final = 64 * 2**20
"""bytes: one JSON file, or what is read from standard input"""

MODE_DIGITS: Final = 64
"""digits: mixed-radix digits of one tile dimension in shared memory"""

SYMBOLIC_SECONDS: Final = 20.0
"""seconds: one operation on symbolic layouts"""

EQUAL_SECONDS: Final = 10.0
"""seconds: one equality of two layouts, all engines together, by default"""

INTEGER_BITS: Final = 4_096
"""bits: one extent, stride, constant or modulus of an integer layout, or coefficient of a symbolic access"""

POINTS_BITS: Final = 13_000
"""bits: the number of points of an integer layout (Python prints integers of up to 4,300 digits)"""

PROBLEM_RANK: Final = 16
"""dimensions: the tensor of a TensorMap problem"""

PROBLEM_EXTENT: Final = 2**48
"""elements: an extent, stride, offset or origin step of a TensorMap problem; keeps their products exact"""

PROBLEM_STEP: Final = 2**24
"""elements: an element stride of a TensorMap problem"""

TILE_ELEMENTS: Final = 2**24
"""elements: the tile of a TensorMap problem"""

SMEM_REACH: Final = 2**40
"""elements: the shared-memory offsets of a TensorMap problem"""

OPERAND_ELEMENTS: Final = 2**20
"""elements: the tile of a wgmma operand"""

PROOF_SECONDS: Final = 20.0
"""seconds: one ISL query of a checker, including worker start-up"""

WALK_ELEMENTS: Final = 2**20
"""elements: all elements that the copies of one tile touch, if the checker walks them"""

NOTATION_CHARACTERS: Final = 100_000
"""characters: one text for ``layoutalg.parse`` or a notation reader"""

ARRAY_RANK: Final = 64
"""dimensions: one numpy array"""

TUPLE_DEPTH: Final = 64
"""levels: nesting of a shape, stride, coordinate or tiler"""

TUPLE_MODES: Final = 10_000
"""modes: leaves of one shape, stride or coordinate"""

SWIZZLE_STACK: Final = 64
"""swizzles: stacked on one CuTe layout"""

ISL_OPERATIONS: Final = 500_000
"""operations: one ISL query, if no worker process can be started"""

ATTRIBUTE_CHARACTERS: Final = 100_000
"""characters: the text of a Triton attribute or of a Gluon layout"""

CUTE_POINTS: Final = 2**20
"""points: enumerated by one decision about CuTe layouts if algebra does not decide"""

TILE_ISSUES: Final = 4_096
"""copies: the bulk tensor copies of one tile"""

PLAN_SECONDS: Final = 30.0
"""seconds: one tensor-map plan including repairs, by default"""

REPAIR_SECONDS: Final = 2.0
"""seconds: computing the repairs of one refusal"""

REPAIR_TRIES: Final = 60
"""repaired requests: tried per kind of repair"""

ISL_CHARACTERS: Final = 200_000
"""characters: the text of a set or a map in ISL's notation"""

ISL_DEPTH: Final = 500
"""levels: nested brackets and signs in such a text"""

ISL_DIGITS: Final = 300
"""digits: one number in such a text"""

ISL_QUOTIENTS: Final = 200
"""quotients: ``div`` and ``//`` in such a text"""

ISL_AXES: Final = 400
"""entries: one tuple in such a text"""

ISL_NAME: Final = 200
"""characters: one name in such a text"""

ISL_COMPLEMENTS: Final = 100
"""quantifiers: negated quantifiers in such a text; ISL's time grows exponentially in them"""

PIECEWISE_POINTS: Final = 2**24
"""points: the table of a piecewise layout"""

VALIDATED_BYTES: Final = 2**36
"""bytes: address space of the tensor in a validation; above 2^26 only the parts that tiles touch are filled"""

PRODUCT_BYTES: Final = 2**28
"""bytes: one operand's tensor in the validation of a tile product"""

COMMAND_SECONDS: Final = 30.0
"""seconds: one document of ``explain``, ``synth`` and ``check`` without ``--budget``"""

RUN_SECONDS: Final = 120.0
"""seconds: one document of ``validate`` and ``demo``, which compile and run, without ``--budget``"""
