"""Packages whose public names load on first use and that list nothing else.

Main definitions: ``door``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


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
