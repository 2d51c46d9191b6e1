"""Lazy imports: modules that load on first use, and packages that expose exactly their public names."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Kept = TypeVar("Kept")

_LOADING = threading.RLock()
"""Held while a slow module loads: z3 and others load parts of importlib whose imports deadlock between two threads.
Only foreign modules load under it, none of which asks for it, and a fork waits for it."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOADING.acquire, after_in_parent=_LOADING.release, after_in_child=_LOADING.release)


def door(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` (which also resolves ``__all__``) and ``__dir__`` for a package.

    Args:
        package: Its name.
        homes: Module -> its public names, space-separated; a name equal to the module's last component is the module.

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


def named_for(value: object, names: Mapping[str, Kept]) -> Kept | None:
    """Return the entry of a table for the type of a value or the nearest base, which the table names without loading.

    Example:
        >>> named_for(True, {"builtins.int": "a number"}), named_for("one", {"builtins.int": "a number"})
        ('a number', None)
    """
    kinds = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__)
    return next((names[kind] for kind in kinds if kind in names), None)


class _Later:
    """A proxy for a module that is imported when an attribute is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with _LOADING:
            found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)  # found without this method from now on
        return found


def later(name: str) -> Any:
    """Return a proxy for a slow module; it is imported on first attribute access."""
    return _Later(name)
