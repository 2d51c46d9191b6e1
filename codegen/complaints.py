"""Compiler errors, mapped to the lines of the kernel's own text.

Implementation notes: a C++ compiler names lines of the kernel's text. An assembler names lines of assembly; with line
tables, the ``.loc`` directive before a line gives the line of the text it comes from.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from layoutalg.ground import clock, limits
from layoutalg.ground.errors import Diagnostic, LayoutError

_FILES = r"default_program|(?:\S*[/\\])?(?:kernel\.(?:hip|cpp)|CompileSource)"
_LINE = re.compile(rf"^(?:{_FILES})[:(](\d+)\)?:.*\berror\b", re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)\b")
MOST_LINES = 8
"""Maximum number of lines quoted by one error."""


class CompileError(LayoutError):
    """The text does not compile: ``.diagnostic.because`` is the compiler's log, ``.lines`` the lines it names."""

    @property
    def lines(self) -> tuple[int, ...]:
        """Line numbers (from 1) of the kernel's text that the compiler names; empty if it names none."""
        found = (re.match(r"line (\d+) of the text: ", entry) for entry in self.diagnostic.where)
        return tuple(int(match[1]) for match in found if match)


def lines_of(log: str) -> tuple[int, ...]:
    """Return the lines of the kernel's text named by errors in a compiler's log, each once.

    Example:
        >>> lines_of("default_program(12): error: x is undefined\\n/tmp/kernel.hip:3:5: error: expected expression")
        (12, 3)
    """
    return tuple(dict.fromkeys(int(match[1]) for match in _LINE.finditer(log)))


def ran(command: Sequence[str], doing: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a compiler within its time limit; return its exit status and its log, which may be in any encoding."""
    seconds = clock.left(limits.COMPILE_SECONDS)
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired:
        clock.out_of_time(doing, seconds)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def line_before(assembly: str, line: int) -> int | None:
    """Return the line of the text that a line of assembly comes from, by its line table; None if unknown.

    Example:
        >>> line_before(".loc 1 7 5\\nmov.u32 a, b;\\n.loc 1 9 0\\nret;", 2)
        7
    """
    for entry in reversed(assembly.splitlines()[:line]):
        match = _LOCATION.match(entry)
        if match and int(match[1]):
            return int(match[1])
    return None


def lines_before(assembly: str, places: Iterable[re.Match[str]]) -> tuple[int, ...]:
    """Return the lines of the text that matched lines of assembly come from, each once."""
    found = (line_before(assembly, int(match[1])) for match in places)
    return tuple(dict.fromkeys(line for line in found if line))


def refused(
    code: str, what: str, where: str, log: str, text: str, numbers: Sequence[int] | None = None
) -> CompileError:
    """Return the error for a kernel that does not compile, quoting ``numbers`` (or the log's own) lines of its text."""
    words = re.sub(r"\S*[/\\](kernel\.(?:hip|cpp|s|o))", r"\1", log.replace("\0", "")).strip()
    written = text.splitlines()
    named = [line for line in (lines_of(log) if numbers is None else numbers) if 0 < line <= len(written)]
    quoted = [f"line {line} of the text: {written[line - 1].strip()}" for line in named[:MOST_LINES]]
    return CompileError(Diagnostic(code, what, (where, *quoted), words[-limits.COMPILER_WORDS :]))
