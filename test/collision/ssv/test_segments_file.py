"""Files of volumes: what is written is read, and a mistake names the file, the place and the right word."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.collision.ssv.segments import (
    Segment,
    SegmentFile,
    SegmentPair,
    Volume,
    read_segment_file,
    write_segment_file,
)
from humanoid_control.errors import ConfigError, HumanoidError, RobotError
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import build_volumes, segments_of, volumes_of

number = st.floats(-10, 10, allow_nan=False)
name = st.text("abcdefgh_", min_size=1, max_size=8)


@st.composite
def volume(draw, label):
    count = draw(st.integers(1, 3))
    vertices = tuple(draw(st.tuples(number, number, number)) for _ in range(count))
    kind = ("point", "line", "triangle")[count - 1]
    return Volume(
        label,
        kind,
        draw(st.floats(0, 1)),
        vertices,
        draw(st.sampled_from(["", "in", "out"])),
        draw(st.sampled_from(["", "y"])),
    )


@st.composite
def files(draw):
    labels = draw(st.lists(name, min_size=1, max_size=4, unique=True))
    segments = tuple(
        Segment(
            f"l_{s}",
            draw(name),
            tuple(draw(volume(f"v{k}")) for k in range(draw(st.integers(1, 3)))),
            draw(st.sampled_from(["", "x"])),
        )
        for s in labels
    )
    groups = st.lists(st.sampled_from(["in", "out"]), unique=True).map(tuple)
    side = st.sampled_from([s.name for s in segments])
    pairs = draw(st.none() | st.lists(st.builds(SegmentPair, side, side, groups, groups), max_size=3).map(tuple))
    return SegmentFile(segments, pairs, draw(st.sampled_from(["", "lola"])))


@settings(max_examples=60)
@given(files())
def test_what_is_written_is_read(tmp_path_factory, file):
    path = tmp_path_factory.mktemp("ssv") / "volumes.yaml"
    write_segment_file(path, file)
    assert read_segment_file(path) == file
    assert [p.name for p in path.parent.iterdir()] == ["volumes.yaml"]


def test_a_robots_volumes_survive_the_file(tmp_path):
    robot = load_robot("lola", "fixed")
    model = volumes_of(robot)
    write_segment_file(tmp_path / "lola.yaml", SegmentFile(segments_of(robot), model.pairs, "lola"))
    file = read_segment_file(tmp_path / "lola.yaml")
    again = build_volumes(robot, file.segments, file.pairs)
    assert (again.arrays.vertices == model.arrays.vertices).all() and (again.arrays.radii == model.arrays.radii).all()
    assert (again.arrays.pair_rows == model.arrays.pair_rows).all() and (
        again.arrays.volume_pairs == model.arrays.volume_pairs
    ).all()


def test_the_example_in_the_documentation_is_a_file(tmp_path):
    from humanoid_control.collision.ssv import segments as ssv_file

    text = ssv_file.__doc__
    (tmp_path / "example.yaml").write_text(textwrap.dedent(text[text.index("    schema:") :]))
    file = read_segment_file(tmp_path / "example.yaml")
    assert file.segments[0].mirror == "y" and file.segments[0].volumes[1].group == "inside"
    assert file.pairs == (
        SegmentPair("l_thigh", "r_thigh", ("inside",), ("inside",)),
        SegmentPair("l_thigh", "r_shank"),
    )


HEAD = "schema: humanoid_ssv/1\n"
BALL = "{name: ball, type: point, radius: 0.1, vertices: [[0, 0, 0]]}"
MISTAKES = [
    ("segments: []", "the first key must be 'schema: humanoid_ssv/1'"),
    (HEAD + "segmnts: []", "unknown key 'segmnts': did you mean segments"),
    (HEAD, "lacks the key 'segments'"),
    (HEAD + "segments: 3", "'segments' must be a list"),
    (HEAD + "segments: [3]", r"segments\[0\]: must be a mapping"),
    (
        HEAD + f"segments:\n- {{name: s, lnk: s, volumes: [{BALL}]}}",
        r"unknown key 'lnk': did you mean link.*segments\[0\] 's'",
    ),
    (HEAD + f"segments:\n- {{name: s, volumes: [{BALL}]}}", r"segments\[0\] 's': lacks the key 'link'"),
    (HEAD + "segments:\n- {name: s, link: s, volumes: []}", r"segments\[0\] 's': segment 's' has no volume"),
    (
        HEAD + f"segments:\n- {{name: s, link: s, volumes: [{BALL.replace('radius', 'raduis')}]}}",
        "unknown key 'raduis': did you mean radius",
    ),
    (
        HEAD + f"segments:\n- {{name: s, link: s, volumes: [{BALL.replace('0.1', 'thick')}]}}",
        r"volumes\[0\] 'ball': radius must be a number",
    ),
    (
        HEAD + f"segments:\n- {{name: s, link: s, volumes: [{BALL.replace('[[0, 0, 0]]', '[0, 0, 0]')}]}}",
        "vertices a list of",
    ),
    (
        HEAD + f"segments:\n- {{name: s, link: s, volumes: [{BALL.replace('point', 'pint')}]}}",
        "unknown type 'pint': did you mean point",
    ),
    (HEAD + f"segments:\n- {{name: s, link: s, volumes: [{BALL}, {BALL}]}}", "two volumes named 'ball'"),
    (HEAD + "segments: []\npairs: [[a]]", r"pairs\[0\]: a pair is two names"),
    ("{", r"not a readable volume file: .* .line [12]."),
]


@pytest.mark.parametrize("text, message", MISTAKES)
def test_a_mistake_names_the_file_the_place_and_the_right_word(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(HumanoidError, match=message) as e:
        read_segment_file(path)
    assert "mine.yaml" in str(e.value) and "\n" not in str(e.value)


def test_missing_files_and_folders_are_one_line(tmp_path):
    with pytest.raises(RobotError, match="not a readable volume file"):
        read_segment_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_segment_file(tmp_path / "no_folder" / "x.yaml", SegmentFile(()))
