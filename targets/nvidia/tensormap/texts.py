"""Maps in texts: dumps of their bytes, C++ calls of ``cuTensorMapEncodeTiled``, and what is printed when one fails.

Main statements: of the readings of a dump, the one is meant whose bytes are a map that encodes to them again. A whole
map has at most one: the alignment that it states (16, 256, 512 or 1024) is none of these with its bytes turned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.limits import NOTATION_CHARACTERS
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.targets.dumps import CHECK, Reading, readings, without_comments
from layoutalg.targets.nvidia.tensormap.encoding import MAP_BYTES, decode, decode_documented, lower_half
from layoutalg.targets.nvidia.tensormap.facts import is_measured
from layoutalg.targets.nvidia.tensormap.fields import ENUMERATORS, malformed
from layoutalg.targets.registry import lookup

HALF_BYTES = 64
"""Bytes of the lower half of a map, which has all fields."""
ARGUMENTS = (
    "tensorMap", "tensorDataType", "tensorRank", "globalAddress", "globalDim", "globalStrides", "boxDim",
    "elementStrides", "interleave", "swizzle", "l2Promotion", "oobFill",
)  # fmt: skip
"""The parameters of ``cuTensorMapEncodeTiled``, in order."""
PRINTED = (
    "format", "dim", "gmem_address", "globalDim", "globalStrides", "boxDim", "elementStrides", "interleave", "swizzle",
    "l2Promotion", "oobFill",
)  # fmt: skip
"""What CUTLASS and TileLang call these parameters where they print them."""
_LINE = re.compile(rf"^[ \t]*({'|'.join(PRINTED)})[ \t]+(\S.*)$", re.M)
_ELEMENT = 8
"""The most bytes of an element, whose stride comes first where strides are printed; all others are multiples of 16."""
_ARRAYS = ("globalDim", "globalStrides", "boxDim", "elementStrides")
_CALL = re.compile(r"\bcuTensorMapEncodeTiled\s*\(")
_CAST = re.compile(
    r"(?:\(\s*(?:const\s+)?(?:CU\w+|void|cuuint\d+_t|u?int\d*_t|u?int|unsigned|size_t|(?:std::)?u?intptr_t)\s*\**\s*"
    r"(?:\[\s*\w*\s*\])?\s*\)\s*(?=[\w({])|(?:static|reinterpret)_cast\s*<[^<>]{1,80}>\s*)"
)
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|[0-9]+)(?:[uU]?(?:ll|LL|[lL])|[uU])\b")
_HEXADECIMAL = re.compile(r"\b0[xX][0-9a-fA-F]{1,16}\b")
_MOST_NAMES = 8


def read_map(text: str, target: str = "sm_90a", sizes: Sequence[int] = (MAP_BYTES,)) -> Reading:
    """Return the bytes of a map that a dump shows.

    Args:
        text: A dump, as ``layoutalg.targets.dumps`` reads them.
        target: Architecture whose maps are meant, for dumps that have several readings.
        sizes: The numbers of bytes that may be meant: of a map, or of its lower half.

    Returns:
        The reading that is a map; if none is, the usual one of the format, which ``form`` then says.

    Raises: MalformedError: LA989: not such a dump, or two of its readings are maps.

    Example:
        >>> from layoutalg.targets.nvidia.tensormap import TensorMap, encode
        >>> raw = encode(TensorMap("bf16", (512, 1024), (1024,), (64, 64), swizzle="128B", base_address=4096))
        >>> words = [int.from_bytes(raw[at : at + 4], "big") for at in range(0, 128, 4)]
        >>> found = read_map(", ".join(f"0x{word:08x}" for word in words))
        >>> found.raw == raw, found.form
        (True, 'digits: 32 numbers of 32 bits, highest byte first')
    """
    found = readings(CHECK.kind(text, str, "text"), CHECK.vector(sizes, "sizes", low=1))
    lookup(target)
    legal = [reading for reading in found if _is_map(reading.raw, target)]
    if len(legal) > 1:
        because = "; ".join(f"{reading.form}: {reading.raw[:16].hex()}..." for reading in legal)
        raise MalformedError(Diagnostic(CHECK.code, "the dump is ambiguous", because=f"each is a map: {because}"))
    if legal or len(found) == 1:
        return (legal or found)[0]
    return Reading(found[0].raw, f"{found[0].form}; in no byte order a map that a driver writes")


def _is_map(raw: bytes, target: str) -> bool:
    """Whether bytes are a map that encodes to them again, tiled or im2col."""
    from layoutalg.targets.nvidia import im2col  # is above this package

    try:
        if len(raw) == HALF_BYTES:
            lower_half([int.from_bytes(raw[at : at + 4], "little") for at in range(0, HALF_BYTES, 4)])
        elif not is_measured(target):
            decode_documented(raw, target)
        else:
            (im2col.decode if raw[8] & 1 else decode)(raw, target)
    except LayoutError:
        return False
    return True


def is_call(text: str) -> bool:
    """Return whether a text calls ``cuTensorMapEncodeTiled``, or has lines that are printed when a call fails.

    Example:
        >>> is_call("CUresult r = cuTensorMapEncodeTiled(&map, ...);"), is_call("00 10")
        (True, False)
    """
    return _CALL.search(text) is not None or {"globalDim", "boxDim"} <= {found[1] for found in _LINE.finditer(text)}


def read_call(text: str) -> tuple[dict[str, object], str]:
    """Return the arguments of a call of ``cuTensorMapEncodeTiled`` by the driver's names, and how they were read.

    Args:
        text: C++ with one call. Its arguments are literals, or names that the text gives literals; an address that is
            known only when the program runs counts as 0. Or the lines that CUTLASS and TileLang print of a failed call.

    Raises: MalformedError: LA806, with the argument.

    Example:
        >>> given, _ = read_call('''
        ...     cuuint64_t dims[2] = {512, 1024}, strides[1] = {512 * 2};
        ...     cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
        ...     cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void*)0x1000, dims, strides, box,
        ...         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        ...         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);''')
        >>> given["globalDim"], given["globalStrides"], given["globalAddress"], given["swizzle"]
        ([512, 1024], [1024], 4096, 'CU_TENSOR_MAP_SWIZZLE_128B')
    """
    if len(CHECK.kind(text, str, "text")) > NOTATION_CHARACTERS:
        raise _refused("text", f"has {len(text)} characters, the limit is {NOTATION_CHARACTERS}")
    if not _CALL.search(text):
        return _printed(text)
    plain = without_comments(text)
    calls = list(_CALL.finditer(plain))
    if len(calls) != 1:
        raise _refused("text", f"has {len(calls)} calls of cuTensorMapEncodeTiled, not one")
    words = list(_arguments(plain, calls[0].end()))
    if len(words) != len(ARGUMENTS):
        raise _refused("the call", f"has {len(words)} arguments, not {len(ARGUMENTS)}: {', '.join(ARGUMENTS)}")
    given: dict[str, object] = {}
    how = "a call of cuTensorMapEncodeTiled"
    for name, word in zip(ARGUMENTS[1:], words[1:], strict=True):
        if name in _ARRAYS:
            given[name] = _entries(name, word, plain)
        elif name == "globalAddress":
            address = 0 if word in ("nullptr", "NULL") else _number(word, plain)
            given[name] = address or 0
            how += "" if address is not None else f", with the address {shown(word)} taken as 0"
        else:
            given[name] = _enumerator(name, word, plain)
    return given, how


def _printed(text: str) -> tuple[dict[str, object], str]:
    """Return the arguments that lines of a failed call show; their strides begin with that of an element."""
    found: dict[str, str] = {}
    for line in _LINE.finditer(text):
        label, word = line[1], line[2].rstrip()
        if found.setdefault(label, word) != word:
            raise _refused(label, f"is {shown(found[label])} and {shown(word)}: paste the lines of one map")
    given: dict[str, object] = {}
    for name, label in zip(ARGUMENTS[1:], PRINTED, strict=True):
        if label not in found and label != "gmem_address":
            raise _refused(label, f"has no line; the lines are {', '.join(PRINTED)}")
        if name not in _ARRAYS:
            given[name] = _number(found.get(label, "0").replace("(nil)", "0"), "")
        else:
            given[name] = _entries(label, f"{{{found[label].strip('()[]{}')}}}", "")
        if given[name] is None:
            raise _refused(label, f"must be a number, not {shown(found[label])}")
    strides = cast(list[int], given["globalStrides"])
    if strides and strides[0] > _ELEMENT:
        raise _refused("globalStrides", f"must begin with the stride of an element, not {strides[0]}")
    given["globalStrides"] = strides[1:]
    return given, "the lines printed for a call of cuTensorMapEncodeTiled"


def _refused(where: str, because: str) -> MalformedError:
    return malformed("LA806", "the call cannot be read", f"{where} {because}", (where,))


def _arguments(text: str, at: int) -> Iterator[str]:
    """Yield the arguments of a call, from behind its parenthesis."""
    depth, start = 1, at
    for place in range(at, len(text)):
        char = text[place]
        depth += (char in "([{") - (char in ")]}")
        if (char == "," and depth == 1) or not depth:
            yield text[start:place].strip()
            start = place + 1
        if not depth:
            return
    raise _refused("the call", "is not closed")


def _bare(word: str) -> str:
    """Return an expression without casts and outer parentheses."""
    for _ in range(_MOST_NAMES):
        before = word
        word = _CAST.sub("", word, count=1).strip()
        if word.startswith("(") and word.endswith(")") and word.count("(") == 1:
            word = word[1:-1].strip()
        if word == before:
            break
    return word


def _entries(name: str, word: str, text: str) -> list[int]:
    """Return the numbers of an array: a list in braces, or the name of one."""
    bare = _bare(word).removeprefix("&").removesuffix("[0]")
    bare = re.sub(r"\.data\(\)$", "", bare)
    if bare in ("nullptr", "NULL"):
        return []
    if bare.isidentifier():
        found = re.search(rf"\b{bare}\s*(?:\[[^\[\]]*\])?\s*=?\s*[{{]+([^{{}}]*)[}}]", text)
        if found is None:
            raise _refused(name, f"is {shown(bare)}, and the text has no array of this name with its numbers")
        bare = f"{{{found[1]}}}"
    if not (bare.startswith("{") and bare.endswith("}")):
        raise _refused(name, f"must be numbers in braces or the name of an array, not {shown(word)}")
    parts = [part for part in bare.strip("{} \n\t").split(",") if part.strip()]
    numbers = [_number(part, text) for part in parts]
    if None in numbers:
        place = numbers.index(None)
        raise _refused(f"{name}[{place}]", f"must be a number, not {shown(parts[place].strip())}")
    return [number for number in numbers if number is not None]


def _number(word: str, text: str, names: int = 0) -> int | None:
    """Return the value of an expression of numbers and constants of the text; None for any other."""
    bare = _SUFFIX.sub(r"\1", _bare(word))
    bare = _HEXADECIMAL.sub(lambda found: str(int(found[0], 16)), bare)
    if bare.isidentifier() and names < _MOST_NAMES:
        found = re.search(rf"\b{bare}\s*=\s*([^;{{}},]+)[;,]", text)
        return None if found is None else _number(found[1], text, names + 1)
    try:
        return None if re.search(r"[A-Za-z_]", bare) else polynomial(bare).as_int()
    except LayoutError:
        return None


def _enumerator(name: str, word: str, text: str) -> object:
    """Return an enumerator as text, or a number."""
    bare = _bare(word)
    known: Mapping[str, object] = {text: None for names in ENUMERATORS.values() for text in names.values()}
    if bare.isidentifier() and bare not in known:
        found = re.search(rf"\b{bare}\s*=\s*([\w:]+)\s*[;,]", text)
        bare = bare if found is None else _bare(found[1])
    if bare.rpartition(":")[2] in known:
        return bare
    number = _number(bare, text)
    if number is None:
        raise _refused(name, f"must be an enumerator of cuda.h or a number, not {shown(word)}")
    return number
