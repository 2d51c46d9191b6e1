r"""Read the texts in which tools and programs show memory: every sequence of bytes that a text can mean.

Notation:

    00100000 00000000 10650000, 0x10, 00:10:_00    digits in any grouping
    00000000: 0010 0000 1065  ....                 xxd, also -g, -e, -u, -p; the characters on the right are not read
    00000000  00 10 00 00  |....|                  hexdump -C, od -A x -t x1z
    0000000 1000 0000 6510                         hexdump, od -t x2 to x8; a line * repeats the row above
    0x7ffe0000 <map+16>:   0x0000000000001000      gdb and cuda-gdb: x/16gx, x/32wx, x/128bx
    $1 = {opaque = {0x1000, 0x0 <repeats 15 times>}}          print/x
    const unsigned char map[128] = {0x00, 16, ...};           an array of C, of any element type, with its comments
    b'\x00\x10'                                    repr of Python's bytes

Main statements: the bytes of a number lie lowest first; a group of digits shows them in the order of memory or as a
number. Only what the bytes mean can decide that: ``readings`` returns every reading, the usual one of the format first.

Implementation notes: nothing is evaluated, and no row is repeated before the size is known to be small enough.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS
from layoutalg.ground.text import caret
from layoutalg.targets.model import fact

CHECK = Checker("LA989", "the dump cannot be read")
WHOLE = 64
"""Digits of a text that is nothing else, at least."""
_SEPARATORS = r"\s,;:_"
_PYTHON = re.compile(r"\s*(?:(?:bytes|bytearray|memoryview)\s*\(\s*)?b(['\"])")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([\\'\"tnr0]))|([ -\[\]-~])")
_ESCAPED = {"\\": 92, "'": 39, '"': 34, "t": 9, "n": 10, "r": 13, "0": 0}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PROMPT = re.compile(r"\s*(?:\([\w-]*gdb\)|[$#]\s+(?:xxd|hexdump|od|cat)\b)[^\n]*")
_GDB = re.compile(r"\s*(0[xX][0-9a-fA-F]{1,16})\s*(?:<[^<>\n]*>)?\s*:(?=\s+0[xX])")
_COLON = re.compile(
    r"\s*([0-9a-fA-F]{8,16}|[0-9a-fA-F]{4,7}(?=:(?:[ \t]+[0-9a-fA-F]{2,16}){2}))"
    r":(?=[ \t]+[0-9a-fA-F]{2,16}(?:[ \t]|$))"
)
_BARE = re.compile(r"\s*([0-9a-fA-F]{6,16})(?=\s|$)")
_ROWS = {"gdb": _GDB, "xxd": _COLON, "hexdump": _BARE}
_ROW = re.compile(r"\s*[0-9a-fA-F]{6,16}(?:[ \t]+[0-9a-fA-F]{2,16})+[ \t]*(?:\|.*|>.*)?$")
_REPEATED = re.compile(r"[ \t]*\*[ \t]*$")
_TOKEN = re.compile(rf"[^{_SEPARATORS}]+")
_DIGITS = re.compile(r"(0[xX])?([0-9a-fA-F]+)$")
_NUMBER = re.compile(r"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))(?:[uU]?(?:ll|LL|[lL])?|(?:ll|LL|[lL])[uU])$")
_REPEATS = re.compile(r"<repeats\s+([0-9]{1,6})\s+times>")
_HEAD = re.compile(r"[{]\s*(?:[{]|\w+\s*=\s*[{]|0[xX][0-9a-fA-F]|[0-9][0-9a-zA-Z']*\s*[,}<])")
_ELEMENTS = (
    (r"(?:u?int8_t|char|byte|uchar|u8)\b", 1),
    (r"(?:u?int16_t|short|ushort|u16)\b", 2),
    (r"(?:u?int64_t|cuuint64_t|CUtensorMap\w*|u64|ulonglong|long\s+(?:long|int)|long)\b", 8),
    (r"(?:u?int32_t|cuuint32_t|unsigned|int|uint|u32)\b", 4),
)
"""Words of a declaration, and the bytes of an element of its array."""
WIDTHS = (1, 2, 4, 8)


@fact("LA374")
class Reading:
    """One meaning of a text.

    Args:
        raw: The bytes.
        form: The format and how it was read; empty for bare digits that have one reading.
    """

    raw: bytes
    form: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Digits that stand together: their place in the text, and their value if they are a number."""

    digits: str
    at: int
    value: int


