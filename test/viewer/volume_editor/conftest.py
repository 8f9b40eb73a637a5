"""A robot's document of volumes, and a small one drawn by hand."""

from __future__ import annotations

import pytest

from humanoid_control.collision.ssv.segments import Segment, SegmentFile, SegmentPair, Volume
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import model_of
from humanoid_control.viewer.volume_editor.document import Document
from humanoid_control.viewer.volume_editor.editor import VolumeEditor

THIGH = (
    Volume("bone", "line", 0.065, ((0.0, 0.01, -0.05), (0.0, 0.02, -0.41)), "all"),
    Volume("inner", "point", 0.07, ((0.0, -0.01, -0.2),), "inside"),
)


def drawn() -> SegmentFile:
    """Both thighs of Lola, the right one drawn as the left one's image, and one shank."""
    shank = Segment("r_shank", "r_shank", (Volume("shin", "line", 0.05, ((0.0, 0.0, -0.05), (0.0, 0.0, -0.4))),))
    pairs = (SegmentPair("l_thigh", "r_thigh", ("inside",), ("inside",)), SegmentPair("l_thigh", "r_shank"))
    return SegmentFile((Segment("l_thigh", "l_thigh", THIGH, "y"), shank), pairs, "lola")


@pytest.fixture(scope="session")
def lola():
    return load_robot("lola", "fixed")


@pytest.fixture
def editor(lola, tmp_path):
    document = Document(drawn(), lambda f: model_of(lola, f), tmp_path / "lola.volumes.yaml", saved=False)
    return VolumeEditor(lola, document)
