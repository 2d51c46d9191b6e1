"""Every limit of the library in one table: sizes, bits, bytes, depth, time.

Each constant is followed by its unit and what it bounds. ``docs/reliability.md`` shows the same table; a test compares
the two. Limits of hardware are facts and stand in ``layoutalg.targets``; thresholds at which an algorithm merely
changes its method stand where the algorithm is.
"""

from __future__ import annotations

from typing import Final

TABLE_BYTES: Final = 2**30
"""bytes: all arrays of one answer that lists points (a table, an enumeration)"""

WORKER_BYTES: Final = 4 * 2**30
"""bytes: address space of one worker process"""

WORKERS: Final = 4
"""processes: workers at a time; more callers wait for one within their own time"""

WORKER_TASKS: Final = 2_000
"""tasks: a worker is replaced after so many"""

ISL_SECONDS: Final = 3.0
"""seconds: one question to ISL where the caller states no time"""

SMT_SECONDS: Final = 2.0
"""seconds: one question to z3 where the caller states no time"""

# answers that are kept

CACHE_BYTES: Final = 16 * 2**20
"""bytes: arguments and answers that one function keeps for the next time"""

# kernels: text, compilation, validation

COMPILE_SECONDS: Final = 60.0
"""seconds: compiling one kernel text as C++"""

COMPILER_WORDS: Final = 4_000
"""characters: the end of a compiler's messages that an error shows"""

KERNEL_TEXT: Final = 2**20
"""characters: the text of one kernel"""

KERNELS: Final = 64
"""entries: compiled kernels that are kept (each of at most some 100 KB)"""
# documents and the command line

DOCUMENT_BYTES: Final = 64 * 2**20
"""bytes: one JSON file, or what is read from standard input"""

DOCUMENT_VALUES: Final = 2**22
"""values: numbers, texts, lists and objects in one JSON file"""

DOCUMENT_DEPTH: Final = 100
"""levels: lists and objects inside one another in a JSON document"""

DOCUMENT_DIGITS: Final = 1_000
"""digits: one number of a JSON document"""

DOCUMENT_ENTRIES: Final = 2**16
"""entries: one list inside a document (copies, tiles, digits)"""

DOCUMENTS: Final = 100_000
"""documents: one list of problems or plans on the command line"""

MODE_DIGITS: Final = 64
"""digits: the mixed-radix digits of one tile dimension in shared memory"""
# symbolic sizes

TERM_CHARACTERS: Final = 10_000
"""characters: the text of a symbolic size or of a condition, before and after it is multiplied out"""

TERM_DEPTH: Final = 100
"""levels: parentheses and signs in the text of a symbolic size"""

TERM_MONOMIALS: Final = 2_000
"""products: the sum that a symbolic size is, multiplied out"""

TERM_EXPONENT: Final = 16
"""exponent: the highest power of a name in a symbolic size"""

TERM_BITS: Final = 8_192
"""bits: numerators and denominators in a symbolic size, and the sizes it is evaluated at"""

TERM_STEPS: Final = 50_000
"""products: pairs of monomials that are multiplied while the text of a symbolic size is read"""

CONDITIONS: Final = 500
"""conditions: what is assumed about symbolic sizes"""

DECISION_STEPS: Final = 5_000
"""steps: monomials touched while one condition on symbolic sizes is decided by intervals and congruences"""

DECISION_MS: Final = 1_000
"""milliseconds: one decision about a condition on symbolic sizes where the caller states no time"""

SYMBOLIC_SECONDS: Final = 20.0
"""seconds: one operation on symbolic layouts"""

# equality and integer layouts

EQUAL_SECONDS: Final = 10.0
"""seconds: whether two layouts are equal, all engines together, where the caller states no time"""

INTEGER_BITS: Final = 4_096
"""bits: one extent, stride, constant or modulus of an integer layout, one coefficient of a symbolic access"""

