"""Motion capture: clips of any file format, cleaned and reduced to the body points of a person.

    from humanoid_control.mocap import clean, find_body_points, load_clip

    clip, report = clean(load_clip("dance"))  # or the path of a file: BVH, FBX, SMPL, C3D, ...
    body = find_body_points(clip)
    print(body.names, body.positions.shape, *report.warnings)

`load_body_points` does the three steps in one. `LiveCalibration` handles live markers.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.mocap.body_points import BodyPoints as BodyPoints
    from humanoid_control.mocap.body_points import find_body_points as find_body_points
    from humanoid_control.mocap.body_points import torso_axes as torso_axes
    from humanoid_control.mocap.body_points import upright as upright
    from humanoid_control.mocap.cleaning import CleaningReport as CleaningReport
    from humanoid_control.mocap.cleaning import CleaningSettings as CleaningSettings
    from humanoid_control.mocap.cleaning import clean as clean
    from humanoid_control.mocap.clip import MarkerClip as MarkerClip
    from humanoid_control.mocap.dance import synthetic_dance as synthetic_dance
    from humanoid_control.mocap.human_model import HumanBody as HumanBody
    from humanoid_control.mocap.human_model import human_markers as human_markers
    from humanoid_control.mocap.live import LiveBody as LiveBody
    from humanoid_control.mocap.live import LiveCalibration as LiveCalibration
    from humanoid_control.mocap.live import MarkerTracks as MarkerTracks
    from humanoid_control.mocap.live import TrackSettings as TrackSettings
    from humanoid_control.mocap.load import CLIP_NAMES as CLIP_NAMES
    from humanoid_control.mocap.load import load_body_points as load_body_points
    from humanoid_control.mocap.load import load_clip as load_clip
    from humanoid_control.mocap.load import locate_body as locate_body
    from humanoid_control.mocap.marker_set_draft import Draft as Draft
    from humanoid_control.mocap.marker_set_draft import draft_marker_set as draft_marker_set
    from humanoid_control.mocap.marker_set_draft import write_draft as write_draft
    from humanoid_control.mocap.marker_sets import MARKER_SETS as MARKER_SETS
    from humanoid_control.mocap.marker_sets import BodyLocator as BodyLocator
    from humanoid_control.mocap.marker_sets import MarkerSet as MarkerSet
    from humanoid_control.mocap.marker_sets import MarkerSetRule as MarkerSetRule
    from humanoid_control.mocap.marker_sets import plain_label as plain_label
    from humanoid_control.mocap.marker_sets import read_marker_set as read_marker_set
    from humanoid_control.mocap.sternum import SternumSettings as SternumSettings
    from humanoid_control.mocap.sternum import estimate_sternum as estimate_sternum
    from humanoid_control.mocap.sternum import fit_sternum as fit_sternum

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "body_points": ["BodyPoints", "find_body_points", "torso_axes", "upright"],
        "cleaning": ["CleaningReport", "CleaningSettings", "clean"],
        "clip": ["MarkerClip"],
        "dance": ["synthetic_dance"],
        "marker_set_draft": ["Draft", "draft_marker_set", "write_draft"],
        "human_model": ["HumanBody", "human_markers"],
        "live": ["LiveBody", "LiveCalibration", "MarkerTracks", "TrackSettings"],
        "load": ["CLIP_NAMES", "load_body_points", "load_clip", "locate_body"],
        "marker_sets": ["MARKER_SETS", "BodyLocator", "MarkerSet", "MarkerSetRule", "plain_label", "read_marker_set"],
        "sternum": ["SternumSettings", "estimate_sternum", "fit_sternum"],
    },
    public=[
        "BodyPoints",
        "CleaningSettings",
        "LiveBody",
        "MARKER_SETS",
        "MarkerClip",
        "MarkerSet",
        "clean",
        "draft_marker_set",
        "find_body_points",
        "load_body_points",
        "load_clip",
        "read_marker_set",
        "synthetic_dance",
        "write_draft",
    ],
)
