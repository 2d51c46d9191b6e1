"""One codec for all hardware descriptors: a table of bit fields that encodes and decodes integers and arrays alike.

Notation: bit b of word w is bit 32 w + b of the descriptor. The field ``x`` has the whole value x; ``x[high:low]`` has
bits high..low of x, so a value may be split over words, or leave out low bits that are always 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.kinds import checked_kinds

_PART = re.compile(r"(.*)\[\d+:(\d+)\]")


@dataclass(frozen=True, slots=True)
class Field:
    """A run of bits of a descriptor.

    Args:
        name: Name of the value, with the range of its bits if these are not all.
        word: 32-bit word, 0 to 31.
        low: Lowest bit inside the word.
        width: Number of bits, 1 to 32.
        meaning: How the value is written.
        less: What is subtracted from the value first: 1 for an extent that is written as extent - 1.
    """

    name: str
    word: int
    low: int
    width: int
    meaning: str
    less: int = 0

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")
        if not (0 <= self.word < 32 and 0 <= self.low < self.low + self.width <= 32):
            because = f"{self.width} bits from bit {self.low} of word {self.word} are not in the 32 words of 32 bits"
            raise MalformedError(Diagnostic("LA374", f"{self.name} is not a field of the map", because=because))

    @property
    def first(self) -> int:
        """Lowest bit inside the descriptor."""
        return 32 * self.word + self.low

    @property
    def last(self) -> int:
        """Highest bit inside the descriptor."""
        return self.first + self.width - 1

    @property
    def bits(self) -> str:
        """The position in words: word, bits inside it, bits of the whole map."""
        high = self.low + self.width - 1
        return f"word {self.word} bits {high}:{self.low} (bits {self.last}:{self.first} of the map)"

    def of(self, words: Sequence[Any]) -> Any:
        """Return the field's bits, as they are written."""
        return words[self.word] >> self.low & (1 << self.width) - 1


def run(name: str, high: int, low: int, meaning: str, less: int = 0) -> Field:
    """Return the field at bits ``[high:low]`` of a descriptor, as its document numbers them.

    Example:
        >>> run("stride_bytes[17:4]", 45, 32, "stride / 16").bits
        'word 1 bits 13:0 (bits 45:32 of the map)'
    """
    return Field(name, low // 32, low % 32, high - low + 1, meaning, less)


class Codec:
    """Encode and decode the values of a table of fields.

    Args:
        fields: Fields that share no bit.

    Example:
        >>> codec = Codec((run("rows", 7, 0, "rows - 1", 1), run("pitch[19:4]", 31, 16, "pitch / 16")))
        >>> codec.encode({"rows": 64, "pitch": 1024}), codec.decode([0x40003F])
        ([4194367], {'rows': 64, 'pitch': 1024})
    """

    __slots__ = ("_groups", "_parts", "fields", "named", "words")

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self.words = 1 + max(field.word for field in self.fields)
        self.named: Mapping[str, Field] = {field.name: field for field in self.fields}
        self._parts: dict[str, list[tuple[int, int, int, int, int]]] = {}
        for field in self.fields:
            part = _PART.fullmatch(field.name)
            name, drop = (part[1], int(part[2])) if part else (field.name, 0)
            mask = (1 << field.width) - 1
            self._parts.setdefault(name, []).append((field.word, field.low, mask, drop, field.less))
        self._groups: dict[tuple[str, ...], list[tuple[Field, int, int, int]]] = {}

    def encode(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the words of 32 bits; fields without a value are 0. Values that are arrays give arrays."""
        words: list[Any] = [0] * self.words
        for name, value in values.items():
            for word, low, mask, drop, less in self._parts[name]:
                words[word] |= (value - less >> drop & mask) << low
        return words

    def decode(self, words: Sequence[Any]) -> dict[str, Any]:
        """Return the value of every name, whatever its bits say; of several fields of one name, all together."""
        found = {}
        for name, parts in self._parts.items():
            word, low, mask, drop, less = parts[0]
            value = ((words[word] >> low & mask) << drop) + less
            for word, low, mask, drop, _ in parts[1:]:
                value = value + ((words[word] >> low & mask) << drop)
            found[name] = value
        return found

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values."""
        return tuple(self._parts)

    def integer(self, values: Mapping[str, int]) -> int:
        """Return the encoding as one integer."""
        answer = 0
        for name, value in values.items():
            for word, low, mask, drop, less in self._parts[name]:
                answer |= (value - less >> drop & mask) << (32 * word + low)
        return answer

    def held(self, words: Sequence[Any], names: Iterable[str]) -> Iterator[tuple[Field, Any]]:
        """Yield the fields of these names with their bits, in order."""
        key = tuple(names)
        group = self._groups.get(key)
        if group is None:
            group = [(one, one.word, one.low, (1 << one.width) - 1) for one in self.fields if one.name in key]
            self._groups[key] = group
        return ((field, words[word] >> low & mask) for field, word, low, mask in group)


def words_of(value: int, count: int) -> list[int]:
    """Return an integer as 32-bit words, lowest first.

    Example:
        >>> words_of(0x200000001, 2)
        [1, 2]
    """
    return [value >> 32 * place & 0xFFFFFFFF for place in range(count)]
