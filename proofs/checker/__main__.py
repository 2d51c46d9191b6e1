"""``python checker FILE|FOLDER ...``, wherever this folder was copied to and whatever it is called."""

import importlib.util
import pathlib
import sys


def package():
    """Load this folder as the package ``checker``, so that its files find each other."""
    folder = pathlib.Path(__file__).resolve().parent
    door, places = folder / "__init__.py", [str(folder)]
    spec = importlib.util.spec_from_file_location("checker", door, submodule_search_locations=places)
    sys.modules["checker"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(package().main(sys.argv[1:]))
