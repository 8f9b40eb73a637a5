"""Motion capture: readers into one MarkerClip, cleaning, marker sets, body points, a synthetic dance."""

from humanoid_control.mocap.body_points import BodyPoints, find_body_points
from humanoid_control.mocap.cleaning import CleaningReport, CleaningSettings, clean
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.dance import synthetic_dance
from humanoid_control.mocap.load import CLIP_NAMES, load_body_points, load_clip
from humanoid_control.mocap.sternum import SternumSettings, estimate_sternum, fit_sternum

__all__ = [
    "CLIP_NAMES",
    "BodyPoints",
    "CleaningReport",
    "CleaningSettings",
    "MarkerClip",
    "SternumSettings",
    "clean",
    "estimate_sternum",
    "find_body_points",
    "fit_sternum",
    "load_body_points",
    "load_clip",
    "synthetic_dance",
]
