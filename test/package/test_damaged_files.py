"""Damaged and hostile files: each ends in one line that names the file, the place in it and what was seen, or loads."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from mcap.writer import Writer

from humanoid_control.documents import load_arrays, read_yaml
from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.files import schema_file
from humanoid_control.robots import load_robot
from humanoid_control.simulation.contact.ground_recipe import ground_of
from test.good_files import KINDS, ROBOT

HERE = Path(__file__).resolve().parents[1]


@pytest.mark.nightly
def test_damaged_files_of_every_kind_load_or_are_refused_in_one_line():
    """A short run of `python test/fuzz_files.py -n 10000`: other seeds there find what this one does not."""
    count = 10 * len(KINDS)
    command = [sys.executable, str(HERE / "fuzz_files.py"), "-n", str(count), "--seed", "3", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert f"{count} files, 0 failures" in done.stdout
    read = {m[1]: int(m[2]) for m in re.finditer(r"(?m)^(.*?) +loaded +(\d+) ", done.stdout)}
    assert set(read) == set(KINDS) and sum(read.values()) > 30, "files that all are refused try no reader to its end"


def test_the_command_reports_what_a_reader_does_wrong(tmp_path, monkeypatch):
    from test import fuzz_files

    def read(path):
        raise {"a": ZeroDivisionError("x"), "b": HumanoidError("one\ntwo"), "c": HumanoidError("no name")}[path.name]

    monkeypatch.setattr(fuzz_files, "KINDS", {k: KINDS["csv"].__class__(None, (), k, read) for k in "abc"})
    assert "ZeroDivisionError" in fuzz_files.judge("a", tmp_path)
    assert "without the name" in fuzz_files.judge("b", tmp_path) and "without the name" in fuzz_files.judge(
        "c", tmp_path
    )


def good(kind, folder):
    KINDS[kind].make(folder)
    return folder / KINDS[kind].asked


def refused(call, *args):
    """The message of the error, one line of moderate length."""
    with pytest.raises(HumanoidError) as caught:
        call(*args)
    text = str(caught.value)
    assert text.isprintable() and len(text) <= 1100
    return text


# -------- YAML

BOMB = "schema: x\na0: &a0 [1, 2]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 12)
)
HOSTILE = {
    "nested lists": ("[" * 200_000, "nested more than 50 deep (line 1)"),
    "nested mappings": ("a: {" * 100_000, "nested more than 50 deep"),
    "nested rows": ("- " * 100_000, "nested more than 50 deep"),
    "aliases of aliases": (BOMB, "more than 200000 values"),
    "alias of itself": ("schema: x\na: &a [1, *a]", "the alias '*a' refers to itself (line 2)"),
    "key twice": ("schema: x\nlink: a\nlink: b", "the key 'link' appears twice (line 3)"),
    "key twice in a row": ("schema: x\nrows: [{a: 1, a: 2}]", "the key 'a' appears twice (line 2)"),
    "no date": ("schema: x\nat: 2001-99-99", "'2001-99-99' is not readable as timestamp (line 2)"),
    "no integer": ("schema: x\nat: !!int ten", "'ten' is not readable as int (line 2)"),
    "too many digits": ("schema: x\nat: " + "9" * 5000, "is not readable as int (line 2)"),
    "utf-16": ("schema: x".encode("utf-16"), "not a readable file of tests"),
    "binary": (bytes(range(128, 256)), "not a readable file of tests"),
    "two documents": ("schema: x\n---\nschema: x", "but found another document (line 2)"),
    "empty": ("", "the first key must be 'schema: x'"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_yaml_file_is_refused_with_the_line(case, tmp_path):
    content, says = HOSTILE[case]
    path = tmp_path / "a.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    begin = time.process_time()
    text = refused(schema_file, path, "x", "file of tests")
    assert says in text and str(path) in text and time.process_time() - begin < 2.0


def test_aliases_and_merged_keys_that_harm_nobody_are_read(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("leg: &leg {a: 1, b: 2}\nleft: *leg\nright: {<<: *leg, b: 3}\n")
    assert read_yaml(path) == {"leg": {"a": 1, "b": 2}, "left": {"a": 1, "b": 2}, "right": {"a": 1, "b": 3}}


def test_a_file_larger_than_anybody_writes_is_not_read(tmp_path):
    path = tmp_path / "a.yaml"
    with path.open("wb") as f:
        f.truncate(10**9)
    assert "larger than 20 MB" in refused(schema_file, path, "x", "file of tests")


# -------- Robots

URDF_FAULTS = {
    "mass of NaN": ('mass value="3.0"', 'mass value="nan"', "link 'l_thigh'.*mass"),
    "negative mass": ('mass value="3.0"', 'mass value="-3"', "link 'l_thigh' has mass -3"),
    "inertia of words": ('ixx="0.05"', 'ixx="much"', "ixx of its <inertia> is not a number, got 'much'"),
    "infinite inertia": ('ixx="0.05"', 'ixx="inf"', "ixx of its <inertia> must be at most"),
    "radius of NaN": ('radius="0.05"', 'radius="nan"', "radius of its <cylinder> is not a number, got 'nan'"),
    "negative radius": (
        'radius="0.05"',
        'radius="-0.05"',
        "radius of its <cylinder> must not be negative, got '-0.05'",
    ),
    "negative length": ('length="0.3"', 'length="-0.3"', "length of its <cylinder> must not be negative"),
    "box of two": ('size="0.2 0.3 0.2"', 'size="0.2 0.3"', "size of its <box> must be three numbers"),
    "box of NaN": ('size="0.2 0.3 0.2"', 'size="0.2 nan 0.2"', "size of its <box> must be three numbers"),
    "far away": ('xyz="0 0 -0.4"', 'xyz="0 0 -1e300"', "joint 'l_knee': xyz of its <origin> must be at least -1000"),
    "other digits": ('xyz="0 0 -0.4"', 'xyz="0 0 1_0"', "xyz of its <origin> must be three numbers, got '0 0 1_0'"),
    "no axis": ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>', "joint 'neck': its axis must not be zero"),
    "limit of NaN": ('upper="1.8"', 'upper="nan"', "upper of its <limit> is not a number"),
    "negative speed": ('velocity="4"', 'velocity="-4"', "velocity of its <limit> must not be negative"),
    "mimic of words": (
        'multiplier="0.1"',
        'multiplier="half"',
        "joint 'lip': multiplier of its <mimic> is not a number",
    ),
    "mimic of NaN": ('offset="0.01"', 'offset="nan"', "offset of its <mimic> is not a number"),
    "mimic itself": ('mimic joint="jaw"', 'mimic joint="lip"', "joint 'lip' mimics itself"),
    "nameless joint": ('joint name="neck"', 'joint name=" "', "a joint has no name"),
    "deep": ('<link name="lip">', "<a>" * 3000 + "</a>" * 3000 + '<link name="lip">', "nested more than 50 deep"),
    "entities": (
        '<robot name="small">',
        '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">'.replace("&a0;", "&a;") for k in range(1, 12))
        + ']><robot name="&a11;">',
        "XML error",
    ),
}


@pytest.mark.parametrize("case", URDF_FAULTS)
def test_a_fault_of_a_urdf_is_refused_by_name(case, tmp_path):
    old, new, says = URDF_FAULTS[case]
    path = good("urdf", tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace('<?xml version="1.0"?>', "").replace(old, new, 1))
    text = refused(load_robot, path)
    assert re.search(says, text) and str(path) in text


def test_an_inertia_that_is_written_in_part_keeps_its_mass(tmp_path, capfd):
    path = good("urdf", tmp_path)
    whole = load_robot(path).mass
    text = path.read_text()
    path.write_text(text.replace('ixx="0.05" iyy="0.05" izz="0.01" ixy="0" ixz="0" iyz="0"', 'ixx="0.05"'))
    assert path.read_text() != text and load_robot(path).mass == pytest.approx(whole)
    assert capfd.readouterr().err == ""


def test_a_joint_that_others_mimic_keeps_them_within_their_ranges(tmp_path):
    path = good("urdf", tmp_path)
    path.write_text(path.read_text().replace('multiplier="0.1"', 'multiplier="-0.4"'))
    robot = load_robot(path)
    ((follower, leader, multiplier, offset),) = robot.mimic
    assert (robot.joint_names[follower], robot.joint_names[leader], multiplier, offset) == ("lip", "jaw", -0.4, 0.01)
    ends = multiplier * np.array([robot.lower[leader], robot.upper[leader]]) + offset
    assert sorted(ends) == pytest.approx([-0.1, 0.1]) and robot.upper[leader] == pytest.approx(0.275)


def test_a_limit_without_end_is_none_and_torques_stay_finite(tmp_path):
    path = good("urdf", tmp_path)
    path.write_text(path.read_text().replace('upper="1.8"', 'upper="inf"').replace('effort="80"', 'effort="1e300"'))
    robot = load_robot(path)
    assert robot.upper.max() == np.inf and np.isfinite(robot.effort).all()


ROBOT_FAULTS = {
    "height: 1.6": ("height: -2", "'height' must be above 0"),
    "root_rpy: [0, 0, 0]": ("root_rpy: [0, .nan, 0]", "'root_rpy'"),
    "root_height: {neutral: 0.0}": ("root_height: {neutral: .inf}", "root_height: 'neutral' must be a number"),
    "{l_knee: 0.3, r_knee: 0.3}": ("{l_knee: bent}", "posture: neutral: 'l_knee' must be a number, got bent"),
    "postures: {neutral:": ("postures: {neutral: 3} #", "'neutral' must be a mapping, got 3"),
    "imitation_joints: [l_hip, r_hip]": ("imitation_joints: [[l_hip]]", r"imitation_joints\[0\]' must be a text"),
    "{link: pelvis, xyz: [0, 0, 0]}": (
        "[pelvis, 0, 0, 0]",
        "point 'mid_hip': must be a mapping with the keys link, xyz",
    ),
    "xyz: [0, 0, -0.3]": ("xyz: [0, 0]", r"point 'l_wrist': 'xyz' must be \[x, y, z\], got \[0, 0\]"),
    "x_max: 0.1": ("x_max: -0.2", r"feet\[0\] 'l': a sole needs x_min < x_max"),
    "y_min: -0.05, ": ("", r"feet\[0\] 'l': lacks the key 'y_min'"),
    "radius: 0.02": ("radius: .nan", "shape 'nose'.*'radius' must be a number, got nan"),
    "radius: 0.02}": ("radius: -0.02}", "shape 'nose'.*radius must be positive, got -0.02"),
    "size: [0.2, 0.3, 0.2]": ("size: [0.2, 1.0e+300, 0.2]", "shape 'belly'.*'size' must be within 1000"),
    "- [skull, chin]": ("- [skull]", r"disabled_pairs\[0\] must be two names, got \['skull'\]"),
    "- [head, jaw]": ("- 7", r"unwatched_links\[0\]'.*must be a list"),
    "meanings: {l_knee_flexion: l_knee}": ("meanings: [l_knee]", "'meanings' must be a mapping"),
}


@pytest.mark.parametrize("old", ROBOT_FAULTS)
def test_a_fault_of_a_robot_file_is_refused_by_name(old, tmp_path):
    new, says = ROBOT_FAULTS[old]
    path = good("robot", tmp_path)
    assert old in ROBOT
    (tmp_path / "r.yaml").write_text(ROBOT.replace(old, new, 1))
    text = refused(load_robot, path)
    assert re.search(says, text) and str(tmp_path / "r.yaml") in text


@pytest.mark.parametrize("ending", ["yaml", "volumes.yaml", "drives.yaml", "tendons.yaml"])
def test_a_folder_in_place_of_a_file_beside_a_urdf_is_not_passed_over(ending, tmp_path):
    kind = {"yaml": "robot"}.get(ending, ending.removesuffix(".yaml"))
    path = good(kind, tmp_path)
    (tmp_path / f"r.{ending}").unlink()
    (tmp_path / f"r.{ending}").mkdir()
    assert "Is a directory" in refused(KINDS[kind].read, path)


def test_a_damaged_volume_says_in_which_file_it_is(tmp_path):
    path = good("volumes", tmp_path)
    file = tmp_path / "r.volumes.yaml"
    rows = yaml.safe_load(file.read_text())
    rows["pairs"][0][1] = "r_thihg"
    file.write_text(yaml.safe_dump(rows))
    assert str(file) in refused(KINDS["volumes"].read, path)


# -------- Arrays and bags


def promise(path, shape):
    """An array file whose head promises another shape than it holds."""
    import io
    import zipfile

    content = io.BytesIO()
    np.save(content, np.zeros((3, 3)))
    head = content.getvalue().replace(b"(3, 3)", shape)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("heights.npy", head)


def test_an_array_that_promises_more_than_it_holds_is_refused_before_room_is_made_for_it(tmp_path):
    path = tmp_path / "a.npz"
    promise(path, b"(3000000, 3000000)")
    with pytest.raises(ValueError, match="does not match its header"):
        load_arrays(path)
    promise(path, b"(-3, 3)")
    with pytest.raises(ValueError):
        load_arrays(path)
    assert str(path) in refused(ground_of, f"file:path={path}")


HEIGHTS = {
    "text": {"heights": np.full((3, 3), "high")},
    "complex": {"heights": np.zeros((3, 3), complex)},
    "spacing of text": {"spacing": np.array(["a", "b"])},
    "no spacing": {"spacing": None},
    "zero spacing": {"spacing": np.zeros(2)},
    "NaN": {"heights": np.full((3, 3), np.nan)},
    "mountains": {"heights": np.full((3, 3), 1e300)},
    "three spacings": {"spacing": np.ones(3)},
}


@pytest.mark.parametrize("case", HEIGHTS)
def test_heights_that_are_none_are_refused(case, tmp_path):
    arrays = {"heights": np.zeros((3, 3)), "spacing": np.ones(2), "origin": np.zeros(2)} | HEIGHTS[case]
    path = tmp_path / "a.npz"
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    assert str(path) in refused(ground_of, f"file:path={path}")


def read_all(path):
    bag = BagReader(path)
    bag.rates()
    for _ in bag.messages(set(bag.topics)):
        pass
    bag.close()


@pytest.mark.nightly
def test_a_bag_that_is_damaged_anywhere_is_refused_or_read(tmp_path):
    """Each of its integers made huge in turn, and cut off at many places."""
    good("bag", tmp_path)
    file = tmp_path / "bag" / "bag.mcap"
    content = file.read_bytes()
    index = content.index(b"serialized_metadata")
    places = [*range(8, 120, 5), *range(index, len(content) - 8, 501), *range(200, len(content), 2999)]
    told = 0
    for at in places:
        for damaged in (content[:at] + b"\xff" * 7 + content[at + 7 :], content[:at]):
            file.write_bytes(damaged)
            try:
                read_all(tmp_path / "bag")
            except HumanoidError as error:
                assert str(error).isprintable() and str(tmp_path / "bag") in str(error)
                told += 1
    assert told > len(places)


def chunked(bag, path):
    """The messages of a bag in an .mcap file of many chunks."""
    channels = {}
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=3000)
        writer.start("ros2")
        types = {topic: name for topic, (name, _) in bag.topics.items()}
        for topic, time_ns, data in bag.raw():
            if topic not in channels:
                schema = writer.register_schema(types[topic], "ros2msg", b"")
                channels[topic] = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channels[topic], time_ns, data, time_ns)
        writer.finish()


def test_of_a_bag_that_its_recorder_did_not_finish_whole_messages_are_read(tmp_path, capsys):
    """Without the footer, without the index, and cut in the middle of its messages; as a file and as a folder."""
    good("bag", tmp_path)
    whole = BagReader(tmp_path / "bag")
    (tmp_path / "died").mkdir()
    file = tmp_path / "died" / "died_0.mcap"
    chunked(whole, file)
    content, messages, read = file.read_bytes(), list(whole.raw()), []
    whole.close()
    for end in (len(content) - 40, len(content) - 8, len(content) - 1, len(content) // 2):
        file.write_bytes(content[:end])
        for path in (file.parent, file):
            capsys.readouterr()
            bag = BagReader(path)
            read.append(list(bag.raw()))
            assert f"did not finish it: {len(read[-1]):,} complete messages" in " ".join(
                capsys.readouterr().err.split()
            )
            assert sum(count for _, count in bag.topics.values()) == len(read[-1]) and bag.duration > 0.0
            bag.close()
        assert read[-1] == read[-2]
    assert all(sorted(some) == sorted(messages) for some in read[:6])
    assert 0 < len(read[6]) < len(messages) and set(read[6]) <= set(messages)
    file.write_bytes(content[:200])
    assert "no message is complete: `mcap recover" in refused(read_all, file)


def test_a_bag_of_a_few_bytes_is_refused_in_words_about_the_file(tmp_path):
    file = tmp_path / "few.mcap"
    file.write_bytes(b"\x89MCAP0\r\n")
    assert "few.mcap is not a ROS 2 bag, or a damaged one: it is truncated, or its lengths are wrong" in refused(
        read_all, file
    )


def test_a_damaged_message_is_named_by_its_topic(tmp_path):
    good("bag", tmp_path)
    file = tmp_path / "bag" / "bag.mcap"
    file.write_bytes(file.read_bytes().replace(b"\x06\x00\x00\x00l_knee\x00"[4:], b"l_knee\xff", 1))
    assert re.search("a message of /joint_(states|commands) is damaged", refused(read_all, tmp_path / "bag"))


def test_what_an_error_quotes_is_short_and_can_be_shown():
    text = str(RobotError("a\nb\x1b[31m\u202e" + "x" * 10_000 + " do this"))
    assert (
        text.startswith("a\\nb\\x1b[31m\\u202e")
        and text.endswith("do this")
        and len(text) < 1100
        and text.isprintable()
    )
