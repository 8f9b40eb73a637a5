"""ASF and AMC: bones are where an independent program puts them, in every unit; damage is named in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest

from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.mocap import clean, find_body_points, load_clip
from humanoid_control.mocap.formats.asf_amc import parse_amc
from humanoid_control.mocap.formats.common import CMU_UNIT

# Bones in another order than the hierarchy, dof and axis orders of every kind, a length unit of 1/0.45 inch.
ASF = """# comment
:version 1.10
:name TEST
:units
  mass 1.0
  length 0.45
  angle deg
:root
   order TZ TX TY RY RZ RX
   axis XZY
   position 1 2 3
   orientation 10 20 -30
:bonedata
  begin
     id 2
     name shin
     direction 0 -2 0
     length 14.0
     axis 15 -25 35 ZXY
    dof rz rx
    limits (-10 170)
           (-10 170)
  end
  begin
     id 1
     name thigh
     direction 0.34202 -0.939693 0
     length 7.0
     axis 0 0 20 XYZ
    dof rx ry rz
  end
  begin
     id 3
     name foot
     direction 0 0 1
     length 2.0
     axis 0 0 0 XYZ
  end
  begin
     id 4
     name head
     direction 0 1 0
     length 5.0
     axis 5 6 7 YZX
    dof ry
  end
:hierarchy
  begin
    root head thigh
    thigh shin
    shin foot
  end
