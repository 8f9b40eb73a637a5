"""A small artificial clip, two real ones with a sternum marker, and the report on the estimated sternum."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evidence.studies.dube2012.sternum_report import sternum_report
from humanoid_control.mocap import MarkerClip, find_body_points, load_clip
from test.conftest import DATA

RECORDINGS = Path(os.environ.get("HUMANOID_TEST_RECORDINGS", DATA / "recordings"))

STERNUM_POINTS = ("l_hip", "r_hip", "l_shoulder", "r_shoulder", "sternum")


def of(points):
    """Paths (T, 3) of hips, shoulders and sternum."""
    return [points.point(name) for name in STERNUM_POINTS]


def distance(points, path):
    """(T,) of the sternum from a path (T, 3) [m]."""
    return np.linalg.norm(points.point("sternum") - path, axis=1)


@pytest.fixture
def ramp_clip():
    """Three markers at 10 Hz for 1 s: 'a' moves along x at 1 m/s, 'b' rests, 'c' is missing in frames 4 and 5."""
    positions = np.zeros((11, 3, 3))
    positions[:, 0, 0] = np.arange(11) / 10
    positions[:, 1] = (1.0, 2.0, 3.0)
    positions[:, 2] = (0.0, 0.0, 1.0)
    positions[4:6, 2] = np.nan
    return MarkerClip("ramp", ("a", "b", "c"), 10.0, positions, "test")


@pytest.fixture(scope="session")
def recording():
    """Return a function that gives the path of a recording as others publish it, or skips where it is absent."""

    def find(relative: str) -> Path:
        path = RECORDINGS / relative
        if not path.is_file():
            pytest.skip(f"needs the recording {relative}: set HUMANOID_TEST_RECORDINGS to the folder that holds it")
        return path

    return find


@pytest.fixture(scope="session")
def dance(mocap):
    return find_body_points(load_clip(mocap("dance_markers/dance1.trc")))


@pytest.fixture(scope="session")
def walk(mocap):
    return find_body_points(load_clip(mocap("dance_markers/walk1.trc")))


@pytest.fixture(scope="session")
def report(dance, walk):
    """Rows of the report by method and clip that it was fitted on."""
    return {(row.method, row.fitted_on): row for row in sternum_report(dance, walk)}
