"""Each row of the study of faults on real nodes: what it measures of good ones, and that it finds bad ones."""

import dataclasses
import json
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from evidence.studies.companion import Companion
from evidence.studies.faults import floods, starts, states
from evidence.studies.faults.dance import dance, dance_cases, judge_dance
from evidence.studies.faults.figures import BROKEN, Plan
from evidence.studies.faults.kills import judge_kills, kill
from evidence.studies.faults.messages import MESSAGES_ROW
from evidence.studies.faults.relay import TRUE_STATES
from evidence.studies.faults.stack import COMMANDS, STATES, ObservedStack
from evidence.studies.faults.study import key_of, own_domain
from evidence.studies.report import KeptOutcomes
from humanoid_control.cli.main import main
from humanoid_control.session import find_stack
from humanoid_control.terminal import plain_values
from test.places import domain

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.patient]
timed = pytest.mark.timed  # stacks with real-time priority, whose reactions are judged by the clock
PLAN = Plan(states=1)
# Half as fast as a user has them: relay and observers run beside them on the same machine.
RATES = {"simulator": 250.0, "state_estimator": 125.0, "whole_body_ik": 125.0}
SLOWER = dataclasses.replace(PLAN, settings={n: {"rate": r} for n, r in RATES.items()})


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    with own_domain(int(domain("commands"))):
        yield


def kept(outcome, job):
    """An outcome as it comes out of the file."""
    return json.loads(json.dumps(plain_values({"case": job, **outcome})))


def value(measured, what):
    return next(m.value for m in measured if m.what == what)


def set_following_error(stack, most):
    """Change the parameter of the running node."""
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters

    node = stack.session.monitor.node
    client = node.create_client(SetParameters, "/whole_body_ik/set_parameters")
    assert client.wait_for_service(20.0)
    number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=most)
    answer = client.call_async(SetParameters.Request(parameters=[Parameter(name="following_error", value=number)]))
    while not answer.done():
        stack.run(0.05)
    assert answer.result().results[0].successful


@pytest.mark.nightly
@timed
def test_rows_of_a_dancing_stack_and_joint_states_that_nobody_supervises(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(floods, "FLOODED", 1.0)
    monkeypatch.setattr(floods, "MARKERS", (30, 300))
    monkeypatch.setattr(floods, "WATCHED", 1.0)
    file, stack = tmp_path / "kept.jsonl", find_stack("imitation").without("viewer")
    stack = dataclasses.replace(stack, remaps={"simulator": {STATES: TRUE_STATES}})
    topics = (COMMANDS, TRUE_STATES, STATES, "targets")
    with Companion("faults.relay", PLAN.robot) as relay, Companion("faults.floods", PLAN.robot) as flooder:
        assert (relay.heard(), flooder.heard()) == ("ready", "ready")
        with ObservedStack(stack, SLOWER, topics) as running:
            supervised = [
                kept(states.wrong_states(running, relay, PLAN, kind, k), [kind, k])
                for k, kind in enumerate(("dragged", "silent"))
            ]
            set_following_error(running, 0.0)  # from here on a busy machine stops nobody either
            alone = kept(states.wrong_states(running, relay, PLAN, "dragged", 0), ["dragged", 0])
            danced = kept(dance(running, 2.0), [0, 2.0])
            killed = kept(kill(running, PLAN, "state_estimator", 0), ["state_estimator", 0])
            flooded = kept(floods.flood(running, flooder, PLAN, floods.FLOOD, 0), [floods.FLOOD, 0])
    found = states.judge(supervised)
    assert value(found, "not noticed") == 0 and value(found, "commands over a speed limit") == 0
    assert "following error" in supervised[0]["words"] and "no joint states" in supervised[1]["words"]
    assert supervised[0]["joint"] in supervised[0]["words"]
    assert 0.1 < supervised[0]["noticed_s"] < supervised[0]["at_rest_s"] < 1.4
    assert all(o["moves_again_s"] is not None for o in supervised) and supervised[0]["resync"]

    assert alone["at_rest_s"] is None and alone["named_s"] is None
    missed = states.judge([alone])
    assert value(missed, "not noticed") == 1 and BROKEN in [m.verdict for m in missed]

    assert flooded["sent"]["rate"] > 5 and 0.0 < flooded["gap_s"] < 5.0
    assert danced["holds"] == 0 and value(judge_dance([danced]), "duration") >= 2.0
    assert killed["dances_again_s"] is not None and value(judge_kills([killed]), "did not dance again") == 0

    for outcome, code in ((alone, 1), (supervised[0] | {"speed": 1.0, "stop_s": 0.1}, 0)):
        KeptOutcomes(file, "").keep(key_of("states", PLAN, ["dragged", 0]), outcome)
        words = ["study", "faults", "--only", "states", "--states", "1", "--resume", str(file)]
        assert main(words) == code, "told from what is kept: nothing runs"
        assert ("not noticed 1 (promised 0)" in capfd.readouterr().out) is bool(code)


ROGUE = """
import time
import numpy as np, rclpy
from sensor_msgs.msg import JointState
from humanoid_control.robots import load_robot
rclpy.init()
node, robot = rclpy.create_node("rogue"), load_robot("hrp2", "fixed")
publisher = node.create_publisher(JointState, "joint_commands", 10)
print("READY rogue", flush=True)
while True:
    m = JointState(name=list(robot.joint_names), position=(0.5 * robot.upper).tolist())
    m.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(m)
    time.sleep(0.01)
"""


@pytest.mark.nightly
@timed
def test_a_second_controller_gives_way_and_one_that_asks_nobody_is_found(tmp_path, monkeypatch):
    script = tmp_path / "rogue.py"
    script.write_text(ROGUE)
    with starts.start(SLOWER) as do:
        good = kept(do([starts.TWIN, starts.BESIDE, 0]), [starts.TWIN, starts.BESIDE, 0])
        monkeypatch.setattr(starts, "node_command", lambda *_: [sys.executable, "-u", str(script)])
        bad = kept(do([starts.OTHER, starts.BESIDE, 1]), [starts.OTHER, starts.BESIDE, 1])
    found = starts.judge([good])
    assert [m for m in found if m.verdict == BROKEN] == [] and good["commands"] > 100 and good["named"]
    found = starts.judge([bad])
    assert bad["senders"] >= 2 and bad["over_speed"] > 0
    assert "steps over a speed limit" in [m.what for m in found if m.verdict == BROKEN]


@pytest.mark.nightly
def test_a_node_lives_through_random_messages_and_one_that_ends_is_found():
    plan = Plan(messages=20)
    jobs = MESSAGES_ROW.cases(plan)
    assert len(MESSAGES_ROW.cases(Plan(messages=25_000))) == 3 * len(jobs)
    job = next(j for j in jobs if j[0] == "target_source")
    with MESSAGES_ROW.start(plan) as do:
        outcome = kept(do(job), job)
    assert outcome["sent"] == 20 and [m for m in MESSAGES_ROW.judge([outcome]) if m.verdict == BROKEN] == []
    ended = outcome | {"died": True, "code": 1, "ticks": False}
    assert sum(m.verdict == BROKEN for m in MESSAGES_ROW.judge([ended])) == 3


def test_the_dance_is_cut_into_parts_of_which_all_are_danced():
    assert dance_cases(Plan(hours=0.02)) == [[0, 30.0], [1, 30.0], [2, pytest.approx(12.0)]]