"""


ORDER = {"root": 6, "thigh": 3, "shin": 2, "head": 1}


def amc(frames, head=":FULLY-SPECIFIED\n:DEGREES\n"):
    lines = []
    for number, frame in enumerate(frames, start=1):
        lines += [str(number), *(f"{bone} {' '.join(str(v) for v in values)}" for bone, values in frame.items())]
    return ("#!OML:ASF x\n" + head + "\n".join(lines) + "\n").encode()


def parsed(frames, asf=ASF, **more):
    return parse_amc(amc(frames), "x.amc", asf.encode(), "x.asf", 120.0, **more)


def still(n=3):
    return [{bone: [0.0] * k for bone, k in ORDER.items()}] * n


def random_frames(rng, n=3, size=180.0):
    return [{bone: (size * rng.uniform(-1, 1, k)).round(4).tolist() for bone, k in ORDER.items()} for _ in range(n)]


def turn(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[i, i], R[j, j], R[j, i], R[i, j] = c, c, s, -s
    return R


def turned(order, angles):
    """Fixed axes, the first turn first: the last one stands leftmost."""
    R = np.eye(3)
    for axis, angle in zip(order, angles, strict=True):
        R = turn(axis, angle) @ R
    return R


def by_hand(frame):
    tz, tx, ty, ry, rz, rx = frame["root"]
    C = turned("xzy", [10, -30, 20])
    R_root = C @ turned("yzx", [ry, rz, rx]) @ C.T
    p_root = np.array([1 + tx, 2 + ty, 3 + tz])
    C = turned("xyz", [0, 0, 20])
    R_thigh = R_root @ C @ turned("xyz", frame["thigh"]) @ C.T
    knee = p_root + R_thigh @ np.array([0.34202, -0.939693, 0]) / math.hypot(0.34202, 0.939693) * 7
    C = turned("zxy", [35, 15, -25])
    R_shin = R_thigh @ C @ turned("zx", frame["shin"]) @ C.T
    ankle = knee + R_shin @ np.array([0, -14.0, 0])
    C = turned("yzx", [6, 7, 5])
    R_head = R_root @ C @ turned("y", frame["head"]) @ C.T
    return {
        "root": p_root, "thigh": p_root, "head": p_root, "head_end": p_root + R_head @ np.array([0, 5.0, 0]),
        "shin": knee, "foot": ankle, "foot_end": ankle + R_shin @ np.array([0, 0, 2.0]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_forward_kinematics_agree_with_an_independent_one(seed):
    frames = random_frames(np.random.default_rng(seed))
    clip = parsed(frames)
    assert set(clip.labels) == set(by_hand(frames[0]))
    for number, frame in enumerate(frames):
        for label, position in by_hand(frame).items():
            np.testing.assert_allclose(clip.marker(label)[number], position * CMU_UNIT, atol=1e-9)


def test_bone_whose_values_are_left_out_rests():
    frames = random_frames(np.random.default_rng(9))
    resting = [{**frame, "shin": [0, 0], "thigh": [0, 0, 0]} for frame in frames]
    sparse = [{bone: values for bone, values in frame.items() if bone not in ("shin", "thigh")} for frame in frames]
    np.testing.assert_allclose(parsed(sparse).positions, parsed(resting).positions, atol=1e-12)


def test_radians_and_degrees_give_the_same_clip():
    frames = random_frames(np.random.default_rng(5))
    angles = {"root": slice(3, 6), "thigh": slice(0, 3), "shin": slice(0, 2), "head": slice(0, 1)}
    in_rad = [{bone: list(values) for bone, values in frame.items()} for frame in frames]
    for frame in in_rad:
        for bone, which in angles.items():
            frame[bone][which] = np.radians(frame[bone][which]).tolist()
    clip = parse_amc(amc(in_rad, ":RADIANS\n"), "x.amc", ASF.encode(), "x.asf", 120.0)
    np.testing.assert_allclose(clip.positions, parsed(frames).positions, atol=1e-9)


def test_windows_line_ends_do_not_matter():
    frames = random_frames(np.random.default_rng(2))
    data, skeleton = (text.replace(b"\n", b"\r\n") for text in (amc(frames), ASF.encode()))
    clip = parse_amc(data, "x.amc", skeleton, "x.asf", 120.0)
    np.testing.assert_array_equal(clip.positions, parsed(frames).positions)


@pytest.mark.parametrize(("length", "unit"), [("0.45", CMU_UNIT), ("0.5", 0.0508)])
def test_length_unit_of_the_file_is_in_inches(length, unit):
    clip = parsed(still(), ASF.replace("length 0.45", f"length {length}"))
    assert np.linalg.norm(clip.marker("shin") - clip.marker("foot"), axis=1) == pytest.approx(14 * unit)
    assert clip.warnings == ()


@pytest.mark.parametrize(("stated", "says"), [("length 1.0", "implausible for a person"), ("mass 2", "states no unit")])
def test_length_unit_that_fits_nobody_is_replaced_by_body_size(stated, says):
    # Bones from ankle to head: 21 units, a person in CMU units only.
    clip = parsed(still(), ASF.replace("length 0.45", stated))
    assert says in clip.warnings[-1]
    assert np.linalg.norm(clip.marker("shin") - clip.marker("foot"), axis=1) == pytest.approx(14 * CMU_UNIT)


def test_real_motion_of_the_database(mocap):
    clip = load_clip(mocap("cmu_asf/11_01.amc"))
    assert (clip.n_frames, clip.rate) == (597, 120.0)
    assert "120 Hz is assumed" in clip.warnings[0]
    shin = np.linalg.norm(clip.marker("ltibia") - clip.marker("lfoot"), axis=1)
    assert shin == pytest.approx(7.80828 * CMU_UNIT)
    np.testing.assert_allclose(clip.marker("root")[0], np.array([12.2047, 17.4653, -40.3148]) * CMU_UNIT, atol=1e-9)
    assert load_clip(mocap("cmu_asf/11_01.amc"), rate=60.0).rate == 60.0
    assert -0.1 < clip.marker("ltoes")[:, 1].min() < 0.1  # y is up in that file, and the floor at zero


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "07_02.amc").write_bytes(amc(still()))
    return tmp_path


@pytest.mark.parametrize("name", ["07.asf", "07_02.asf", "07.ASF", "anything.asf"])
def test_skeleton_is_found_beside_the_motion(folder, name):
    (folder / name).write_text(ASF)
    assert load_clip(folder / "07_02.amc").n_frames == 3


def test_skeleton_of_the_same_subject_is_preferred(folder):
    (folder / "07.asf").write_text(ASF)
    (folder / "0.asf").write_text("damaged")
    (folder / "08.asf").write_text("damaged")
    assert load_clip(folder / "07_02.amc").n_frames == 3


def test_missing_skeleton_is_named(folder):
    with pytest.raises(ClipError, match=r"skeleton not found: put 07.asf into the same folder"):
        load_clip(folder / "07_02.amc")


def test_several_foreign_skeletons_are_not_guessed(folder):
    for name in ("08.asf", "09.asf"):
        (folder / name).write_text(ASF)
    with pytest.raises(ClipError, match=r"cannot choose a skeleton: found 08.asf, 09.asf, but not 07.asf"):
        load_clip(folder / "07_02.amc")


def test_skeleton_alone_is_no_clip(folder):
    (folder / "07.asf").write_text(ASF)
    with pytest.raises(ClipError, match="skeleton without motion"):
        load_clip(folder / "07.asf")


def test_empty_skeleton_is_called_empty(folder):
    (folder / "07.asf").write_text("")
    with pytest.raises(ClipError, match=r"07.asf: is empty"):
        load_clip(folder / "07_02.amc")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (":hierarchy", ":nothing", "section :hierarchy is missing"),
        (":bonedata", ":bones", "section :bonedata is missing"),
        ("    thigh shin\n", "    thigh shinn\n", "unknown bone 'shinn': did you mean shin"),
        ("    shin foot\n", "", "bone 'foot' has no parent"),
        ("    shin foot\n", "    shin foot thigh\n", "names the bone 'thigh' twice"),
        ("name head", "name shin", "bone 'shin' occurs more than once"),
        ("name head", "name", "a bone without a name"),
        ("     length 5.0\n", "", "bone 'head' has no length"),
        ("length 5.0", "length five", "bone 'head': length"),
        ("length 5.0", "length -5", "bone 'head': length -5"),
        ("direction 0 1 0", "direction 0 1", "direction has 2 numbers, not 3"),
        ("direction 0 1 0", "direction 0 0 0", "bone 'head': length 5.0 along"),
        ("axis 5 6 7 YZX", "axis 5 6 7 YYX", "'YYX' is not a permutation of X, Y, Z"),
        ("dof ry\n", "dof l\n", "dof 'l' is not supported"),
        ("order TZ TX TY RY RZ RX", "order TZ TX TW", "order 'tz tx tw'"),
        ("length 0.45", "length zero", "length in :units"),
        ("length 14.0", "length 14000", "implausible for a person"),
        ("  end\n:hierarchy", ":hierarchy", "ends before its last 'end'"),
    ],
)
def test_damage_of_the_skeleton_is_named_in_one_line(old, new, says):
    assert old in ASF
    with pytest.raises(ClipError) as caught:
        parsed(still(), ASF.replace(old, new, 1))
    assert says in str(caught.value)
    assert str(caught.value).startswith("x.asf: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"head 0.0", b"haed 0.0", "no bone 'haed': the nearest are head"),
        (b"head 0.0", b"tail 0.0", "no bone 'tail'"),
        (b"shin 0.0 0.0", b"shin 0.0", "bone 'shin' has 1 values, its skeleton 2"),
        (b"head 0.0", b"head x", "non-numeric"),
        (b"head 0.0", b"head nan", "non-numeric"),
        (b"head 0.0\n2", b"2", "frame 2 of 3 differs in 'head'"),
        (b"\n1\n", b"\n", "comes before the number of the first frame"),
    ],
)
def test_damage_of_the_motion_is_named_in_one_line(old, new, says):
    with pytest.raises(ClipError) as caught:
        parse_amc(amc(still()).replace(old, new, 1), "x.amc", ASF.encode(), "x.asf")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x.amc: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("frame", [b"\n2\r", b"\n300\r", b"\n597\r"])
def test_motion_cut_off_within_a_frame_is_an_error(mocap, tmp_path, frame):
    # A cut between two frames cannot be noticed: the format states no number of frames.
    (tmp_path / "11.asf").write_bytes(mocap("cmu_asf/11.asf").read_bytes())
    data = mocap("cmu_asf/11_01.amc").read_bytes()
    (tmp_path / "11_01.amc").write_bytes(data[: data.index(frame) + 200])
    with pytest.raises(ClipError, match=r"cut off|values|non-numeric|truncated") as caught:
        load_clip(tmp_path / "11_01.amc")
    assert str(caught.value).isprintable()


@pytest.mark.nightly
def test_random_damage_ends_in_a_clip_or_a_message(mocap, tmp_path):
    motion = mocap("cmu_asf/11_01.amc").read_bytes()
    files = {"11.asf": mocap("cmu_asf/11.asf").read_bytes(), "11_01.amc": motion[: motion.index(b"\n30\r") + 1]}
    rng = np.random.default_rng(5)
    read = 0
    for trial in range(150):
        damaged = ("11.asf", "11_01.amc")[trial % 2]
        for name, content in files.items():
            data = bytearray(content)
            for at in rng.integers(0, len(data), (1, 5, 40)[trial % 3]) if name == damaged else ():
                data[at] = rng.integers(256) if trial % 4 == 0 else rng.choice(list(b"0.-e\tx :"))
            (tmp_path / name).write_bytes(data)
        try:
            find_body_points(clean(load_clip(tmp_path / "11_01.amc"))[0])
            read += 1
        except HumanoidError as error:
            assert str(error).isprintable() and str(error)
    assert 0 < read < 150
