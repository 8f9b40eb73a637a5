"""Evidence for the claims of `humanoid_control`: studies of published findings, and benchmarks next to other libraries.

Not installed with the package: `humanoid study`, `humanoid bench` and `humanoid soak` run them from a checkout.
"""

import os
from pathlib import Path

_CHECKOUT = str(Path(__file__).resolve().parent.parent)
# Studies start modules of this package as processes, from any working directory.
if _CHECKOUT not in (_paths := os.environ.get("PYTHONPATH", "").split(os.pathsep)):
    os.environ["PYTHONPATH"] = os.pathsep.join([_CHECKOUT, *filter(None, _paths)])
