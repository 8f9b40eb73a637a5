"""What is up: said by the user, then by the format, then guessed from the posture, which is reported."""

import re

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.mocap import find_body_points, load_body_points, load_clip
from humanoid_control.mocap.formats.bvh import parse_bvh
from test.mocap.formats.test_bvh_dialects import DIALECTS, bvh


@pytest.fixture
def upside_down(tmp_path):
    """The built-in dance on its head, in a format that states no axis."""
    clip = load_clip("dance")
    rows = [",".join(f"{label}_{a}" for label in clip.labels for a in "xyz")]
    rows += [",".join(f"{v:.5f}" for v in frame.ravel()) for frame in clip.positions[::10] * [1, -1, -1]]
    path = tmp_path / "upside_down.csv"
    path.write_text("\n".join(rows))
    return path


def test_the_user_says_what_is_up(upside_down):
    assert load_clip(upside_down, 10.0).up == "" and load_clip(upside_down, 10.0, up="z").up == "+z"
    bodies = {up: load_body_points(upside_down, rate=10.0, up=up) for up in ("", "z", "-z")}
    head = {up: body.point("head")[:, 2].mean() for up, body in bodies.items()}
    assert head["z"] < 0.5 < 1.0 < head["-z"] == head[""]
    assert any("up is -z, guessed from the posture" in w for w in bodies[""].warnings)
    assert not any("up is" in w for w in (*bodies["z"].warnings, *bodies["-z"].warnings))


@pytest.mark.parametrize("wrong", ["w", "+", "zz", "*z", "z+"])
def test_another_word_is_refused(wrong, upside_down):
    with pytest.raises(ConfigError, match="must be x, y, z"):
        load_clip(upside_down, 10.0, up=wrong)


def test_a_built_in_clip_has_its_own():
    with pytest.raises(ClipError, match="leave up out"):
        load_clip("dance", up="z")
    assert load_clip("dance").up == "+z"


def changed(data, root=None, upward=None):
    """The BVH of a person with another rotation of the root [deg], or in axes of which another one points up."""
    head, frames = data.decode().split("Frame Time: 0.01\n")
    rows = [row.split() for row in frames.splitlines()]
    if root is not None:
        rows = [[*row[:3], *root, *row[6:]] for row in rows]
    if upward == "z":
        turn = lambda x, y, z: (x, f"{-float(z):g}", y)  # noqa: E731
        head = re.sub(r"OFFSET (\S+) (\S+) (\S+)", lambda m: "OFFSET " + " ".join(turn(*m.groups())), head)
        rows = [[*turn(*row[:3]), *["0"] * (len(row) - 3)] for row in rows]
    return (head + "Frame Time: 0.01\n" + "\n".join(" ".join(row) for row in rows)).encode()


STANDING = bvh(*DIALECTS["cmu_bvh"])

# A suit whose bones all point along x at zero rotations; the channels of every frame let it stand along y.
SUIT = """HIERARCHY
ROOT Hips { OFFSET 0 94 0 CHANNELS 6 Xposition Yposition Zposition Yrotation Xrotation Zrotation
  JOINT LeftUpLeg { OFFSET 8 0 0 CHANNELS 3 Yrotation Xrotation Zrotation
    JOINT LeftLeg { OFFSET 43 0 0 CHANNELS 3 Yrotation Xrotation Zrotation
      JOINT LeftFoot { OFFSET 43 0 0 CHANNELS 3 Yrotation Xrotation Zrotation End Site { OFFSET 14 0 0 } } } }
  JOINT Spine { OFFSET 0 13 0 CHANNELS 3 Yrotation Xrotation Zrotation
    JOINT Head { OFFSET 45 0 0 CHANNELS 3 Yrotation Xrotation Zrotation End Site { OFFSET 18 0 0 } } } }
MOTION
Frames: 5
Frame Time: 0.01
""" + "\n".join(["0 94 0 0 0 0 0 0 -90 0 0 0 0 0 0 0 0 90 0 0 0"] * 5)


@pytest.mark.parametrize("root", ["", "ROOT Reference { OFFSET 0 0 0 CHANNELS 0\nJOINT Hips {"])
def test_bones_along_one_axis_are_no_posture(root):
    hierarchy, motion = SUIT.split("MOTION")
    text = hierarchy.replace("ROOT Hips {", root) + "}" if root else hierarchy
    lines = re.sub(r" (?=[{}]|OFFSET|CHANNELS|End|JOINT)", "\n", text)
    assert parse_bvh((lines + "\nMOTION" + motion).encode(), "suit.bvh").up == "+y"


def test_bvh_is_y_up_where_nobody_stands():
    """A person on the floor stays there: the hips are as high as the head, and the report says why."""
    lying = find_body_points(parse_bvh(changed(STANDING, root=("0", "88", "0")), "floor.bvh"))
    trunk = lying.point("sternum") - lying.mid_hip
    assert np.abs(trunk[:, 2] / np.linalg.norm(trunk, axis=1)).mean() < 0.5
    assert any("up is +y, as the file states; most of the time the body is along" in w for w in lying.warnings)
    standing = find_body_points(parse_bvh(STANDING, "floor.bvh"))
    assert (standing.point("sternum") - standing.mid_hip)[:, 2].min() > 0.2
    assert not any("up is" in w for w in standing.warnings)


def test_a_skeleton_at_rest_says_which_axis_its_program_means():
    """Blender writes BVH z up, the rest pose too."""
    clip = parse_bvh(changed(STANDING, upward="z"), "blender.bvh")
    assert clip.up == "+z" and parse_bvh(STANDING, "usual.bvh").up == "+y"
    body = find_body_points(clip)
    assert (body.point("sternum") - body.mid_hip)[:, 2].min() > 0.2
