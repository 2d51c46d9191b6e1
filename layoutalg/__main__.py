"""``python -m layoutalg``."""

from __future__ import annotations

import sys

from layoutalg.cli import main

sys.exit(main())
