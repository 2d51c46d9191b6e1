"""An import finder for checkouts without symbolic links (some file systems and archives drop them)."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_NAMES = {f"layoutalg.{folder}" for folder in ("synth", "targets", "codegen", "proofs")}


class _SiblingFinder:
    """Finds the four sub-packages in the folders next to the package."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004
        if name not in _NAMES:
            return None
        folder = _ROOT / name.rpartition(".")[2]
        init = folder / "__init__.py"
        if not init.is_file():
            return None
        return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])


def install() -> None:
    """Register the finder once."""
    if not any(isinstance(finder, _SiblingFinder) for finder in sys.meta_path):
        sys.meta_path.append(_SiblingFinder())
