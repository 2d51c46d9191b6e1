"""Check ISL text written by people: length and nesting limits, ``div`` and ``//``, products that are not affine."""

from __future__ import annotations

import re
from itertools import accumulate

from layoutalg.ground import limits
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, shown

_POWER = re.compile(r"(?<![\w)^])\d{1,19}\s*\^\s*\d{1,2}(?!\s*[\^\d])")
"""Powers that may be passed on: ISL evaluates them while parsing, however large."""
_QUOTIENT = re.compile(r"\s*(?:\bdiv\b|//)\s*(\d+)")
_QUOTIENT_SIGN = re.compile(r"\bdiv\b|//")
_TOKEN = re.compile(r"\w+|[^\w\s]")
WORDS = {"mod", "and", "or", "not", "exists", "floor", "ceil", "floord", "ceild", "min", "max", "implies"}
WORDS |= {"true", "false"}
"""Reserved words, not allowed as names of axes or parameters."""
_PRODUCT = re.compile(r"([A-Za-z_]\w*|\))\s*\*\s*([A-Za-z_]\w*)")
_NAME = re.compile(rf"[A-Za-z_]\w{{{limits.ISL_NAME}}}")
_COMPLEMENT = re.compile(r"(?:\bnot\b|!)[\s(]*exists\b")
_NO_INTEGER = re.compile(r"\brat\s*:|\b(?:nan|infty|infinity)\b", re.IGNORECASE)
_HEAD = re.compile(r"\s*(?:\[[^\[\]{}]*\]\s*->\s*)?\{")
_NAMES = re.compile(r"(?:\s+as\s+(?P<names>\w+(?:\s*,\s*\w+)*))?(?:\s+given\s+(?P<given>.*\S))?\s*", re.DOTALL)
_DIVISION = re.compile(r"(?:/|%|\bmod\b)\s*([A-Za-z_]\w*)")


def malformed(
    code: str, what: str, text: object, because: str, witness: dict[str, object] | None = None
) -> MalformedError:
    """Return the error for a text or an argument."""
    where = text[:200] if isinstance(text, str) else shown(text)
    return MalformedError(Diagnostic(code=code, what=what, where=(where,), because=because, witness=witness))


def prepared(text: object, argument: str) -> str:
    """Return the text with ``x div n`` and ``x // n`` written as floors.

    ``div`` binds as in Python; unless its left operand is a single name or a parenthesised sum that starts a term, the
    text is rejected as ambiguous.

    Args:
        text: ISL text.
        argument: Name of the argument, for messages.

    Example:
        >>> prepared("{ [i] -> [i div 12 + (i + 1) // 2] }", "text")
        '{ [i] -> [floor((i)/12) + floor((i + 1)/2)] }'
    """
    if not isinstance(text, str):
        raise malformed("LA780", "this is not ISL text", text, f"{argument} must be a str")
    if not text:
        return text
    if len(text) > limits.ISL_CHARACTERS:
        because = f"{argument} has {len(text)} characters; the limit is {limits.ISL_CHARACTERS}"
        raise malformed("LA780", "this ISL text is too long", text, because)
    _encoded(text, argument)
    if _NAME.search(text) or len(_COMPLEMENT.findall(text)) > limits.ISL_COMPLEMENTS:
        because = (
            f"names have at most {limits.ISL_NAME} characters, texts at most {limits.ISL_COMPLEMENTS} 'not exists'"
        )
        raise malformed("LA780", "this ISL text is too long", text, because)
    foreign = _NO_INTEGER.search(text)
    if foreign is not None:
        because = f"{foreign[0]!r} at column {foreign.start()} is not allowed over the integers"
        raise malformed("LA780", "this ISL text is not over the integers", text, because, {"column": foreign.start()})
    deepest = sum(map(text.count, ("(", "[", "{", "-", "*", "!", "not")))
    if deepest > limits.ISL_DEPTH:
        # ISL's parser recurses into signs, too; deep recursion kills the process
        deepest = max(*accumulate((char in "([{") - (char in ")]}") for char in text), _prefixes(text))
    if deepest > limits.ISL_DEPTH or "\0" in text:
        because = f"{argument} nests {deepest} brackets or signs (limit {limits.ISL_DEPTH}) or contains NUL"
        raise malformed("LA780", "this ISL text cannot be read safely", text, because)
    widest = max((found[0].count(",") for found in re.finditer(r"\[[^\[\]]*", text)), default=0)
    if widest >= limits.ISL_AXES:
        because = f"a tuple of {argument} has {widest + 1} entries; the limit is {limits.ISL_AXES}"
        raise BudgetError(Diagnostic(code="LA222", what="ISL gave up", where=(text[:200],), because=because))
    if len(_QUOTIENT_SIGN.findall(text)) > limits.ISL_QUOTIENTS or re.search(rf"\d{{{limits.ISL_DIGITS + 1}}}", text):
        because = f"the limits are {limits.ISL_QUOTIENTS} div or // and {limits.ISL_DIGITS} digits in a number"
        raise malformed("LA780", "this ISL text is too long", text, because)
    if text.count("^") > len(_POWER.findall(text)):
        because = f"powers must be NUMBER^EXPONENT, exponent <= 99, not {text[max(0, text.find('^') - 20) :][:40]!r}"
        raise malformed("LA780", "this ISL text cannot be read safely", text, because)
    while found := _QUOTIENT_SIGN.search(text):
        quotient = _QUOTIENT.match(text, len(text[: found.start()].rstrip()))
        if quotient is None or int(quotient[1]) == 0:
            because = f"the divisor at column {found.end()} must be a positive number"
            raise malformed("LA782", "this quotient is not affine", text, because, {"column": found.end()})
        start, operand = _left_operand(text, quotient.start())
        text = f"{text[:start]}floor(({operand})/{quotient[1]}){text[quotient.end() :]}"
    return text