def is_dump(text: str) -> bool:
    """Return whether a text shows memory, and is no notation of a layout.

    Example:
        >>> is_dump("00 10 00 00 " * 32), is_dump("(4,8):(1,4)"), is_dump("b'abc'"), is_dump("{0x10, 0x20}")
        (True, False, True, True)
    """
    if len(text) > NOTATION_CHARACTERS:
        return False
    if _PYTHON.match(text) or re.fullmatch(r"\s*0[xX][0-9a-fA-F]{17,}\s*", text):
        return True
    lines = _lines(text)
    if _rows_of(lines):
        return True
    plain = without_comments(text)
    if "->" in plain or "(" in plain.partition("{")[0].replace("alignas(", ""):
        return False
    if "{" in plain:
        return bool(_HEAD.search(plain))
    kept = re.sub(rf"0[xX](?=[0-9a-fA-F])|[{_SEPARATORS}]", "", "".join(line for _, line in _lines(plain)))
    odd = re.sub(r"[0-9a-fA-F]", "", kept)
    return len(kept) >= WHOLE and len(odd) * 50 <= len(kept) and not re.search(r"[(\[<]", odd)


def readings(text: str, sizes: Sequence[int]) -> tuple[Reading, ...]:
    """Return every sequence of bytes that a text can mean, the usual one of its format first.

    Args:
        text: A dump, as this module's notation lists them.
        sizes: The numbers of bytes that may be meant, the expected one first.

    Raises: MalformedError: LA989: a character that is no digit, rows that do not follow each other, or another size;
        names the line and column, or the digits found and needed.

    Example:
        >>> for reading in readings("{0x10, 0x2000}", (4,)):
        ...     print(reading.raw.hex(), reading.form)
        10000020 array: 2 numbers of 16 bits, lowest byte first
        00102000 array: 2 numbers of 16 bits, highest byte first
        >>> readings("00 1O 20 30", (4,))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA989 the dump cannot be read
          in     00 1O 20 30
                     ^
          since  line 1, column 5: 'O' is not a hexadecimal digit
    """
    if len(text) > NOTATION_CHARACTERS:
        raise CHECK.malformed("text", f"must have at most {NOTATION_CHARACTERS} characters", f"{len(text)} characters")
    if quoted := _PYTHON.match(text):
        raw = _python_bytes(text, quoted.end(), quoted[1])
        if len(raw) not in sizes:
            raise _other_size(f"{len(raw)} bytes", sizes)
        return (Reading(raw, "bytes of Python"),)
    lines = _lines(text)
    if form := _rows_of(lines):
        groups = _read_rows(text, lines, _ROWS[form], form, sizes)
        return _numbers(groups, sizes, "gdb") if form == "gdb" else _digits(text, groups, sizes, form)
    plain = without_comments(text)
    if "{" in plain:
        return _numbers(_array(plain), sizes, "array", _element_bytes(plain.partition("{")[0]))
    groups = list(itertools.chain.from_iterable(_groups(text, line, at) for at, line in _lines(plain)))
    if len(groups) > 1 and all(group.digits.startswith("0x") for group in groups):
        return _numbers(groups, sizes, "digits")
    return _digits(text, groups, sizes, "digits")


