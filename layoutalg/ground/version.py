"""The version; a separate module so that the command line need not load the whole package."""

from __future__ import annotations

__version__ = "0.1.0"
