"""BVH: forward kinematics against an independent calculation, any order of joints and channels, the CMU traps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.bvh import (
    BvhJoint,
    joint_positions,
    parse_bvh,
    parse_hierarchy,
    parse_motion,
    rest_frames,
)
from humanoid_control.mocap.formats.common import CMU_UNIT

SKELETON = """HIERARCHY
ROOT Hips {
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftFoot { OFFSET 0 -90 0 CHANNELS 3 Yrotation Xrotation Zrotation
    End Site { OFFSET 0 0 15 } }
  JOINT Head { OFFSET 0 60 5
    CHANNELS 3 Xrotation Yrotation Zrotation
    End Site { OFFSET 0 10 0 } }
}
"""


def bvh(frames, skeleton=SKELETON, step="0.01", count=None):
    # The brace style above puts two keywords on one line, which real files do not.
    skeleton = skeleton.replace(" CHANNELS", "\nCHANNELS")
    rows = "\n".join(" ".join(str(value) for value in row) for row in frames)
    return f"{skeleton}MOTION\nFrames: {count or len(frames)}\nFrame Time: {step}\n{rows}\n".encode()


def still(n=4):
    return [[0, 95, 0] + [0] * 9] * n


# --- An independent forward kinematics: plain Python, one frame, one recursion, no numpy.


def scalar_rotation(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    if axis == "X":
        return [[1, 0, 0], [0, c, -s], [0, s, c]]
    if axis == "Y":
        return [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    return [[c, -s, 0], [s, c, 0], [0, 0, 1]]


def times(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def turned(a, v):
    return [sum(a[i][k] * v[k] for k in range(3)) for i in range(3)]


def scalar_kinematics(data):
    """Joint name to position in file units, of every frame, straight from the text."""
    words = data.decode().split()
    frames_at = words.index("MOTION")
    numbers = [float(word) for word in words[frames_at + 6 :]]
    n_frames = int(words[frames_at + 2])
    width = len(numbers) // n_frames
    results = []
    for frame in range(n_frames):
        values = iter(numbers[frame * width : (frame + 1) * width])
        cursor = iter(words[1:frames_at])
        found = {}

        def joint(name, origin, R, cursor=cursor, values=values, found=found):
            assert next(cursor) == "{"
            assert next(cursor) == "OFFSET"
            local = [float(next(cursor)) for _ in range(3)]
            rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
            word = next(cursor)
            if word == "CHANNELS":
                for channel in [next(cursor) for _ in range(int(next(cursor)))]:
                    value = next(values)
                    if channel.endswith("position"):
                        local["XYZ".index(channel[0])] = value
                    else:
                        rotation = times(rotation, scalar_rotation(channel[0], value))
                word = next(cursor)
            here = [o + d for o, d in zip(origin, turned(R, local), strict=True)]
            found[name] = here
            R = times(R, rotation)
            while word != "}":
                child = next(cursor)
                joint(f"{name}_end" if word == "End" else child, here, R)
                word = next(cursor)

        assert next(cursor) == "ROOT"
        joint(next(cursor), [0, 0, 0], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        results.append(found)
    return results


@pytest.mark.parametrize("seed", range(3))
def test_forward_kinematics_agree_with_an_independent_one(seed):
    rng = np.random.default_rng(seed)
    data = bvh(rng.uniform(-180, 180, (4, 12)).round(3).tolist())
    clip = parse_bvh(data, "x.bvh")
    scale = 0.01  # centimetres: bones of 90 and 60
    for frame, expected in enumerate(scalar_kinematics(data)):
        for name, position in expected.items():
            np.testing.assert_allclose(clip.marker(name)[frame], np.array(position) * scale, atol=1e-9)


@pytest.mark.parametrize("name", ["05_02", "02_05"])
def test_forward_kinematics_of_real_files(mocap, name):
    path = mocap(f"cmu_bvh/{name}.bvh")
    head, _, frames = path.read_text().partition("Frames:")
    lines = frames.split("\n")
    chosen = lines[2 + 300 : 2 + 304]
    short = f"{head}Frames: 4\n{lines[1]}\n" + "\n".join(chosen) + "\n"
    clip = load_clip(path)
    for offset, expected in enumerate(scalar_kinematics(short.encode())):
        for label, position in expected.items():
            # The clip lacks the rest pose, so its frame 299 is the file's frame 300.
            np.testing.assert_allclose(clip.marker(label)[299 + offset], np.array(position) * CMU_UNIT, atol=1e-9)


def test_labels_are_joints_and_end_sites():
    assert parse_bvh(bvh(still()), "x.bvh").labels == ("Hips", "LeftFoot", "LeftFoot_end", "Head", "Head_end")


def test_position_channel_replaces_its_part_of_the_offset():
    joints = [
        BvhJoint("Root", -1, np.zeros(3), ["Zrotation"]),
        BvhJoint("Tip", 0, np.array([1.0, 2.0, 3.0]), ["Yposition"]),
    ]
    positions = joint_positions(joints, np.array([[90.0, 7.0]]))
    np.testing.assert_allclose(positions[0, 1], [-7.0, 1.0, 3.0], atol=1e-12)


def test_order_of_the_channels_matters():
    tip = BvhJoint("Tip", 0, np.array([0.0, 0.0, 1.0]), [])
    values = np.array([[90.0, 90.0]])
    xy = joint_positions([BvhJoint("Root", -1, np.zeros(3), ["Xrotation", "Yrotation"]), tip], values)
    yx = joint_positions([BvhJoint("Root", -1, np.zeros(3), ["Yrotation", "Xrotation"]), tip], values)
    np.testing.assert_allclose(xy[0, 1], [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(yx[0, 1], [0.0, -1.0, 0.0], atol=1e-12)


def test_cmu_clip_is_in_metres_and_without_the_rest_pose(mocap):
    clip = load_clip(mocap("cmu_bvh/05_02.bvh"))
    assert clip.rate == 120.0  # stated as 0.0083333 s
    assert clip.n_frames == 1124 - 1
    assert any("rest pose" in warning for warning in clip.warnings)
    np.testing.assert_allclose(clip.marker("Hips")[0], np.array([4.3228, 16.5929, -15.2362]) * CMU_UNIT, atol=1e-9)
    steps = np.linalg.norm(np.diff(clip.positions, axis=0), axis=2).max()
    assert steps < 0.1  # 12 m/s


def read(path):
    """Joints and channel values of a file."""
    hierarchy, _, motion = path.read_text().partition("MOTION")
    joints = parse_hierarchy(hierarchy, "x.bvh")
    return joints, parse_motion(motion, sum(len(joint.channels) for joint in joints), "x.bvh")[1]


@pytest.mark.parametrize("name", ["02_01", "02_05", "05_02", "07_01"])
@pytest.mark.parametrize("speed", [1, 3, 8])
def test_rest_pose_is_dropped_however_fast_the_clip_is_and_wherever_it_begins(mocap, name, speed):
    joints, values = read(mocap(f"cmu_bvh/{name}.bvh"))
    for start in range(1, len(values) - 40 * speed, 30 * speed):
        chosen = values[[0, *range(start, min(len(values), start + 120 * speed), speed)]]
        chosen[0, :3] = chosen[1, :3]
        positions = joint_positions(joints, chosen)
        n_rest, jump = rest_frames(joints, chosen, positions)
        assert n_rest == 1
        assert jump == pytest.approx(np.linalg.norm(positions[1] - positions[0], axis=1).max())
        assert rest_frames(joints, chosen[1:], positions[1:]) == (0, 0.0)


def waving(n=8, start=20.0, step=2.0):
    """Frames in which foot and head turn about all axes, farther in every frame."""
    return [[0, 95, 0] + [start + step * k] * 3 + [start + step * k] * 6 for k in range(n)]


@pytest.mark.parametrize("held", [1, 3])
def test_rest_pose_that_is_held_is_dropped_whole_and_said(held):
    clip = parse_bvh(bvh(still(held) + waving()), "x.bvh")
    assert clip.n_frames == 8
    which = "frame 0 is" if held == 1 else "frames 0 to 2 are"
    assert any(f"{which} a rest pose, 0." in w and f"m from frame {held}: dropped" in w for w in clip.warnings)


@pytest.mark.parametrize(
    "frames",
    [
        waving(start=0.0, step=2.0),  # evenly away from the rest pose
        still(3) + waving(start=0.5, step=1.0),  # held, then slowly away
        still(1) + waving(start=0.01, step=0.0001, n=20),  # nobody sees that
        waving(),  # far from the rest pose all the time
        still(8),  # never leaves it
    ],
)
def test_motion_that_begins_in_the_rest_pose_is_kept(frames):
    assert parse_bvh(bvh(frames), "x.bvh").n_frames == len(frames)


@pytest.mark.parametrize(("at_zero", "frames"), [(8, 8), (6, 8), (5, 9), (0, 9)])
def test_a_rest_pose_has_three_quarters_of_the_rotations_that_turn_at_zero(at_zero, frames):
    """Of eight; the ninth never turns and does not count."""
    first = [0, 95, 0] + [0.0] * at_zero + [30.0] * (8 - at_zero) + [10.0]
    assert parse_bvh(bvh([first] + [[*frame[:-1], 10.0] for frame in waving(8)]), "x.bvh").n_frames == frames


def test_outlier_in_a_first_frame_that_is_not_at_zero_is_dropped():
    odd = [[0, 95, 0] + [170.0] * 9]
    assert parse_bvh(bvh(odd + waving(60, step=0.1)), "x.bvh").n_frames == 60


def test_ordinary_first_frame_is_kept():
    frames = [[0, 95, 0.5 * t] + [0] * 9 for t in range(6)]
    clip = parse_bvh(bvh(frames), "x.bvh")
    assert clip.n_frames == 6
    assert len(clip.warnings) == 1  # only the unit


@pytest.mark.parametrize(("unit", "per_metre"), [("m", 1), ("cm", 100), ("mm", 1000), ("inch", 1 / 0.0254)])
def test_unit_is_found_from_the_bones_in_any_pose(unit, per_metre):
    # Ankle 0.9 m below the hips, head 0.6 m above; lying on the floor.
    skeleton = (
        SKELETON.replace("0 -90 0", f"0 {-0.9 * per_metre} 0")
        .replace("0 60 5", f"0 {0.6 * per_metre} 0")
        .replace("0 0 15", f"0 0 {0.15 * per_metre}")
        .replace("0 10 0", f"0 {0.1 * per_metre} 0")
    )
    clip = parse_bvh(bvh([[0, 0, 0, 0, 90] + [0] * 7] * 3, skeleton), "x.bvh")
    assert f"read as {unit} " in clip.warnings[0]
    assert np.linalg.norm(clip.marker("Head") - clip.marker("LeftFoot"), axis=1) == pytest.approx(1.5)


def test_bones_above_both_ends_do_not_count_for_the_unit():
    # MotionBuilder puts a reference joint, here 3 m away, above the hips.
    skeleton = SKELETON.replace("ROOT Hips {", "ROOT Reference { OFFSET 0 0 0 CHANNELS 0\nJOINT Hips {")
    skeleton = skeleton.replace("CHANNELS 0", "CHANNELS 3 Xrotation Yrotation Zrotation").rstrip() + "\n}\n"
    clip = parse_bvh(bvh([[0, 0, 0, 300, 95, 0] + [0] * 9] * 3, skeleton), "x.bvh")
    assert "of 150.2 read as cm" in clip.warnings[0]


def test_hierarchy_in_another_style():
    lines = ["HIERARCHY", "ROOT  Hips", "{", "\tOFFSET\t0 1e-1 -2", "\tCHANNELS 1 XROTATION", "\tEnd Site", "{"]
    text = "\r\n".join([*lines, "OFFSET 1 2 3", "}", "}"])
    root, tip = parse_hierarchy(text, "x.bvh")
    assert (root.name, root.parent, root.offset.tolist(), root.channels) == ("Hips", -1, [0, 0.1, -2], ["Xrotation"])
    assert (tip.name, tip.parent, tip.offset.tolist(), tip.channels) == ("Hips_end", 0, [1, 2, 3], [])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"ROOT Hips", "must begin with HIERARCHY"),
        (SKELETON.replace(" CHANNELS", "\nCHANNELS").encode(), "ends before MOTION"),
        (bvh(still(), count=9), "need 108 numbers, the file contains 48"),
        (bvh(still(), step="0"), "Frame Time"),
        (bvh(still(), step="soon"), "Frame Time"),
        (bvh(still(), step="8.3333"), "Frame Time is 8.3333 s: is it 120 Hz in milliseconds, or 8.333 Hz?"),
        (bvh([[0, 95, "x"] + [0] * 9] * 3), "the frames"),
        (bvh([[0, 95, "nan"] + [0] * 9] * 3), "the frames"),
        (bvh(still(), SKELETON.replace("Zrotation Xrotation", "Zrotation Wrotation")), "CHANNELS of 'Hips'"),
        (bvh(still(), SKELETON.replace("CHANNELS 6", "CHANNELS 5")), "CHANNELS of 'Hips'"),
        (bvh(still(), SKELETON.replace("Zrotation Xrotation", "Zrotation Zrotation")), "names a channel twice"),
        (bvh(still(), SKELETON.replace("OFFSET 0 60 5", "OFFSET 0 60")), "OFFSET of 'Head' has 2 numbers"),
        (bvh(still(), SKELETON.replace("0 60 5", "0 many 5")), "OFFSET of 'Head'"),
        (bvh(still(), SKELETON.rstrip().removesuffix("}")), "brace is missing"),
        (bvh(still(), SKELETON.replace("JOINT Head", "} JOINT Head")), "damaged|not connected"),
        (bvh(still(), SKELETON.replace("JOINT Head", "JIONT Head")), "is invalid"),
        (bvh(still(), SKELETON.replace("0 -90 0", "0 -90000 0")), "implausible for a person"),
        (bvh(still(1)), "1 frame"),
    ],
)
def test_damage_is_named_in_one_line(data, says):
    with pytest.raises(ClipError, match=says) as caught:
        parse_bvh(data, "x.bvh")
    assert str(caught.value).isprintable()