def _other_size(found: str, sizes: Sequence[int], width: int = 0) -> MalformedError:
    """Return the error of a text with these digits, or with numbers of ``width`` bytes."""
    counted = [f"{size // width} of these" if width else f"{2 * size} hexadecimal digits" for size in sizes]
    needed = ", or ".join(f"{count} ({size} bytes)" for count, size in zip(counted, sizes, strict=True))
    return MalformedError(Diagnostic(CHECK.code, CHECK.what, ("text",), f"found {found}, needed {needed}"))


def _fail(text: str, at: int, because: str) -> NoReturn:
    """Raise the error of a place."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    first, last = at - column + 1, text.find("\n", at)
    shown = text[first : len(text) if last < 0 else last]
    because = f"line {line}, column {column}: {because}"
    raise MalformedError(Diagnostic(CHECK.code, CHECK.what, (caret(shown, column - 1),), because))


def without_comments(text: str) -> str:
    """Return a text of C with blanks for its comments, so that places stay.

    Example:
        >>> without_comments("1, // one")
        '1,       '
    """
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text) if "/" in text else text


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with their places, without empty ones and prompts."""
    found, at = [], 0
    for line in text.split("\n"):
        if line.strip() and not _PROMPT.match(line):
            found.append((at, line.rstrip("\r")))
        at += len(line) + 1
    return found


def _rows_of(lines: Sequence[tuple[int, str]]) -> str:
    """Return the tool that writes such rows with addresses in front, or ""."""
    first = lines[0][1] if lines else ""
    if _GDB.match(first):
        return "gdb"
    if _COLON.match(first):
        return "xxd"
    return "hexdump" if len(lines) > 1 and _ROW.match(first) and _has_addresses(lines) else ""


def _python_bytes(text: str, at: int, quote: str) -> bytes:
    found = bytearray()
    while not text.startswith(quote, at):
        if at >= len(text):
            _fail(text, len(text.rstrip()), f"expected {quote} at the end of the bytes")
        one = _ESCAPE.match(text, at)
        if one is None:
            _fail(text, at, f"{text[at]!r} is not a character of bytes as Python writes them")
        found.append(int(one[1], 16) if one[1] else _ESCAPED[one[2]] if one[2] else ord(one[3]))
        at = one.end()
    if text[at + 1 :].strip(" \t\r\n)"):
        _fail(text, at + 1, "expected the end after the bytes")
    return bytes(found)


def _groups(text: str, line: str, at: int) -> Iterator[_Group]:
    """Yield the groups of digits of a line; ``0x`` stays in front of a number."""
    for token in _TOKEN.finditer(line):
        found = _DIGITS.match(token[0])
        if found is None:
            prefix = 2 if token[0][:2] in ("0x", "0X") else 0
            wrong = next((n for n, char in enumerate(token[0][prefix:]) if char not in _HEX), 0) + prefix
            wrong = min(wrong, len(token[0]) - 1)
            _fail(text, at + token.start() + wrong, f"{token[0][wrong]!r} is not a hexadecimal digit")
        yield _Group(("0x" if found[1] else "") + found[2], at + token.start(), int(found[2], 16))


_HEX = frozenset("0123456789abcdefABCDEF")


def _array(text: str) -> list[_Group]:
    """Return the elements of the only array of a text of C, or of a value that gdb printed."""
    start = text.index("{")
    inner, stop = _innermost(text, start)
    if other := text.find("{", stop) + 1:
        _fail(text, other - 1, "a second array begins: name one")
    found: list[_Group] = []
    for token in re.finditer(r"<repeats[^<>]*>|[^\s,]+", text[inner:stop]):
        at = inner + token.start()
        if repeats := _REPEATS.match(token[0]):
            if not found or int(repeats[1]) > 1024:
                _fail(text, at, "a repetition of up to 1024 follows an element")
            found += [found[-1]] * (int(repeats[1]) - 1)
            continue
        number = _NUMBER.match(token[0].replace("'", ""))
        octal = number is not None and number[3] is not None and len(number[3]) > 1 and number[3][0] == "0"
        if number is None or len(token[0]) > 80 or (octal and set(number[3]) & set("89")):
            _fail(text, at, f"{token[0][:20]!r} is not an integer of C")
        base, digits = (
            (16, number[1]) if number[1] else (2, number[2]) if number[2] else (8 if octal else 10, number[3])
        )
        found.append(_Group("0x" + digits if base == 16 else "", at, int(digits, base)))
    return found