def _prefixes(text: str) -> int:
    """Return the longest sequence of signs, negations and factors (``3 *``) in a text.

    Example:
        >>> _prefixes("{ [i] -> [i - -2 * - 3 * i] }")
        5
    """
    longest = run = 0
    factor = False  # the previous token is a word, which "*" turns into a factor
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in ("-", "!", "not"):
            run = 1 if factor else run + 1
            factor = False
        elif token == "*" and factor:
            run += 1
            factor = False
        else:
            run = 0 if factor else run
            factor = token[0].isalnum() or token[0] == "_"
            if not factor:
                run = 0
        longest = max(longest, run)
    return longest


def _encoded(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        because = f"{argument} has a character at column {error.start} that cannot be encoded"
        raise malformed("LA780", "this is not ISL text", ascii(text), because, {"column": error.start}) from None


def whole(text: object, argument: str = "text") -> str:
    """Return the ``prepared`` text of one set or map, ``[parameters] -> { ... }`` and nothing else.

    Checked here because ISL stops reading at the closing brace and reads text without braces as another format.

    Example:
        >>> whole("[N] -> { [i] : 0 <= i < N }")
        '[N] -> { [i] : 0 <= i < N }'
    """
    found = prepared(text, argument)
    head, end = _HEAD.match(found), found.rstrip()
    column = 0 if head is None else head.end()
    inner = found[column:].find("{")
    close = found.find("}", column)
    if head is not None and inner < 0 and close == len(end) - 1:
        return found
    if head is not None:
        column = close + 1 if close >= 0 else len(found)
    because = f"{argument} must be [parameters] -> {{ ... }} or {{ ... }} and nothing else; see column {column}"
    raise malformed("LA780", "this is not the text of one set or map", text, because, {"column": column})


def split_names(text: object) -> tuple[str, tuple[str, ...], str]:
    """Split a written layout into its ISL text, the output names (if any) and the constraints after ``given``.

    Example:
        >>> split_names("[N] -> { [i] -> [i, N] : i < N } as a, b given N > 0")
        ('[N] -> { [i] -> [i, N] : i < N }', ('a', 'b'), 'N > 0')
    """
    if not isinstance(text, str):
        raise malformed("LA780", "this is not ISL text", text, "text must be a str")
    body, brace, rest = text.partition("}")
    found = _NAMES.fullmatch(rest) if brace else None
    if found is None:
        return text, (), ""
    names = () if found["names"] is None else tuple(name.strip() for name in found["names"].split(","))
    return body + brace, names, found["given"] or ""


def _left_operand(text: str, end: int) -> tuple[int, str]:
    """Return the start of the left operand of a ``div`` at ``end``, and the operand without its parentheses."""
    start, operand = end, ""
    if text[:end].endswith(")"):
        depth = 0
        for start in range(end - 1, -1, -1):
            depth += (text[start] == ")") - (text[start] == "(")
            if depth == 0:
                operand = text[start + 1 : end - 1]
                break
    elif found := re.search(r"(?<![\w$'])[A-Za-z_]\w*$", text[:end]):
        start, operand = found.start(), found[0]
    before = text[:start].rstrip()
    if re.search(r"floor$", before):  # an earlier quotient: left to right
        start, before = before.rindex("floor"), before[: before.rindex("floor")].rstrip()
        operand = text[start:end]
    word = re.search(r"[A-Za-z_]\w*$", before)
    opens = before == "" or before[-1] in "[(,:;<>=+" or (word is not None and word[0] in {"and", "or", "not"})
    if before.endswith("-"):
        opens = bool(re.search(r"[\w)]$", before[:-1].rstrip()))
    if not operand or operand in WORDS or not opens:
        because = f"the dividend at column {end} is ambiguous; parenthesize it, as in (2i) div 3"
        raise malformed("LA782", "this quotient is ambiguous", text, because, {"column": end})
    return start, operand


def not_affine(text: str) -> str | None:
    """Return the first product of variables or quotient by a variable in a text, or None.

    Example:
        >>> not_affine("[N] -> { [i, j] -> [N*i + j] }"), not_affine("{ [i] -> [2*i] }")
        ('N*i', None)
    """
    for found in _PRODUCT.finditer(text):
        if found[2] not in WORDS:
            return found[0]
    for found in _DIVISION.finditer(text):
        if found[1] not in WORDS:
            return found[0].strip()
    return None
