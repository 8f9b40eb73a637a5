"""ASF and AMC files: which skeleton belongs to a motion, and damage is named in one line."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.mocap import clean, find_body_points, load_clip
from humanoid_control.mocap.formats.asf_amc import parse_amc
from test.capture.amc_person import ASF, amc, parsed, still


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
    with pytest.raises(ClipError, match=r"its skeleton is missing: put 07.asf into the same folder"):
        load_clip(folder / "07_02.amc")


def test_several_foreign_skeletons_are_not_guessed(folder):
    for name in ("08.asf", "09.asf"):
        (folder / name).write_text(ASF)
    with pytest.raises(ClipError, match=r"which skeleton is its own\? 08.asf, 09.asf are there, 07.asf is not"):
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
        (":hierarchy", ":nothing", "no section :hierarchy"),
        (":bonedata", ":bones", "no section :bonedata"),
        ("    thigh shin\n", "    thigh shinn\n", "unknown bone 'shinn': did you mean shin"),
        ("    shin foot\n", "", "bone 'foot' hangs on nothing"),
        ("    shin foot\n", "    shin foot thigh\n", "names the bone 'thigh' twice"),
        ("name head", "name shin", "bone 'shin' occurs more than once"),
        ("name head", "name", "a bone without a name"),
        ("     length 5.0\n", "", "bone 'head' has no length"),
        ("length 5.0", "length five", "bone 'head': length"),
        ("length 5.0", "length -5", "bone 'head': length -5"),
        ("direction 0 1 0", "direction 0 1", "direction has 2 numbers, not 3"),
        ("direction 0 1 0", "direction 0 0 0", "bone 'head': length 5.0 along"),
        ("axis 5 6 7 YZX", "axis 5 6 7 YYX", "'YYX' is no order of X, Y and Z"),
        ("dof ry\n", "dof l\n", "dof 'l' is not read"),
        ("order TZ TX TY RY RZ RX", "order TZ TX TW", "order 'tz tx tw'"),
        ("length 0.45", "length zero", "length in :units"),
        ("length 14.0", "length 14000", "no person"),
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
        (b"head 0.0", b"head x", "not a number"),
        (b"head 0.0", b"head nan", "not a number"),
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
    with pytest.raises(ClipError, match=r"cut off|values|not a number") as caught:
        load_clip(tmp_path / "11_01.amc")
    assert str(caught.value).isprintable()


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
