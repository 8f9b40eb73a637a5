"""Every parameter that can be set live has a rule: what keeps its change from moving the robot by a step."""

import dataclasses
import importlib

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: the nodes import rclpy")

from humanoid_control.ik import FollowerSettings, IkSettings, TargetFollower
from humanoid_control.ik.target_filter import TargetFilterSettings
from humanoid_control.nodes.base.parameters import NodeParameters
from humanoid_control.robots import load_robot
from humanoid_control.session.stacks import NODES
from test.robots_under_test import nightly

STILL = "moves nothing: reports, patience, tolerances, or what a service does when it is called"
LIMITED = "what follows from it passes the limits of speed and acceleration, as every command does"
DRIVEN = "changes tensions, which the drives of the winches reach within their own limits of speed and tension"
RAMPED = "reached at the acceleration limit"
EACH = dict.fromkeys(("missed_warn", "missed_error"), STILL)
RULES = {
    "simulator": dict.fromkeys(("command_timeout", "step_periods", "push_duration", "tension", "tendon_faults"), STILL),
    "robot_driver": {
        "velocity_scale": RAMPED,
        **dict.fromkeys(
            ("zero_posture", "zero_joints", "home_joints", "allow_large_zero", "path_tolerance", "goal_tolerance",
             "goal_time", "brake_joint"), STILL),
    },
    "controller_bridge": dict.fromkeys(("soft_start", "soft_speed", "max_step"), LIMITED),
    "state_estimator": {
        "bandwidth": LIMITED, **dict.fromkeys(("timeout", "zero_posture", "markers_rate", "colour"), STILL)},
    "whole_body_ik": {
        "velocity_scale": RAMPED,
        **dict.fromkeys(
            ("point_gain", "posture_weight", "hold_idle_joints", "damping", "smoothing", "acceleration",
             "acceleration_scale", "soft_start", "margin", "activation", "approach", "bandwidth", "max_speed",
             "max_jump"), LIMITED),
        **dict.fromkeys(("target_timeout", "markers_rate", "following_error", "robot_timeout"), STILL),
    },
    "trajectory_streamer": {"speed": LIMITED, **dict.fromkeys(("loop", "following_error", "robot_timeout"), STILL)},
    "whole_body_streamer": {"speed": LIMITED, "loop": STILL},
    "target_source": {},
    "walker": {
        "height": LIMITED,
        **dict.fromkeys(
            ("cmd_vel_timeout", "sensor_late", "sensor_lost", "sensor_off", "following_error", "markers_rate"), STILL),
    },
    "human_motion": {},
    "viewer": {},
    "whole_body_controller": dict.fromkeys(
        ("loop", "markers_rate", "sensor_late", "sensor_lost", "sensor_off"), STILL),
    "policy": dict.fromkeys(
        ("body_timeout", "cmd_vel_timeout", "late", "reference_timeout", "sensor_lost", "terms_rate"), STILL),
    "tendon_driver": {},
    "tendon_controller": {
        **dict.fromkeys(
            ("co_contraction", "k_i", "kappa", "least", "load_cutoff", "load_most", "stiffness", "weights", "law"),
            DRIVEN),
        "governor": STILL,
    },
}  # fmt: skip
RATE, DT, SECONDS = 250, 0.004, 4.0
FAST = 1e-6  # [rad/s^2] of rounding


def parameters_of(spec):
    module = importlib.import_module(spec.module)
    found = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    return next(c.Parameters for c in found if issubclass(getattr(c, "Parameters", object), NodeParameters))


def test_every_live_parameter_of_every_node_has_a_rule():
    specs = NODES.values() if isinstance(NODES, dict) else NODES
    live = {s.executable: {f.name for f in dataclasses.fields(parameters_of(s)) if f.metadata["live"]} for s in specs}
    assert live == {name: set(rules) | set(EACH) for name, rules in RULES.items()}


IK, FOLLOWER, FILTER = (
    {f.name for f in dataclasses.fields(kind)} for kind in (IkSettings, FollowerSettings, TargetFilterSettings)
)
ENDS = {
    "point_gain": (0.1, 200.0), "posture_weight": (0.0, 10.0), "hold_idle_joints": (False, True),
    "damping": (0.001, 10.0), "smoothing": (0.0, 10.0), "velocity_scale": (0.02, 1.0), "acceleration": (20.0, 200.0),
    "acceleration_scale": (0.1, 1.0), "soft_start": (0.0, 10.0), "margin": (0.0, 0.05), "activation": (0.05, 0.5),
    "approach": (0.1, 5.0), "bandwidth": (0.5, 50.0), "max_speed": (0.1, 10.0), "max_jump": (0.01, 1.0),
}  # fmt: skip

SHOWN = ("smoothing", "acceleration", "margin", "bandwidth")  # a weight, a limit, a distance, a filter


def changed(settings, name, value):
    """Settings with one number changed, wherever it is."""
    if name in FOLLOWER:
        return dataclasses.replace(settings, **{name: value})
    part, known = ("filter", FILTER) if name in FILTER else ("ik", IK)
    assert name in known or name == "approach", name
    key = name if name in known else next(k for k in known if k.startswith("approach") or k == "barrier_gain")
    return dataclasses.replace(settings, **{part: dataclasses.replace(getattr(settings, part), **{key: value})})


@pytest.mark.parametrize("name", [name if name in SHOWN else nightly(name) for name in ENDS])
def test_a_live_change_of_the_inverse_kinematics_keeps_the_acceleration(name):
    """Each is thrown from one end of its range to the other, twice a second, while both wrists follow circles."""
    robot, settings = load_robot("hrp2", "fixed"), FollowerSettings()
    follower, before, most = TargetFollower(robot, settings), np.zeros(robot.nv), settings.ik.acceleration
    centers = dict(zip(("l_wrist", "r_wrist"), robot.point_positions(robot.q(), ("l_wrist", "r_wrist")), strict=True))
    fastest = 0.0
    for k in range(int(SECONDS * RATE)):
        t = k * DT
        if k % (RATE // 2) == RATE // 4:
            follower.configure(changed(settings, name, ENDS[name][k // (RATE // 2) % 2]))
        for side, center in centers.items():
            turn = 4.0 * t
            follower.update(side, center + 0.12 * np.array([1 - np.cos(turn), 0.0, np.sin(turn)]), None, t)
        follower.step(t, DT)
        assert np.abs(follower.v - before).max() / DT <= most + FAST, f"{name} at {t:.2f} s"
        before, fastest = follower.v.copy(), max(fastest, float(np.abs(follower.v).max()))
    assert fastest > 0.3, "it moved"
