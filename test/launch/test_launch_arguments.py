"""Arguments of a launch: checked before a node starts, each mistake in one line."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.errors import HumanoidError
from humanoid_control.session.launching.arguments import check_names, launch_options, truth
from humanoid_control.session.launching.description import root_transform_arguments
from humanoid_control.session.stacks import STACKS

IMITATION = STACKS["imitation"]


def test_every_spelling_of_true_is_true():
    assert all(truth("rviz", text) for text in ("true", "True", "TRUE", "yes", "Yes", "on", "ON", "1"))
    assert launch_options(IMITATION, {"rviz": "Yes", "rsp": "false"}).rviz


def test_every_spelling_of_false_is_false():
    assert not any(truth("rviz", text) for text in ("false", "False", "no", "off", "0", " false "))
    options = launch_options(IMITATION, {"rviz": "no", "rsp": " false "})
    assert not options.rviz and not options.state_publisher


@pytest.mark.parametrize("text", ["", "maybe", "2", "[", "tru"])
def test_anything_else_is_refused(text):
    with pytest.raises(HumanoidError, match=r"^rviz must be true or false, got '"):
        truth("rviz", text)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"robot": "hpr2"}, "did you mean hrp2"),
        ({"robot": "/nowhere/robot.urdf"}, "URDF file not found: /nowhere/robot.urdf"),
        ({"robot": ""}, "no robot given"),
        ({"clip": "nowhere.trc"}, "nowhere.trc"),
        ({"motion": "nowhere.trc"}, "nowhere.trc"),
        ({"clip": "gentle_dance", "motion": "nowhere.trc"}, "clip:=gentle_dance contradicts motion:=nowhere.trc"),
        ({"port": "abc"}, "parameter port must be int, got 'abc'"),
        ({"port": "80.5"}, "parameter port must be int, got '80.5'"),
        ({"port": "0"}, "parameter port must be in 1 .. 65535, got 0"),
        ({"namespace": "a-b"}, "namespace must be letters, digits and _"),
        ({"namespace": "1a"}, "namespace must be letters, digits and _"),
        ({"namespace": "a//b"}, "namespace must be letters, digits and _"),
        ({"params_file": "/nowhere.yaml"}, "params_file /nowhere.yaml: No such file"),
    ],
)
def test_a_wrong_argument_is_one_line(given, words):
    with pytest.raises(HumanoidError) as e:
        launch_options(IMITATION, given)
    assert words in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: [\n", "line 3"),
        ("- 1\n", "must hold the parameters of nodes"),
        ("/**: {viewer: {ros__parameters: {rate: fast}}}", "viewer: parameter rate must be float, got 'fast'"),
        ("viewer: {ros__parameters: {rate: 99}}", "viewer: parameter rate must be in 1 .. 60"),
        ("/left/viewer: {ros__parameters: {rate: 99}}", "viewer: parameter rate must be in 1 .. 60"),
        ("trajectory_streamer: {ros__parameters: {marker_set: nonsense}}", "nonsense"),
    ],
)
def test_a_wrong_parameter_file_is_one_line(tmp_path, text, words):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(HumanoidError) as e:
        launch_options(IMITATION, {"params_file": str(path), "namespace": "left"})
    assert words in str(e.value) and "\n" not in str(e.value)


def test_motion_is_another_name_of_clip_and_a_stack_has_its_own():
    assert launch_options(IMITATION, {"motion": "gentle_dance"}).clip == "gentle_dance"
    assert launch_options(IMITATION, {"clip": "gentle_dance"}).clip == "gentle_dance"
    assert launch_options(IMITATION, {}).clip == "dance"
    assert launch_options(STACKS["dance"], {"robot": "lola"}).clip == "gentle_dance"
    assert launch_options(STACKS["targets"], {}).clip is None


def test_unknown_arguments_are_refused_with_the_nearest_name():
    check_names(IMITATION, ["robot:=lola", "motion:=dance", "--noninteractive"])
    with pytest.raises(HumanoidError, match="unknown launch argument 'rbot': did you mean robot"):
        check_names(IMITATION, ["rbot:=lola"])
    with pytest.raises(HumanoidError, match="clip"):
        check_names(STACKS["targets"], ["clip:=dance"])


def test_the_transform_from_the_world_leads_to_the_robots_own_root(tmp_path):
    words = root_transform_arguments("hrp2")
    assert words[-4:] == ["--frame-id", "world", "--child-frame-id", "base_link"]
    assert float(words[words.index("--z") + 1]) > 0.3, "it stands on the ground"
    path = tmp_path / "other.urdf"
    path.write_text(
        '<robot name="other"><link name="pelvis"/><link name="arm"/><joint name="j" type="revolute">'
        '<parent link="pelvis"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    assert root_transform_arguments(str(path))[-1] == "pelvis"
    assert root_transform_arguments("hrp2", "map")[-4:-2] == ["--frame-id", "map"]


def test_the_world_has_one_of_three_names():
    assert launch_options(STACKS["targets"], {}).world_frame == "world"
    assert launch_options(STACKS["targets"], {"world_frame": "odom"}).world_frame == "odom"
    with pytest.raises(HumanoidError, match="world_frame 'wrld': did you mean world"):
        launch_options(STACKS["targets"], {"world_frame": "wrld"})
