"""Exit codes of the command line; a test compares this table with docs/command-line.md.

Main statements: 0 means everything requested was answered, proved and written; 1 is always a verdict; every other
ending has its own code. For a list of documents the largest code counts.
"""

from __future__ import annotations

from layoutalg.ground.errors import BudgetError, DeviceMismatchError, InfeasibleError, LayoutError, MalformedError

PROVED = 0
REFUTED = 1
UNKNOWN = 2
USAGE = 64
INTERNAL = 70
OUTPUT = 74
INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES = {
    PROVED: "proved, admissible, agrees or explained: everything requested was answered and written",
    REFUTED: "refuted or inadmissible",
    UNKNOWN: "unknown: a budget ran out, an optional part is missing, or nothing was measured for the target",
    USAGE: "bad usage, or a document that cannot be read",
    INTERNAL: "internal error in layoutalg, or out of memory",
    OUTPUT: "the answers could not be written (closed pipe, full disk); unwritten ones count as undecided",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}


def exit_code(error: BaseException) -> int:
    """Return the exit code for an exception; only impossibility proofs and device mismatches refute.

    Example:
        >>> exit_code(IndexError()), exit_code(KeyboardInterrupt())
        (70, 130)
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MalformedError):
        return USAGE
    if isinstance(error, (InfeasibleError, DeviceMismatchError)) and not isinstance(error, BudgetError):
        return REFUTED
    return UNKNOWN if isinstance(error, LayoutError) else INTERNAL
