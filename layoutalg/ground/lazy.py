"""Modules that load on first use, and packages that list their public names and nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def door(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package; the former also answers ``__all__``.

    Args:
        package: Its name.
        homes: Space-separated public names by the module that holds them; a module whose own full name ends in the
            public name is that module.

    Example:
        >>> find, names = door("tools", {"layoutalg.ground.clock": "clock within"})
        >>> names(), find("clock").__name__, find("within").__name__
        (['clock', 'within'], 'layoutalg.ground.clock', 'within')
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name == "__all__":
            return sorted(home)
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(home[name])
        return module if home[name].rpartition(".")[2] == name else getattr(module, name)

    return find, lambda: sorted(home)


class _Later:
    """A stand-in for a module that is imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def later(name: str) -> Any:
    """Return a stand-in for a module that takes long to import; it is loaded when one of its names is first used.

    Example:
        >>> later("fractions").Fraction(1, 2)
        Fraction(1, 2)
    """
    return _Later(name)
