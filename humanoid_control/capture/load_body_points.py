"""From a file to body points in one call: read, clean, locate."""

from __future__ import annotations

from pathlib import Path

from humanoid_control.capture.body_points import BodyPoints, body_points
from humanoid_control.capture.cleaning import CleaningSettings, clean
from humanoid_control.capture.load import load_clip


def load_body_points(
    name_or_path: str | Path = "dance",
    marker_set: str | Path | None = None,
    cleaning: CleaningSettings | None = None,
    rate: float | None = None,
) -> BodyPoints:
    """`load_clip`, `clean` and `body_points` one after the other.

    Args:
        name_or_path: built-in clip or file, as for `load_clip`.
        marker_set: as for `body_points`.
        cleaning: what is cleaned; by default labels are checked, gaps up to 0.5 s filled, noise above 10 Hz taken out.
        rate: as for `load_clip` [Hz].

    Returns:
        The points; their warnings say what was found and done on the way.

    Raises:
        ClipError, UnknownNameError: as those three do.
    """
    settings = cleaning or CleaningSettings()
    clip, _ = clean(load_clip(name_or_path, rate), settings)
    return body_points(clip, marker_set, settings.max_gap)