def _innermost(text: str, start: int) -> tuple[int, int]:
    """Return where the elements of the array in these braces begin and end."""
    at = start + 1
    while named := re.compile(r"\s*(?:\.?\w+\s*=\s*)?[{]").match(text, at):
        at = named.end()
    stop = text.find("}", at)
    if stop < 0:
        _fail(text, start, "the brace is not closed")
    return at, stop


def _element_bytes(head: str) -> int:
    """Return the bytes of an element as the declaration in front of an array says; 0 without one."""
    declared = head.rpartition(";")[2]
    return next((size for words, size in _ELEMENTS if re.search(rf"\b{words}", declared)), 0)


def _has_addresses(lines: Sequence[tuple[int, str]]) -> bool:
    """Whether the first column is addresses: rows follow each other in it, or it is wider than all other groups."""
    parts = [re.split(r"[|>]", line, maxsplit=1) for _, line in lines]
    if any(len(part) > 1 or _REPEATED.match(part[0]) for part in parts):
        return True
    tokens = [part[0].split() for part in parts]
    others = [len(token) for row in tokens for token in row[1:]]
    if max(others, default=0) <= 4 < min(len(row[0]) for row in tokens):
        return True
    sizes = [sum(map(len, row[1:])) // 2 for row in tokens]
    return any(_follow([row[0] for row in tokens], sizes, base) for base in (16, 8, 10))


def _follow(addresses: Sequence[str], sizes: Sequence[int], base: int) -> bool:
    """Whether each address in this base is that of the row above plus its bytes."""
    try:
        places = [int(address, base) for address in addresses]
    except ValueError:
        return False
    return all(b - a == size for a, b, size in zip(places, places[1:], sizes, strict=False))


def _read_rows(
    text: str, lines: Sequence[tuple[int, str]], pattern: re.Pattern[str], form: str, sizes: Sequence[int]
) -> list[_Group]:
    """Return the groups of rows with addresses in front; a row ``*`` stands for the rows up to the next address."""
    rows: list[tuple[str, int, list[_Group]]] = []
    star = -1
    stars: dict[int, int] = {}
    for at, line in lines:
        if _REPEATED.match(line):
            star = at
            continue
        found = pattern.match(line)
        if found is None:
            _fail(text, at + len(line) - len(line.lstrip()), "expected an address, as in the rows above")
        if star >= 0:
            stars[len(rows)] = star
            star = -1
        rest = line[found.end() :]
        if form == "xxd":
            lead = len(rest) - len(rest.lstrip())
            rest = rest[: lead + len(re.split(r"[ \t]{2,}", rest[lead:], maxsplit=1)[0])]
        elif form == "hexdump":
            rest = re.split(r"[|>]", rest, maxsplit=1)[0]
        rows.append((found[1], at, list(_groups(text, rest, at + found.end()))))
    if star >= 0:
        _fail(text, star, "the repeated rows need an address after them, which says how many they are")
    return _place_rows(text, rows, stars, sizes)


def _place_rows(
    text: str, rows: Sequence[tuple[str, int, list[_Group]]], stars: dict[int, int], sizes: Sequence[int]
) -> list[_Group]:
    """Return the groups in order, with repeated rows; the addresses say whether rows are missing."""
    counts = [sum(len(group.digits.removeprefix("0x")) for group in groups) // 2 for _, _, groups in rows]
    worst = (-1, "")
    for base in (16,) if rows[0][0].startswith("0x") else (16, 8, 10):
        try:
            places = [int(address, base) for address, _, _ in rows]
        except ValueError:
            continue
        found, problem = _fill_rows(rows, places, counts, stars, max(sizes))
        if not problem[1]:
            return found
        worst = max(worst, problem, key=lambda each: each[0])
    _fail(text, *worst)


def _fill_rows(
    rows: Sequence[tuple[str, int, list[_Group]]], places: Sequence[int], counts: Sequence[int],
    stars: dict[int, int], most: int,
) -> tuple[list[_Group], tuple[int, str]]:  # fmt: skip
    """Return the groups with repeated rows for these addresses, or the place of the first row that does not follow."""
    found: list[_Group] = []
    for number, (address, at, groups) in enumerate(rows):
        if number:
            gap, size = places[number] - places[number - 1] - counts[number - 1], counts[number - 1]
            if number in stars and (not size or gap < size or gap % size):
                return [], (stars[number], f"no whole number of rows is between the rows here and at {address}")
            if number in stars and gap > 16 * most:
                return [], (stars[number], f"{gap} bytes are repeated here, more than the {most} that are needed")
            if number not in stars and gap:
                return [], (at, f"the row at {rows[number - 1][0]} has {size} bytes, and this one is at {address}")
            found += rows[number - 1][2] * (gap // size if gap else 0)
        found += groups
    return found, (0, "")


def _numbers(groups: Sequence[_Group], sizes: Sequence[int], form: str, element: int = 0) -> tuple[Reading, ...]:
    """Return the readings of numbers: by their count, their width in bytes, and for each width two byte orders."""
    lengths = {len(group.digits) - 2 for group in groups}
    padded = lengths.pop() // 2 if len(lengths) == 1 and next(iter(lengths)) in (2, 4, 8, 16) else 0
    found: dict[bytes, Reading] = {}
    for size, width in itertools.product(sizes, (element,) if element else (padded,) if padded else WIDTHS):
        if len(groups) * width != size or any(group.value >> 8 * width for group in groups):
            continue
        for order in ("little", "big")[: 1 + (width > 1)]:
            raw = b"".join(group.value.to_bytes(width, order) for group in groups)  # type: ignore[arg-type]
            end = f", {'lowest' if order == 'little' else 'highest'} byte first" if width > 1 else ""
            found.setdefault(raw, Reading(raw, f"{form}: {len(groups)} numbers of {8 * width} bits{end}"))
    if not found:
        width = element or padded or -(-max((group.value.bit_length() for group in groups), default=0) // 8)
        raise _other_size(f"{len(groups)} numbers of {8 * width} bits", sizes, width)
    return tuple(found.values())


def _digits(text: str, groups: Sequence[_Group], sizes: Sequence[int], form: str) -> tuple[Reading, ...]:
    """Return the readings of digits: in the order of memory, and of groups of equal width also as numbers."""
    parts = [group.digits.removeprefix("0x") for group in groups]
    digits = "".join(parts)
    lengths = sorted({len(part) for part in parts})
    if len(digits) not in [2 * size for size in sizes] or (form != "digits" and any(length % 2 for length in lengths)):
        usual = max(lengths, key=[len(part) for part in parts].count, default=0)
        odd = next((group for group, part in zip(groups, parts, strict=True) if len(part) % 2), None)
        if odd is not None and usual % 2 == 0:
            count = len(odd.digits.removeprefix("0x"))
            _fail(text, odd.at, f"a group of {count} digits, where others have {usual}; {len(digits)} digits in all")
        raise _other_size(f"{len(digits)} digits", sizes)
    raw = bytes.fromhex(digits)
    found = [Reading(raw, f"{form}: in the order of memory")]
    if len(lengths) == 1 and lengths[0] in (4, 8, 16):
        width = lengths[0] // 2
        turned = b"".join(raw[at : at + width][::-1] for at in range(0, len(raw), width))
        found.insert(form != "hexdump", Reading(turned, f"{form}: groups of {8 * width} bits, lowest byte first"))
    elif form == "digits":
        return (Reading(raw, ""),)
    return tuple({reading.raw: reading for reading in reversed(found)}.values())[::-1]
