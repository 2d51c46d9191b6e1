"""Arguments of commands as fields of a class: what a field's annotation and default say, argparse is told from them.

Implementation notes: a field without flags is positional. ``X | None`` makes a positional argument optional, a list
takes several values or repeated options, a ``Literal`` has choices, a ``bool`` is a switch. The help of an option ends
with its default.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from layoutalg.ground import clock, limits
from layoutalg.ground.errors import MalformedError


def _read_as(rule: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type of argparse that refuses a text with the rule it breaks."""

    def typed(text: str) -> Any:
        try:
            return read(text)
        except (MalformedError, ValueError):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {rule}") from None

    return typed


def _matched(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    return text


def _numbers(pattern: str, text: str) -> tuple[int, ...]:
    return tuple(map(int, _matched(pattern, text).split(",")))


def _named(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ValueError(text)
    return name, value


def _below(most: int, number: int) -> int:
    if not 0 <= number < most:
        raise ValueError(number)
    return number


_sizes = _read_as("a list of sizes such as 64,64", lambda text: _numbers(r"[0-9]{1,18}(,[0-9]{1,18}){0,15}", text))
page = _read_as("four sizes such as 16,8,128,2", lambda text: _numbers(r"[0-9]{1,18}(,[0-9]{1,18}){3}", text))
rows = _read_as("a list of sizes such as 70,0,64", lambda text: _numbers(r"-?[0-9]{1,18}(,-?[0-9]{1,18})*", text))
origin = _read_as(
    "a list of coordinates such as 0,64, or 0,16%64 for 16 modulo 64",
    lambda text: tuple(
        tuple(map(int, part.split("%"))) if "%" in part else int(part)
        for part in _matched(r"-?[0-9]{1,18}(%[0-9]{1,18})?(,-?[0-9]{1,18}(%[0-9]{1,18})?)*", text).split(",")
    ),
)
_seconds = _read_as("a number of seconds, at least 0", lambda text: clock.checked_seconds(float(text), "a budget"))
_count = _read_as("a whole number, at least 0", lambda text: int(_matched(r"[0-9]{1,1000}", text)))
_element = _read_as(
    "an element type or its width, 4, 8, 16, 32, 64 or 128",
    lambda text: _matched("4|8|16|32|64|128", text) if text.isdecimal() else text,
)
address = _read_as(
    "an address such as 0x7f00", lambda text: int(_matched(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", text), 0)
)
seed = _read_as("an integer from 0 to 2^64 - 1", lambda text: _below(2**64, int(text)))
named = _read_as("an option such as issues=1", _named)
form = _read_as(
    "a form such as rows=128,columns=256",
    lambda text: tuple((name, int(_matched(r"[0-9]{1,18}", value))) for name, value in map(_named, text.split(","))),
)
EITHER = "NVIDIA or AMD architecture"
Sizes: TypeAlias = tuple[int, ...]
_READERS = {int: _count, float: _seconds, Sizes: _sizes}
"""What reads the values of options without a ``type`` of their own."""


def argument(says: str | None, default: Any = None, *, flags: str = "", **how: Any) -> Any:
    """A field that is an argument: an option if it has flags, separated by spaces, otherwise positional."""
    return field(default=default, metadata={"help": says, "flags": flags.split(), **how})


def option(flags: str, says: str | None, default: Any = None, **how: Any) -> Any:
    """A field that is an option."""
    return argument(says, default, flags=flags, **how)


def target(says: str = "architecture") -> Any:
    """The target of one answer."""
    return option("--target", says, "sm_90a")


def targets() -> Any:
    """The targets of one answer for several."""
    return option(
        "--target", f"{EITHER}; repeat it for one answer that serves several (default sm_90a)", metavar="TARGET"
    )


def dtype(says: str = "element type, by any library's name (default: that of the text, or bf16)") -> Any:
    """An element type."""
    return option("--dtype --bits", f"{says}; or only its width in bits", type=_element)


def stride() -> Any:
    """Strides of a tensor."""
    return option("--stride", "element strides of the tensor (default row-major)")


def file(flags: str, what: str, **how: Any) -> Any:
    """A file to write."""
    return option(flags, f"{what} to this file, completely or not at all", **how)


def picture(what: str, flags: str = "--picture -o --output") -> Any:
    """A picture to write."""
    return file(flags, f"write {what} as SVG", metavar="FILE")


def documented() -> Any:
    """Whether only documented rules count."""
    return option("--documented-only", "refuse what breaks the documentation even if measured chips accept it", False)


def budget(seconds: float = limits.COMMAND_SECONDS) -> Any:
    """The limit of a command in time."""
    return option("--budget", "seconds for each document", seconds)


@dataclass(frozen=True)
class Options:
    """Options that most commands have, shown after their own; ``about`` is what the budget is for, if one thing."""

    about: ClassVar[str] = ""

    def __init_subclass__(cls, about: str = "") -> None:
        cls.about = about

    budget: float = budget()
    json: bool = option("--json", "print one JSON document that names its schema", False)


def add_arguments(parser: argparse.ArgumentParser, options: type[Any]) -> None:
    """Add the fields of a class to a parser."""
    shared = [entry.name for entry in fields(Options)]
    hints = get_type_hints(options)
    for entry in sorted(fields(options), key=lambda entry: shared.index(entry.name) if entry.name in shared else -1):
        how = _told_by(hints[entry.name], bool(entry.metadata["flags"])) | entry.metadata
        flags, says = how.pop("flags"), how["help"]
        if how.get("nargs") != "+" and "required" not in how:
            how["default"] = entry.default
        if says and not isinstance(entry.default, (bool, NoneType)):
            default = f"{entry.default:g}" if isinstance(entry.default, float) else entry.default
            how["help"] = f"{says} (default {default})"
        if flags:
            parser.add_argument(*flags, dest=entry.name, **how)
        else:
            parser.add_argument(entry.name, **how)


def _told_by(hint: Any, flagged: bool) -> dict[str, Any]:
    """What an annotation tells argparse."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (only,) = (part for part in inner if part is not NoneType)
        optional = {} if flagged else {"nargs": "?"}
        return optional | _told_by(only, flagged)
    if origin is list:
        return ({"action": "append"} if flagged else {"nargs": "+"}) | _told_by(inner[0], flagged)
    if origin is Literal:
        return {"choices": inner}
    if hint is bool:
        return {"action": "store_true"}
    return {"type": _READERS[hint]} if hint in _READERS else {}
