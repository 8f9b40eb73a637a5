"""`humanoid demo reach` with real nodes: the proof is made from what was recorded, and fails where it must."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.reaching import read_reach
from humanoid_control.reaching import HANDS, REACHABLE
from humanoid_control.robots import load_robot
from test.places import port

# One reachable goal and one that is too far, within 5.1 s.
QUICK = ("--set", "target_source.speed=1.5", "--set", "target_source.stay=0.8")


@pytest.mark.ros
@pytest.mark.stack
@pytest.mark.slow
def test_hands_reach_and_the_recorded_commands_prove_it(humanoid):
    with humanoid.shared_memory() as memory:
        result = humanoid("demo", "reach", "--seconds", 6.5, *QUICK, "--port", port(8), "--json")
    report = json.loads(result.stdout)
    assert result.returncode == 0 and report["good"], json.dumps(report["checks"]) + result.stderr[-2000:]
    assert report["robot"] == "lola", "the default"
    assert 10 < report["recorded_percent"] <= 100, "all where nothing else runs; a starved recorder misses some"
    assert report["reachable"]["goals"] >= 1 and report["reachable"]["error_max_m"] < 0.01
    assert report["unreachable"]["goals"] >= 1
    assert report["limits"]["commands"] > 500, "3,200 at 500 Hz; on a machine that may be busy"
    assert report["self_collision"]["closest_m"] is None or report["self_collision"]["closest_m"] > 0
    assert 0 < report["loop"]["latency_p50_ms"] < 50 and 0 < report["loop"]["period_error_p50_ms"] < 20
    assert not memory.left(), "no shared memory may stay"

    robot = load_robot("lola", "fixed")
    path = humanoid.home / "runs" / "latest" / "recording"
    read = read_reach(path, robot)
    commands, first = read.commands, next(g for g in read.goals if g.number == 1)
    assert first.kind == REACHABLE
    k = int(np.searchsorted(commands.time, first.end))
    reached = robot.point_positions(robot.q(commands.position[k]), HANDS)
    assert np.linalg.norm(reached - first.points, axis=1).max() < 0.01
    moved = np.ptp(commands.position, axis=0)
    assert moved.max() > 0.3, "it must have reached for something"
    bag = BagReader(path)
    assert {"/targets", "/goals", "/joint_states", "/ik_markers"} <= set(bag.topics)
    bag.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reach", "--robot", "lolla"], "did you mean lola"),
        (["reach", "--seed", "-1"], "--seed must be between"),
        (["reach", "--set", "target_source.sped=1"], "did you mean speed"),
    ],
)
def test_bad_words_are_answered_in_one_line(words, said, capsys):
    from humanoid_control.cli.main import main

    assert main(["demo", *words, "--no-viewer"]) == 2
    err = capsys.readouterr().err.strip()
    assert said in err and "\n" not in err
