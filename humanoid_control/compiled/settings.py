"""Environment variables of the compiler."""

from __future__ import annotations

import os
from typing import Any

import numba

PACKAGE = __name__.partition(".")[0]
config: Any = numba.config  # untyped
# Separates faults of numba from faults of our changes, and allows a new numba that is incompatible with them.
PLAIN_NUMBA = os.environ.get("HUMANOID_PLAIN_NUMBA", "") not in ("", "0")
