"""Exports of OptiTrack Motive: versions of its header, skeletons, solved and measured markers."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.mocap import load_body_points, load_clip, locate_body
from humanoid_control.mocap.formats.csv import parse_csv

BONES = {"Hip": "Hips", "Ab": "Spine", "Chest": "Spine1", "Neck": "Neck", "Head": "Head", "LShoulder": "LeftShoulder",
         "LUArm": "LeftArm", "LFArm": "LeftForeArm", "LHand": "LeftHand", "RShoulder": "RightShoulder",
         "RUArm": "RightArm", "RFArm": "RightForeArm", "RHand": "RightHand", "LThigh": "LeftUpLeg", "LShin": "LeftLeg",
         "LFoot": "LeftFoot", "LToe": "LeftToeBase", "RThigh": "RightUpLeg", "RShin": "RightLeg",
         "RFoot": "RightFoot", "RToe": "RightToeBase"}  # fmt: skip
HEADS = {
    "1.2": "Format Version,1.2,Take Name,walk,Capture Frame Rate,120.000000,Export Frame Rate,120.000000,"
    "Total Frames in Take,9,Rotation Type,Quaternion,Length Units,Meters",
    "1.23": "Format Version,1.23,Take Name,walk,Take Notes,,Capture Frame Rate,120.000000,Export Frame Rate,120.000000,"
    "Capture Start Time,2026-01-01 10.00.00.000 AM,Total Frames in Take,9,Total Exported Frames,9,"
    "Rotation Type,Quaternion,Length Units,Meters,Coordinate Space,Global",
    "1.25": "Format Version,1.25,Take Name,walk,Take Notes,,Capture Frame Rate,120.000000,Export Frame Rate,120.000000,"
    "Capture Start Time,2026-01-01 10.00.00.000 AM,Capture Start Frame,1,Total Frames in Take,9,"
    "Total Exported Frames,9,Rotation Type,Quaternion,Length Units,Millimeters,Coordinate Space,Global",
}


def motive(version, columns, times):
    """An export; columns: (type, name, what, table (T, 3) or (T, 4))."""
    units = 1000 if "Millimeters" in HEADS[version] else 1
    spread = [(k, c, a) for k, (_, _, c, table) in enumerate(columns) for a in "XYZW"[: table.shape[1]]]

    def row(first, value):
        return ",".join([*first, *(value(k, c, a) for k, c, a in spread)])

    rows = [
        HEADS[version],
        "",
        row(["", "Type"], lambda k, *_: columns[k][0]),
        row(["", "Name"], lambda k, *_: columns[k][1]),
        row(["", "ID"], lambda k, *_: f"{k:X}0A"),
        *([row(["", "Parent"], lambda k, *_: "Root")] if version == "1.25" else []),
        row(["", ""], lambda k, c, a: c),
        row(["Frame", "Time (Seconds)"], lambda k, c, a: a),
    ]
    for t, time in enumerate(times):
        cells = [
            f"{v * (units if c == 'Position' else 1):.6f}" if np.isfinite(v) else ""
            for _, _, c, table in columns
            for v in table[t]
        ]
        rows.append(",".join([str(t), f"{time:.6f}", *cells]))
    return "\r\n".join(rows).encode()


@pytest.fixture(scope="module")
def walk(mocap):
    return load_clip(mocap("cmu_bvh/07_01.bvh"))


@pytest.mark.parametrize("version", HEADS)
def test_bones_of_a_skeleton_are_its_joints(walk, version):
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (walk.n_frames, 1))
    columns = []
    for bone, joint in BONES.items():
        columns += [
            ("Bone", f"Anna:{bone}", "Rotation", turn),
            ("Bone", f"Anna:{bone}", "Position", walk.marker(joint)),
        ]
    for k in range(12):
        columns.append(("Bone Marker", f"Anna:Marker{k}", "Position", walk.marker("Head") + 0.1 * k))
        columns.append(("Marker", f"Anna:Marker{k}", "Position", walk.marker("Head") + 0.1 * k))
    clip = parse_csv(motive(version, columns, walk.times), "a.csv")
    assert clip.rate == 120
    assert set(clip.labels) == {f"Anna:{bone}" for bone in BONES}
    np.testing.assert_allclose(clip.marker("Anna:LShin"), walk.marker("LeftLeg"), atol=1e-6)
    found, reference = locate_body(clip), load_body_points(walk.source)
    knee = found.point("l_knee") - found.mid_hip
    assert np.abs(knee - (reference.point("l_knee") - reference.mid_hip)).max() < 0.02, "one is cleaned"
    assert {"l_toe", "r_ankle", "head"} <= set(found.names)


def test_of_a_marker_that_is_there_twice_the_measured_one_is_taken(walk):
    hidden = walk.marker("LeftHand").copy()
    hidden[3:5] = np.nan
    columns = [
        ("Rigid Body", "Club", "Rotation", np.tile([0.0, 0, 0, 1], (walk.n_frames, 1))),
        ("Rigid Body", "Club", "Position", walk.marker("LeftHand")),
        ("Rigid Body Marker", "Club:Marker1", "Position", walk.marker("LeftHand")),
        ("Marker", "Club:Marker1", "Position", hidden),
        ("Marker", "Unlabeled 1001", "Position", walk.marker("Head")),
        ("Bone Marker", "Anna:HeadTop", "Position", walk.marker("Head")),
        ("Marker", "Anna:LKNE", "Position", walk.marker("LeftFoot")),
    ]
    clip = parse_csv(motive("1.23", columns, walk.times), "a.csv")
    assert clip.labels == ("Club:Marker1", "Unlabeled 1001", "Anna:HeadTop", "Anna:LKNE")
    assert np.isnan(clip.marker("Club:Marker1")[3:5]).all()
