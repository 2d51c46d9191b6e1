"""Exit codes of the command line; the README shows the same table, and a test compares the two.

Main statements: 0 is returned only after everything requested was answered, proved and written; 1 only by a verdict.
Whatever ends otherwise has a code of its own. Over a list the largest code of its documents counts.
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
    INTERNAL: "an error inside layoutalg, or no memory left",
    OUTPUT: "the answers could not be written (closed pipe, full disk): what is not written was not decided",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}


def exit_code(error: BaseException) -> int:
    """Return the code that an exception ends with; only proofs of impossibility and devices refute.

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
