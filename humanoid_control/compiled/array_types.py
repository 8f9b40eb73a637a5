"""Types of arrays in records: element and number of axes, for `packed` and mypy."""

from __future__ import annotations

from typing import Annotated

import numpy as np

F1 = Annotated[np.ndarray, np.float64, 1]
F2 = Annotated[np.ndarray, np.float64, 2]
F3 = Annotated[np.ndarray, np.float64, 3]
I1 = Annotated[np.ndarray, np.int64, 1]
I2 = Annotated[np.ndarray, np.int64, 2]
I3 = Annotated[np.ndarray, np.int64, 3]
B1 = Annotated[np.ndarray, np.bool_, 1]
B2 = Annotated[np.ndarray, np.bool_, 2]
