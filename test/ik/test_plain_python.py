"""A tick of inverse kinematics gives the same without the compiler, for those who step through it with a debugger."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
from humanoid_control.ik import FrameTask, PostureTask, WholeBodyIk
from humanoid_control.robots import load_robot

robot = load_robot("hrp2", "fixed")
q = robot.q()
hand = FrameTask(robot, "r_wrist")
hand.set_target_from(q)
hand.X_target.translation += [0.3, 0.0, 0.2]
solver = WholeBodyIk(robot)
for _ in range(3):
    q = solver.step(q, [hand, PostureTask(robot, weight=0.01)], dt=0.02).q
print(json.dumps(q.tolist()))
"""


def test_ticks_are_the_same_in_plain_python():
    results = []
    for env in ({}, {"NUMBA_DISABLE_JIT": "1"}):
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    assert results[0] == pytest.approx(results[1], abs=1e-9)
