"""A sternum for a clip that does not show it, or not all the time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from humanoid_control.capture.sternum import estimate_sternum, fit_sternum

_LEARN = 1.0  # [s] for which the sternum must be seen to learn the person's own constants


def complete_sternum(points: Mapping[str, np.ndarray], rate: float) -> tuple[np.ndarray, str]:
    """The sternum in every frame, estimated where it is not seen.

    A sternum that is seen for 1 s or more gives the person's own constants, and the estimate is shifted so that it
    joins the seen path without a step. One that is hardly ever seen is estimated throughout.

    Args:
        points: hips and shoulders (T, 3) without gaps, the sternum with or without gaps or not at all [m].
        rate: frames a second [Hz].

    Returns:
        (T, 3) path [m], and a sentence that says what was done.
    """
    l_hip, r_hip, l_gh, r_gh = (points[name] for name in ("l_hip", "r_hip", "l_shoulder", "r_shoulder"))
    sternum = points.get("sternum", np.full_like(l_hip, np.nan))
    seen = ~np.isnan(sternum[:, 0])
    if seen.sum() < max(2, _LEARN * rate):
        note = (
            "the clip does not show the sternum: estimated from hips and shoulders, 1 to 2 cm off on recordings that "
            "show it"
        )
        return estimate_sternum(l_hip, r_hip, l_gh, r_gh), note
    learnt = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    estimate = estimate_sternum(l_hip, r_hip, l_gh, r_gh, learnt)
    frames = np.flatnonzero(seen)
    from scipy.interpolate import PchipInterpolator  # slow to import, and seldom needed

    shift = PchipInterpolator(frames, (sternum - estimate)[seen])(np.clip(np.arange(len(seen)), frames[0], frames[-1]))
    note = (
        f"the sternum is hidden in {100 * (~seen).mean():.0f} % of the frames, partly for long: there it is estimated "
        "from hips and shoulders"
    )
    return np.where(seen[:, None], sternum, estimate + shift), note
