"""Numbers in the words of a text file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ClipError


def floats(words: Sequence[str], what: str) -> np.ndarray:
    """Finite numbers from words.

    Args:
        words: as the file has them.
        what: start of the error message: the file, and what the numbers are.

    Raises:
        ClipError: one of them is not a finite number.
    """
    try:
        numbers = np.array(words, dtype=float)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise ClipError(f"{what}: holds something that is not a number: the file is damaged")
    return numbers
