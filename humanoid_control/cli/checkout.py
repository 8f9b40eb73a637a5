"""Package `evidence` of a checkout: studies and benchmarks, not installed with `humanoid_control`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from humanoid_control.errors import EnvironmentProblem


def evidence_module(name: str) -> Any:
    """Import a module of `evidence` from the checkout of this package.

    Raises:
        EnvironmentProblem: if there is no checkout.
    """
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "evidence" / "commands" / "__init__.py").is_file():
        raise EnvironmentProblem(
            "needs a checkout: studies and benchmarks are not installed; run it from the source tree "
            "(pip install -e CHECKOUT)"
        )
    if str(checkout) not in sys.path:
        sys.path.append(str(checkout))
    return importlib.import_module(f"evidence.{name}")
