"""The bench of inverse kinematics: its rows, and that the peers are given the same problem."""

import numpy as np
import pytest

from humanoid_control.benchmarks import ik as bench
from humanoid_control.benchmarks.ik_cases import DT, Motion, peer_program
from humanoid_control.benchmarks.peers import mink_case, pink_case
from humanoid_control.ik import IkSettings, WholeBodyIk, default_limits
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def measured():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "TICKS", 12)
        patch.setattr(bench, "ROUNDS", 2)
        rows = bench.measure(robot="lola")
    return {r["name"]: r for r in rows}, bench.notes(rows)


def test_ik_has_a_row_for_each_of_our_solvers(measured):
    rows, notes = measured
    ours = ["tick_nullspace", "tick_nullspace_free", "tick_qp", "tick_qp_peers", "tick_no_collision"]
    assert list(rows)[:5] == ours
    assert [rows[n]["rows"] for n in ours] == [28, 22, 29, 44, 44], "the tasks that the notes tell of"
    assert all(rows[n]["failed"] == 0 and rows[n]["n"] == 24 and rows[n]["median"] > 0 for n in ours)
    assert all(rows[n]["pairs"] == 132 for n in ours[:4]) and "pairs" not in rows["tick_no_collision"]
    assert rows["tick_qp"]["active_pairs"] > 5
    assert any("28 task rows" in line for line in notes)


@pytest.mark.parametrize("peer", ["pink", "mink"])
def test_peers_of_the_measured_have_our_tasks_and_pairs(measured, peer):
    pytest.importorskip(peer)
    rows, notes = measured
    every, none = rows[f"{peer}_all_pairs"], rows[f"{peer}_no_collision"]
    assert every["rows"] == none["rows"] == rows["tick_qp_peers"]["rows"] and every["failed"] == none["failed"] == 0
    assert every["pairs"] == 132 and "pairs" not in none
    for kind in ("all_pairs", "no_collision"):
        ratio = rows[f"ours_to_{peer}_{kind}"]
        assert ratio["unit"] == "ratio" and ratio["p99"] <= ratio["best"]
    assert any(line.startswith(peer) for line in notes)


@pytest.mark.parametrize("name", ["ours", "pink", "mink"])
def test_solvers_of_the_measured_find_the_motion_that_the_targets_come_from(name):
    """So all were given the same robot, postures and targets, each in its own order and units."""
    robot = load_robot("lola", "floating")
    motion = Motion(robot, 3)
    if name == "ours":
        settings = IkSettings(damping=1e-4, smoothing=0.0, acceleration=np.inf)
        solver = WholeBodyIk(robot, settings, default_limits(robot, self_collision=False))
        case = peer_program("row", robot, motion, False, solver)
    else:
        pytest.importorskip(name)
        case = {"pink": pink_case, "mink": mink_case}[name]("row", robot, motion, 0)
    case.aim(1)
    assert case.tick(motion.q[1])
    moved = (motion.q[2] - motion.q[1])[robot.iq :] / DT
    assert np.abs(moved).max() > 1.0
    assert np.allclose(case.velocity(), moved, atol=0.03 * np.abs(moved).max())
