"""The version, for the front door and for the command line, which does not load the front door."""

from __future__ import annotations

__version__ = "0.1.0"
