"""`humanoid bench whole_body`: rows of the solver's own frames, and poses of a person as SMPL-X has them."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.benchmarks.motion import whole_body
from humanoid_control.mocap import BodyPoints
from test.walking_person import walking_person


def test_rows_tell_of_time_and_feet(monkeypatch):
    body = walking_person()[0]
    short = replace(body, positions=body.positions[:120], missing=body.missing.copy())
    monkeypatch.setattr(whole_body, "load_body_points", lambda motion: short)
    rows = {r["name"]: r for r in whole_body.measure("hrp2")}
    assert rows["hrp2_ours_live"]["n"] == 118 and 0 < rows["hrp2_ours_live"]["median"] < 1e5
    assert 0 <= rows["hrp2_ours_slip"]["p99"] < 1 and rows["hrp2_ours_penetration"]["n"] == 120
    assert len(whole_body.notes(list(rows.values()))) == 2


def test_a_person_in_a_t_has_no_rotation_but_that_of_the_world():
    """All segments of SMPL-X have the axes left, up, forward at rest; ours is turned about the vertical."""
    points = {
        "mid_hip": (0, 0, 1.0), "sternum": (0, 0, 1.4), "l_hip": (0, 0.1, 1.0), "r_hip": (0, -0.1, 1.0),
        "l_knee": (0, 0.1, 0.55), "r_knee": (0, -0.1, 0.55), "l_ankle": (0, 0.1, 0.1), "r_ankle": (0, -0.1, 0.1),
        "l_toe": (0.2, 0.1, 0.05), "r_toe": (0.2, -0.1, 0.05),
        "l_shoulder": (0, 0.2, 1.5), "r_shoulder": (0, -0.2, 1.5),
        "l_elbow": (0, 0.5, 1.5), "r_elbow": (0, -0.5, 1.5), "l_wrist": (0, 0.75, 1.5), "r_wrist": (0, -0.75, 1.5),
    }  # fmt: skip
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, 0.7)
    at = np.array([list(points.values())] * 3, dtype=float) @ turn.T
    frames = whole_body.smplx_frames(BodyPoints("T", 100.0, tuple(points), at, np.zeros(len(points))))
    rest = turn @ np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # columns: left, up, forward
    assert len(frames) == 3 and len(frames[0]) == 14
    for name, (place, q) in frames[0].items():
        R = pin.Quaternion(*np.asarray(q)).matrix()
        assert rest == pytest.approx(R, abs=1e-9), name
        assert np.isfinite(place).all()
    assert frames[0]["left_wrist"][0] == pytest.approx(at[0, 14])