POINTS_BITS: Final = 13_000
"""bits: the number of points of an integer layout (Python writes integers of up to 4,300 digits)"""

# Proofs

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
"""seconds: one question of a checker to ISL, the start of the worker included"""

WALK_ELEMENTS: Final = 2**20
"""elements: all that the issues of one tile touch, for the checker to walk them"""
# CuTe layouts, notations, caches

NOTATION_CHARACTERS: Final = 100_000
"""characters: one text that ``layoutalg.parse`` or a reader of a notation takes"""

NOTATION_DIGITS: Final = 4_000
"""digits: one number in a notation; Python itself refuses to print much longer ones"""

ARRAY_RANK: Final = 64
"""dimensions: of an array of numpy"""

TUPLE_DEPTH: Final = 64
"""levels: how deep a shape, stride, coordinate or tiler nests"""

TUPLE_MODES: Final = 10_000
"""modes: leaves of one shape, stride or coordinate"""

SWIZZLE_STACK: Final = 64
"""swizzles: how many may stand over one CuTe layout"""

# ISL

ISL_CACHE_BYTES: Final = 4 * 2**20
"""bytes: texts and their readings that one reader of ISL texts keeps"""

ISL_OPERATIONS: Final = 500_000
"""operations: one question to ISL where no process can be started to ask it in"""
ATTRIBUTE_CHARACTERS: Final = 100_000
"""characters: the text of a Triton attribute or of a Gluon layout"""

# F2 and hierarchical layouts

F2_AXIS_BITS: Final = 13_000
"""bits: one axis of an F2 layout; its size still has fewer digits than Python prints"""

F2_TABLE_BITS: Final = 27
"""bits: the inputs of an F2 layout whose values are listed"""

HIERARCHY_BITS: Final = 4_096
"""bits: every extent, stride and size of a hierarchical layout, so that it can be printed and read"""

HIERARCHY_POINTS: Final = 2**20
"""points: tables of hierarchical layouts, and what is enumerated where their digits do not tell"""
CUTE_POINTS: Final = 2**20
"""points: values that one decision about CuTe layouts enumerates where algebra does not decide"""
# the planner of tensor maps

TILE_ISSUES: Final = 4_096
"""copies: the bulk tensor copies of one tile"""

PLAN_SECONDS: Final = 30.0
"""seconds: one tensor-map plan, repairs included, where the caller states no time"""

REPAIR_SECONDS: Final = 2.0
"""seconds: the repairs of one refusal, when they are first asked for"""

REPAIR_TRIES: Final = 60
"""repaired requests: tried for one kind of repair"""

# texts of ISL

ISL_CHARACTERS: Final = 200_000
"""characters: the text of a set or a map in ISL's notation"""

ISL_DEPTH: Final = 500
"""levels: brackets and signs inside one another in such a text"""

ISL_DIGITS: Final = 300
"""digits: one number in such a text"""

ISL_QUOTIENTS: Final = 200
"""quotients: ``div`` and ``//`` in such a text"""

ISL_AXES: Final = 400
"""entries: one tuple in such a text"""

ISL_NAME: Final = 200
"""characters: one name in such a text"""

ISL_COMPLEMENTS: Final = 100
"""quantifiers: negated ones in such a text; ISL's time doubles with every few of them"""

PIECEWISE_POINTS: Final = 2**24
"""points: the table of a piecewise layout"""

# validation and the command line

VALIDATED_BYTES: Final = 2**36
"""bytes: address space for the tensor of a validation; only what tiles touch is filled above 2^26"""

PRODUCT_BYTES: Final = 2**28
"""bytes: one operand's tensor in the validation of a tile product"""

COMMAND_SECONDS: Final = 30.0
"""seconds: one document of ``explain``, ``synth`` and ``check`` where ``--budget`` states no time"""

RUN_SECONDS: Final = 120.0
"""seconds: one document of ``validate`` and ``demo``, which compile and run, where ``--budget`` states no time"""
