"""Motion capture: one reader a format into one MarkerClip, marker sets, body points, and a synthetic dance."""

from humanoid_control.capture.body_points import BodyPoints, body_points
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.dance import synthetic_dance
from humanoid_control.capture.load import CLIP_NAMES, load_clip

__all__ = ["CLIP_NAMES", "BodyPoints", "MarkerClip", "body_points", "load_clip", "synthetic_dance"]
