"""`humanoid bench` where no nodes are needed: one JSON object, and a table a person can read."""

import argparse
import json

import numpy as np
import pytest

from humanoid_control.benchmarks import (
    ik as bench_ik,
)
from humanoid_control.benchmarks import (
    self_distance as bench_self_distance,
)
from humanoid_control.benchmarks import (
    ssv_distance as bench_distance,
)
from humanoid_control.benchmarks.ik_cases import DT, Motion, peer_program
from humanoid_control.benchmarks.peers import mink_case, pink_case
from humanoid_control.cli.main import main
from humanoid_control.ik import IkSettings, WholeBodyIk
from humanoid_control.robots import load_robot


def test_bounding_volumes_stand_beside_the_published_table(capsys):
    assert main(["bench", "bounding_volumes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["volume"]: r for r in said["rows"]}
    assert list(rows) == ["convex hull", "swept sphere", "elliptical capsule", "circular capsule"]
    assert all(round(r["faces"], 1) == r["published_faces"] for r in rows.values())
    assert rows["convex hull"]["difference_percent"] == rows["convex hull"]["published_difference_percent"] == 3.5
    assert [r["depends_on_sizes"] for r in rows.values()] == ["no", "difference", "difference", "difference"]
    assert all(len(r["shapes"]) == 9 for r in rows.values())
    assert any("does not print its sizes" in line for line in said["notes"])
    assert sum("of 50 random sets" in line for line in said["notes"]) == 3


def test_self_distance_gives_a_row_for_each_side_and_threshold(capsys, monkeypatch):
    monkeypatch.setattr(bench_self_distance, "POSTURES", 20)
    assert main(["bench", "self_distance", "--robot", "armar3"]) == 0
    out = capsys.readouterr().out
    for name in ("ours_50mm", "coal_50mm", "ours_200mm", "coal_200mm", "73 pairs", "coal / ours"):
        assert name in out


def test_distance_has_a_row_for_each_function_and_for_the_whole_robot(capsys, monkeypatch):
    for name, value in (("REPEATS", 3), ("POSTURES", 20), ("PAIRS", 100), ("CAPSULES", 10)):
        monkeypatch.setattr(bench_distance, name, value)
    assert main(["bench", "distance", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["name"]: r for r in said["rows"]}
    assert list(rows)[:6] == ["pp", "pl", "pt", "ll", "lt", "tt"]
    assert rows["tt"]["published_ns"] == 888.7 and rows["tt"]["unit"] == "ns" and rows["tt"]["n"] == 300
    assert {"lt_two_step", "obb_test", "aabb_test", "coal_capsule_pair"} < set(rows)
    whole, near = rows["lola_all_pairs"], rows["lola_within_100mm_obb"]
    assert whole["unit"] == "us" and whole["segments"] == 18 and whole["near_pairs"] == whole["segment_pairs"] == 132
    assert near["near_pairs"] < 40 and all(r["median"] > 0 for r in said["rows"])
    assert any("table 6.9" in line and "888.7" in line for line in said["notes"])
    assert main(["bench", "distance", "--robot", "hrp2"]) == 0
    assert "hrp2_all_pairs" in capsys.readouterr().out


@pytest.fixture(scope="module")
def ik_bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_ik, "TICKS", 12)
        patch.setattr(bench_ik, "ROUNDS", 2)
        rows = bench_ik.measure(argparse.Namespace(robot="lola"))
    return {r["name"]: r for r in rows}, bench_ik.notes(rows)


def test_ik_has_a_row_for_each_of_our_solvers(ik_bench):
    rows, notes = ik_bench
    ours = ["tick_nullspace", "tick_nullspace_free", "tick_qp", "tick_qp_peers", "tick_no_collision"]
    assert list(rows)[:5] == ours
    assert [rows[n]["rows"] for n in ours] == [28, 22, 29, 44, 44], "the tasks that the notes tell of"
    assert all(rows[n]["failed"] == 0 and rows[n]["n"] == 24 and rows[n]["median"] > 0 for n in ours)
    assert all(rows[n]["pairs"] == 132 for n in ours[:4]) and "pairs" not in rows["tick_no_collision"]
    assert rows["tick_qp"]["active_pairs"] > 5
    assert any("28 task rows" in line for line in notes)


@pytest.mark.parametrize("peer", ["pink", "mink"])
def test_peers_of_the_ik_bench_have_our_tasks_and_pairs(ik_bench, peer):
    pytest.importorskip(peer)
    rows, notes = ik_bench
    every, none = rows[f"{peer}_all_pairs"], rows[f"{peer}_no_collision"]
    assert every["rows"] == none["rows"] == rows["tick_qp_peers"]["rows"] and every["failed"] == none["failed"] == 0
    assert every["pairs"] == 132 and "pairs" not in none
    for kind in ("all_pairs", "no_collision"):
        ratio = rows[f"ours_to_{peer}_{kind}"]
        assert ratio["unit"] == "ratio" and ratio["p99"] <= ratio["best"]
    assert any(line.startswith(peer) for line in notes)


@pytest.mark.parametrize("name", ["ours", "pink", "mink"])
def test_solvers_of_the_ik_bench_find_the_motion_that_the_targets_come_from(name):
    """So all were given the same robot, postures and targets, each in its own order and units."""
    robot = load_robot("lola", "floating")
    motion = Motion(robot, 3)
    if name == "ours":
        settings = IkSettings(damping=1e-4, smoothing=0.0, acceleration=np.inf)
        case = peer_program("row", robot, motion, False, WholeBodyIk(robot, settings, collisions=False))
    else:
        pytest.importorskip(name)
        case = {"pink": pink_case, "mink": mink_case}[name]("row", robot, motion, 0)
    case.aim(1)
    assert case.tick(motion.q[1])
    moved = (motion.q[2] - motion.q[1])[robot.iq :] / DT
    assert np.abs(moved).max() > 1.0
    assert np.allclose(case.velocity(), moved, atol=0.03 * np.abs(moved).max())


def test_unknown_robot_is_one_line(capsys):
    assert main(["bench", "self_distance", "--robot", "hrp3"]) == 2
    said = capsys.readouterr()
    assert "did you mean" in said.err + said.out and "Traceback" not in said.err


@pytest.mark.parametrize("word", ["bounding_volumes", "self_distance", "distance", "ik"])
def test_help_lists_the_bench(capsys, word):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert word in capsys.readouterr().out
