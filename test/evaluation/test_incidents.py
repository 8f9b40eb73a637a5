"""Each quantity of a time line on streams made up so that its beginning is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagWriter
from humanoid_control.evaluation.incidents import compare_runs, find_violations, read_streams, timeline_page
from humanoid_control.evaluation.incidents.streams import split_topic
from humanoid_control.robots import load_robot
from test.evaluation.messages import TYPES, joint_state, put

RATE, SECONDS, AT = 100, 3.5, 2.0  # [Hz], [s], and when the faults begin
KINDS = {"Bool": "std_msgs/msg/Bool", "String": "std_msgs/msg/String", "Battery": "sensor_msgs/msg/BatteryState"}


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


def text(data):
    return TYPES.types["std_msgs/msg/String"](data)


def status(name, level, message):
    m = TYPES.types
    row = m["diagnostic_msgs/msg/DiagnosticStatus"](level, name, message, "hrp2", [])
    stamp = m["builtin_interfaces/msg/Time"](0, 0)
    return m["diagnostic_msgs/msg/DiagnosticArray"](m["std_msgs/msg/Header"](stamp, ""), [row])


def battery(volts):
    m = TYPES.types
    kind, nan, none = m["sensor_msgs/msg/BatteryState"], float("nan"), np.zeros(0, np.float32)
    head = m["std_msgs/msg/Header"](m["builtin_interfaces/msg/Time"](0, 0), "")
    return kind(head, volts, *[nan] * 6, 0, 0, 0, True, none, none, "", "")


def made(folder, robot, fault="", space=""):
    """A run of 3.5 s: joints at rest by commands, measurements, estimates, power, supply, diagnostics, walker."""
    bag = BagWriter(folder)
    joints = ("joint_commands", "joint_states", "estimated_joint_states")
    for name in joints:
        bag.add_topic(f"{space}/{name}", "sensor_msgs/msg/JointState")
    bag.add_topic(f"{space}/hardware_state", KINDS["String"])
    bag.add_topic(f"{space}/battery", KINDS["Battery"])
    bag.add_topic("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")
    q = robot.postures["neutral"]
    for k in range(round(RATE * SECONDS)):
        t, ns = k / RATE, 10**15 + k * 10**9 // RATE
        on = t >= AT
        for name in joints:
            p, v = q.copy(), np.zeros(robot.n)
            hit = name.startswith(fault.split()[0]) if fault else False
            if hit and on and "far" in fault:
                p[3] += 0.3
            if hit and on and "nan" in fault:
                p[3] = np.nan
            if hit and on and "beyond" in fault:
                p[3] = robot.upper[3] + 0.05
            if hit and AT <= t < AT + 0.03 and "fast" in fault:
                v[3] = 1.5 * robot.velocity[3]
            if hit and AT <= t < AT + 0.5 and "gap" in fault:
                continue
            if hit and on and "ends" in fault:
                continue
            put(bag, f"{space}/{name}", ns, joint_state(ns, robot.joint_names, p, v))
        if k % RATE == 0:
            put(bag, f"{space}/battery", ns, battery(30.0 if on and fault == "supply" else 48.0))
            warns = on and fault == "report"
            put(bag, "/diagnostics", ns, status("/whole_body_ik", 1 * warns, "targets jump" if warns else "ok"))
        if k == 0:
            put(bag, f"{space}/hardware_state", ns, text("RUN"))
        if t == AT and fault == "power":
            put(bag, f"{space}/hardware_state", ns, text("FAULT: bus0: l_elbow_flexion overheated"))
    bag.close()
    return read_streams(folder)


def first(tmp_path, robot, fault, **options):
    found = find_violations(made(tmp_path / "run", robot, fault, **options), robot).violations
    return found[0] if found else None


def test_a_run_at_rest_says_nothing(tmp_path, robot):
    run = made(tmp_path / "run", robot)
    found = find_violations(run, robot)
    assert not found.violations and "nothing was violated in 3.5 s" in found.headline()
    assert {"power", "supply", "limits", "reports of nodes", "estimates of joints"} <= set(found.checked)
    assert any(m.startswith("contact of the feet") for m in found.missing)


@pytest.mark.parametrize(
    ("fault", "kind", "source", "words"),
    [
        ("joint_commands gap", "late tick", "/joint_commands", "no message for 0.510 s, 51 periods"),
        ("joint_states gap", "late tick", "/joint_states", "no message for 0.510 s"),
        ("joint_commands ends", "late tick", "/joint_commands", "stopped 1.5 s before"),
        ("joint_commands beyond", "limit", "/joint_commands", "limit"),
        ("joint_commands fast", "limit", "/joint_commands", "rad/s"),
        ("joint_states beyond", "limit", "/joint_states", "limit"),
        ("joint_commands nan", "command", "/joint_commands", "not a number"),
        ("estimated_joint_states nan", "estimate", "/estimated_joint_states", "not a number"),
        ("estimated_joint_states far", "estimate", "/estimated_joint_states", "0.300 rad from its measurement"),
        ("power", "power", "/hardware_state", "RUN -> FAULT: bus0: l_elbow_flexion overheated"),
        ("supply", "power", "/battery", "supply of 30.0 V, 48.0 V at the start"),
        ("report", "reported", "whole_body_ik", "warning: targets jump"),
    ],
)
def test_each_fault_is_first_where_it_begins(tmp_path, robot, fault, kind, source, words):
    v = first(tmp_path, robot, fault)
    assert v is not None and (v.kind, v.source) == (kind, source) and words in v.text, v
    assert v.begin == pytest.approx(AT, abs=1.2 / RATE)


def test_a_command_that_is_not_followed_is_named_with_its_joint(tmp_path, robot):
    run = made(tmp_path / "run", robot, "joint_states far")
    found = find_violations(run, robot).violations
    assert any(v.kind == "command" and robot.joint_names[3] in v.text and "not followed" in v.text for v in found)


def test_two_robots_in_namespaces_are_told_apart(tmp_path, robot):
    v = first(tmp_path, robot, "joint_commands beyond", space="/left")
    assert v.source == "/left/joint_commands"
    assert split_topic("/left/contact/l_foot") == ("/left", "contact/l_foot")
    assert split_topic("/my_joint_commands") == ("", "")


def test_paused_time_is_not_late(tmp_path, robot):
    run = made(tmp_path / "run", robot, "joint_commands gap")
    run.robots[""].values["simulator/paused"] = [(0.0, False), (AT - 0.01, True), (AT + 0.5, False)]
    assert not find_violations(run, robot).violations


def test_a_warning_of_the_start_is_not_an_incident_and_one_that_stays_is(tmp_path, robot):
    run = made(tmp_path / "run", robot)
    warning, fine = SimpleNamespace(level=1, message="no estimates: 3 ms"), SimpleNamespace(level=0, message="ok")
    run.statuses = {"walker": [(0.2, warning), (1.2, fine)]}
    assert not find_violations(run, robot).violations
    same = SimpleNamespace(level=1, message="no estimates: 4 ms")
    run.statuses = {"walker": [(0.2, warning), (1.2, same)]}
    (v,) = find_violations(run, robot).violations
    assert v.begin == 0.2 and v.end == run.duration


def test_the_difference_begins_with_the_fault(tmp_path, robot):
    a, b = made(tmp_path / "a", robot), made(tmp_path / "b", robot, "joint_states far")
    both = find_violations(a, robot), find_violations(b, robot)
    d = compare_runs(a, b, both)
    earliest = d.streams[0]
    assert earliest.topic == "/joint_states" and earliest.joint == robot.joint_names[3]
    assert earliest.first == pytest.approx(AT, abs=1.2 / RATE) and earliest.largest == pytest.approx(0.3)
    assert [s.first for s in d.streams[1:]] == [None, None] and d.only_b and not d.only_a
    page = timeline_page(both, d)
    assert page.count("<svg") == 2 and "http" not in page and "Difference" in page


def test_a_bag_without_anything_to_judge_is_refused(tmp_path):
    bag = BagWriter(tmp_path / "run")
    bag.add_topic("/chatter", KINDS["String"])
    put(bag, "/chatter", 1, text("x"))
    bag.close()
    with pytest.raises(ConfigError, match="nothing to check"):
        read_streams(tmp_path / "run")
