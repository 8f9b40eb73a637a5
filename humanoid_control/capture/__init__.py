"""Motion capture: readers into one MarkerClip, cleaning, marker sets, body points, a synthetic dance."""

from humanoid_control.capture.body_points import BodyPoints, body_points
from humanoid_control.capture.cleaning import CleaningReport, CleaningSettings, clean
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.dance import synthetic_dance
from humanoid_control.capture.load import CLIP_NAMES, load_clip
from humanoid_control.capture.load_body_points import load_body_points
from humanoid_control.capture.sternum import SternumSettings, estimate_sternum, fit_sternum
from humanoid_control.capture.sternum_report import sternum_report

__all__ = [
    "CLIP_NAMES",
    "BodyPoints",
    "CleaningReport",
    "CleaningSettings",
    "MarkerClip",
    "SternumSettings",
    "body_points",
    "clean",
    "estimate_sternum",
    "fit_sternum",
    "load_body_points",
    "load_clip",
    "sternum_report",
    "synthetic_dance",
]
