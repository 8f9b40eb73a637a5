"""Stacks: every wire has two ends, settings are checked, a stack brings its own settings and wiring."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.errors import HumanoidError, UnknownNameError
from humanoid_control.nodes import NODES
from humanoid_control.session import STACKS, find_stack, parse_settings


def test_topics_page_names_every_topic_of_every_node():
    from humanoid_control.cli.docs import TOPICS

    used = {t for s in NODES.values() for t in (*s.subscribes, *s.publishes)}
    assert used <= set(TOPICS)


def test_settings_are_checked_against_the_nodes():
    stack = find_stack("imitation")
    settings = parse_settings(
        stack, ["whole_body_ik.rate=200", "trajectory_streamer.clip=a=b.trc", "viewer.port = 8081"]
    )
    assert settings == {
        "whole_body_ik": {"rate": 200.0},
        "trajectory_streamer": {"clip": "a=b.trc"},
        "viewer": {"port": 8081},
    }
    for text, message in {
        "rate=3": "node.parameter=value",
        "whole_body_ik.rate": "node.parameter=value",
        "whole_body.rate=3": "did you mean whole_body_ik",
        "whole_body_ik.rte=3": "did you mean rate",
        "whole_body_ik.rate=9999": "10 .. 1000",
        "viewer.port=80.5": "must be int",
    }.items():
        with pytest.raises(HumanoidError, match=message):
            parse_settings(stack, [text])
    with pytest.raises(UnknownNameError, match="imitation"):
        find_stack("imitatoin")


def test_parameter_file_holds_shared_and_own_values():
    stack = STACKS["targets"]
    file = stack.ros_parameters({"robot": "lola"}, {"viewer": {"port": 9}})
    assert file["/**"]["viewer"]["ros__parameters"] == {"robot": "lola", "port": 9}
    assert file["/**"]["simulator"]["ros__parameters"] == {"robot": "lola"}
    assert set(file["/**"]) == {n.executable for n in stack.nodes}


def test_every_wire_has_two_ends():
    """In full stacks every relative input comes from some node of it, or from the user; the viewer sees all."""
    from_users = {
        "markers",
        "simulator/set_state",
        "simulator/set_base",
        "simulator/push",
        "cmd_vel",
        "goal_pose",
        "joy",
        "footsteps",
        "targets",
        "targets/NAME",
        "joint_gains",  # of a policy
        "tendon_commands",  # of who moves winches
        "hardware_state",  # of the user's own driver, if he has one
    }
    everything = {t for n in NODES.values() for t in n.publishes} | {"/diagnostics"}
    for stack in (STACKS["imitation"], STACKS["walking"]):
        published = {t for n in stack.nodes for t in n.publishes} | from_users
        for node in stack.nodes:
            assert set(node.subscribes) <= (everything if node.executable == "viewer" else published), node.executable


def test_a_robot_that_walks_is_not_told_the_truth_and_hears_all_sensors_at_once():
    walker, own = NODES["walker"], STACKS["walking"].settings["simulator"]
    assert not {t for t in walker.subscribes if "truth" in t} and "odom" in walker.publishes
    assert own["base"] == "floating" and own["sensor_every"] == 1 and not own["publish_tf"]


def test_a_stack_brings_its_own_settings_and_wiring():
    """The user's settings are stronger than the stack's."""
    from humanoid_control.session.supervisor import node_command

    stack, node = find_stack("direct"), "trajectory_streamer"
    file = stack.ros_parameters({"robot": "lola"}, {node: {"speed": 0.5}})["/**"][node]["ros__parameters"]
    assert file == {"robot": "lola", "solve": True, "speed": 0.5}
    off = stack.ros_parameters({}, {node: {"solve": False}})["/**"][node]["ros__parameters"]
    assert off == {"solve": False}
    command = node_command("module", Path("file"), "left", stack.remaps[node])
    assert "-r reference_joint_states:=joint_commands -r __ns:=/left" in " ".join(command)
    commanders = [n.executable for n in stack.nodes if "joint_commands" in n.publishes]
    assert commanders == [], "nobody else commands the joints"


def test_a_robot_with_its_own_driver_is_moved_gently_until_somebody_says_otherwise():
    """Simulated joints take 200 rad/s^2; what real ones take is not in a URDF."""
    own = STACKS["control"].ros_parameters({}, {})["/**"]["whole_body_ik"]["ros__parameters"]
    assert own["acceleration"] == 20.0 and own["velocity_scale"] == 0.5
    faster = STACKS["control"].ros_parameters({}, {"whole_body_ik": {"acceleration": 50.0}})["/**"]["whole_body_ik"]
    assert faster["ros__parameters"] == {"acceleration": 50.0, "velocity_scale": 0.5}
    for name, stack in STACKS.items():
        if "simulator" not in stack and "whole_body_ik" in stack:
            assert stack.settings["whole_body_ik"]["acceleration"] <= 20.0, name


def test_a_part_of_a_stack_keeps_its_order_its_settings_and_its_wiring():
    stack = find_stack("direct")
    rest = stack.part(without=["viewer", "simulator"])
    assert rest.executables == ("state_estimator", "trajectory_streamer")
    assert rest.settings == stack.settings and rest.remaps == stack.remaps
    assert stack.part(only=["state_estimator", "simulator"]).executables == ("simulator", "state_estimator")
    assert stack.part().executables == stack.executables
    assert {*rest.executables} | {*stack.part(only=["viewer", "simulator"]).executables} == {*stack.executables}


def test_only_what_shows_and_records_may_be_missing():
    assert {name for name, spec in NODES.items() if not spec.essential} == {"viewer"}
