"""Wrong arguments of every public callable, found from its signature.

A right call of each is one that the doctests of the library make. Odd values then take the place of arguments: a value
of a kind that the annotation does not name must be refused, any other may be answered or refused. An annotation with a
name that is not understood here admits everything.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import linecache
import pkgutil
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

import layoutalg
from layoutalg.ground import clock

KEPT = 2
"""So many right calls are kept of each callable."""
SECONDS = 2.0
SPECIAL = ("__init__", "__call__", "__contains__")
NAMES_OF_KINDS = {
    "int", "str", "bool", "float", "None", "bytes", "Literal", "np", "npt", "Sequence", "tuple", "list", "Iterable",
    "Mapping", "dict", "NDArray", "ArrayLike", "uint8", "int64",
}  # fmt: skip
HOLDERS = {"Sequence", "tuple", "list", "Iterable", "NDArray", "ArrayLike"}


class Silent:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


@cache
def odd_values() -> tuple[Any, ...]:
    """Values of every kind, and numbers at the ends of all ranges."""
    loop: list[object] = []
    loop.append(loop)
    deep: Any = ()
    for _ in range(500):
        deep = (deep,)
    numbers = [True, 0, -1, 3, 2**31, 2**63, -(2**63) - 1, 10**5000, 1.5, -0.0, float("nan"), float("inf"), 1j]
    numbers += [np.int64(-3), np.uint64(2**64 - 1), np.float32(2), np.bool_(True)]
    texts = ["", "x", "(4,8", "NONE", "for", "\ud800", "\x1b[31m", "a" * 10**5, b"", bytes(128)]
    holders = [
        (),
        [],
        {},
        {1},
        (None,),
        (1.5, 2),
        ("x", "x"),
        [[1, [2]]],
        {"a": 1},
        {1: None},
        range(1 << 70),
        loop,
        deep,
    ]
    arrays = [np.array(3), np.array([1.5]), np.array(["a"]), np.zeros((2, 2)), np.array([None, 1], dtype=object)]
    layouts = [layoutalg.parse(text) for text in ("(4,8):(1,4)", "F2[i=(1) -> o:2]", "Z[i:4=(1) -> offset]")]
    return (None, *numbers, *texts, *holders, *arrays, *layouts, Silent(), object, int, len, Ellipsis, iter(()))


def admits(annotation: object, value: object) -> bool:
    """Whether a value may be of an annotated kind."""
    names = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", str(annotation))))
    return bool(names - NAMES_OF_KINDS - class_names()) or not names or _admitted(names, value, 0)


def _admitted(names: set[str], value: object, depth: int) -> bool:
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    match value:
        case _ if depth > 4:
            return True
        case None:
            return "None" in names
        case bool() | np.bool_():
            return "bool" in names
        case int() | np.integer():
            return bool(names & {"int", "float", "ArrayLike", "NDArray"})
        case float() | np.floating():
            return "float" in names
        case str():
            return bool(names & {"str", "Literal"})
        case bytes():
            return "bytes" in names
        case range() | Iterator():
            return bool(names & HOLDERS)
        case tuple() | list() | set() | np.ndarray():
            return bool(names & HOLDERS) and all(_admitted(names, each, depth + 1) for each in value)
        case dict():
            parts = [each for pair in value.items() for each in pair]
            return bool(names & {"Mapping", "dict"}) and all(_admitted(names, each, depth + 1) for each in parts)
    return any(kind.__name__ in names for kind in type(value).__mro__)


@cache
def modules() -> tuple[ModuleType, ...]:
    """All modules of the library."""
    names = [info.name for info in pkgutil.walk_packages(layoutalg.__path__, "layoutalg.")]
    return tuple(importlib.import_module(name) for name in ("layoutalg", *names) if not name.endswith("__main__"))


@cache
def class_names() -> frozenset[str]:
    """Names that mean a class of the library wherever they stand; values of many kinds have a protocol."""
    named: dict[str, set[bool]] = defaultdict(set)
    for module in modules():
        for name, value in vars(module).items():
            own = inspect.isclass(value) and value.__module__.startswith("layoutalg")
            named[name].add(own and not getattr(value, "_is_protocol", False))
    return frozenset(name for name, classes in named.items() if classes == {True})


@dataclass(frozen=True)
class Subject:
    """A public function, method or constructor."""

    name: str
    function: Callable[..., Any]

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Those that a caller gives."""
        return [one for one in inspect.signature(self.function).parameters.values() if one.name not in ("self", "cls")]

    def with_argument(
        self, arguments: Mapping[str, Any], parameter: inspect.Parameter, value: object
    ) -> dict[str, Any]:
        """Return the arguments of a call with another value of one, by their names."""
        if parameter.kind is parameter.VAR_POSITIONAL:
            value = (value,)
        elif parameter.kind is parameter.VAR_KEYWORD:
            value = {**arguments[parameter.name], next(iter(arguments[parameter.name]), "x"): value}
        return {**arguments, parameter.name: value}

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call with arguments by name, in bounded time."""
        places, names = [], {}
        for parameter in inspect.signature(self.function).parameters.values():
            value = arguments[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                places += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                names |= value
            elif parameter.kind is parameter.KEYWORD_ONLY:
                names[parameter.name] = value
            else:
                places.append(value)
        if self.function.__name__ == "__init__":  # the recorded value is another's: it may stand in a cache
            places[0] = object.__new__(type(places[0]))
        with clock.within(SECONDS), _no_hang():
            return self.function(*places, **names)


@contextmanager
def _no_hang() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise TimeoutError(f"more than {5 * SECONDS} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, 5 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def subjects(package: str) -> tuple[Subject, ...]:
    """Public functions of a package, and what its public classes define."""
    found = {}
    door = importlib.import_module(package)
    for name in door.__all__:
        value = getattr(door, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for part, raw in vars(value).items():
                function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
                if inspect.isfunction(function) and (part in SPECIAL or not part.startswith("_")):
                    found[f"{name}.{part}"] = function
        elif inspect.isfunction(inspect.unwrap(value) if callable(value) else value):
            found[name] = value
    return tuple(Subject(f"{package}.{name}", function) for name, function in found.items())


def right_calls(subject: Subject) -> list[dict[str, Any]]:
    """Return the arguments of the first calls that doctests make of it, by name, the value itself among them."""
    return _called().get(inspect.unwrap(subject.function).__code__, [])


@cache
def _called() -> dict[CodeType, list[dict[str, Any]]]:
    found: dict[CodeType, list[dict[str, Any]]] = defaultdict(list)
    known: set[int] = set()  # of code with enough calls, by identity: code is compared by all that it holds
    root = layoutalg.__path__[0]

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or id(code := frame.f_code) in known:
            return
        if code.co_filename.startswith(root):
            count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
            local = frame.f_locals
            found[code].append({name: local[name] for name in code.co_varnames[:count]})
            if len(found[code]) == KEPT:
                known.add(id(code))

    for module in modules():
        linecache.clearcache()  # each runner looks for changes of all files that are in it
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if not test.examples:  # a runner costs 2 ms, and four docstrings of five have none
                continue
            sys.setprofile(watch)  # a tracer that returns None hears of calls alone
            try:
                doctest.DocTestRunner(verbose=False).run(test, out=lambda _: None)
            finally:
                sys.setprofile(None)
    return found
