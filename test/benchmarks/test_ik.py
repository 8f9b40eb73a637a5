"""The bench of inverse kinematics: its rows, and that the peers are given the same problem."""

import coal
import numpy as np
import pinocchio as pin
import pytest

from evidence.benchmarks import ik as bench
from evidence.benchmarks.ik_cases import (
    DT,
    CaseMotion,
    chain_robot,
    far_chain_program,
    peer_program,
    saturated_program,
)
from evidence.benchmarks.page import SECTIONS
from evidence.benchmarks.peers import mink_case, pink_case, urdf_with_shapes
from evidence.benchmarks.placo_peer import placo_folder, tick_cases
from humanoid_control.ik import IkSettings, WholeBodyIk, default_limits
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def measured():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "TICKS", 12)
        patch.setattr(bench, "ROUNDS", 2)
        rows = bench.measure(robot="lola")
    return {r["name"]: r for r in rows}, bench.notes(rows)


@pytest.mark.nightly
def test_ik_has_a_row_for_each_of_our_solvers(measured):
    rows, notes = measured
    ours = ["tick_nullspace", "tick_nullspace_free", "tick_qp", "tick_qp_peers", "tick_no_collision"]
    assert list(rows)[:5] == ours
    assert [rows[n]["rows"] for n in ours] == [28, 22, 29, 44, 44], "the tasks that the notes tell of"
    assert all(rows[n]["failed"] == 0 and rows[n]["n"] == 24 and rows[n]["median"] > 0 for n in ours)
    assert all(rows[n]["pairs"] == 132 for n in ours[:4]) and "pairs" not in rows["tick_no_collision"]
    assert 0 < rows["tick_qp"]["active_pairs"] < rows["tick_qp"]["near_pairs"], "not every near pair is a row"
    far = [f"tick_qp_saturated_{name}" for name in ("lola", "hrp2", "wabian2")]
    far.append("tick_100_joints_far")
    assert all(rows[n]["failed"] == 0 and rows[n]["n"] == 24 and rows[n]["median"] > 0 for n in far)
    assert any("28 task rows" in line for line in notes)
    text = SECTIONS["ik"](rows)
    assert all(n in text for n in far)
    assert "`tick_qp_peers`" in text and f"| {rows['tick_qp']['active_pairs']:.4g} |" in text


def need(peer):
    """Skip where a peer is not installed."""
    if peer != "placo":
        pytest.importorskip(peer, reason=f"needs {peer}: `make bench-peers` installs it")
    elif not (placo_folder() / "cmeel.prefix").is_dir():
        pytest.skip("needs PlaCo in a folder of its own: `make bench-peers` installs it")


@pytest.mark.parametrize("peer", ["placo", "pink", "mink"])
def test_peers_of_the_measured_have_our_tasks_and_pairs(measured, peer):
    need(peer)
    rows, notes = measured
    every, none = rows[f"{peer}_all_pairs"], rows[f"{peer}_no_collision"]
    assert every["rows"] == none["rows"] == rows["tick_qp_peers"]["rows"] and every["failed"] == none["failed"] == 0
    assert every["pairs"] == 132 and "pairs" not in none
    for kind in ("all_pairs", "no_collision"):
        ratio = rows[f"{peer}_{kind}_to_ours"]
        assert ratio["unit"] == "ratio" and ratio["p99"] <= ratio["best"]
    assert any(line.startswith(peer) for line in notes)


@pytest.mark.parametrize("name", ["ours", "placo", "pink", "mink"])
def test_solvers_of_the_measured_find_the_motion_that_the_targets_come_from(name):
    """So all were given the same robot, postures and targets, each in its own order and units."""
    robot = load_robot("lola", "floating")
    motion = CaseMotion(robot, 3)
    if name == "ours":
        settings = IkSettings(damping=1e-4, smoothing=0.0, acceleration=np.inf, acceleration_scale=np.inf)
        solver = WholeBodyIk(robot, settings, default_limits(robot, self_collision=False))
        case = peer_program("row", robot, motion, False, solver)
    else:
        need(name)
        if name == "placo":
            case = tick_cases(robot, motion)[0]
        else:
            case = {"pink": pink_case, "mink": mink_case}[name]("row", robot, motion, 0)
    if case.remote is None:
        case.aim(1)
        assert case.tick(motion.q[1])
    else:
        assert len(case.remote(range(1, 2))) == 1 and case.failed == 0
    moved = (motion.q[2] - motion.q[1])[robot.iq :] / DT
    assert np.abs(moved).max() > 1.0
    assert np.allclose(case.velocity(), moved, atol=0.03 * np.abs(moved).max())


def test_the_urdf_for_pinocchio_has_our_shapes_where_they_are():
    """Distances of all pairs, by coal on that URDF; elliptic capsules are the only ones that differ."""
    robot = load_robot("wabian2", "fixed")
    moving = [robot.joint_names[j] for j in robot.imitation_joints]
    urdf, pairs = urdf_with_shapes(robot, moving, ["l_wrist"])
    model = pin.buildModelFromXML(urdf)
    geometry = pin.buildGeomFromUrdfString(model, urdf, pin.GeometryType.COLLISION)
    kinds = [type(g.geometry) for g in geometry.geometryObjects]
    assert coal.Capsule in kinds and coal.Cylinder not in kinds
    assert sorted(model.names[1:]) == sorted(moving)
    index = {g.name: k for k, g in enumerate(geometry.geometryObjects)}
    for a, b in pairs:
        geometry.addCollisionPair(pin.CollisionPair(index[a], index[b]))
    joints = robot.postures["neutral"].copy()
    joints[robot.imitation_joints] += 0.3 * np.random.default_rng(0).uniform(-1, 1, len(moving))
    joints = np.clip(joints, robot.lower, robot.upper)
    q = np.zeros(model.nq)
    for name in moving:
        q[model.joints[model.getJointId(name)].idx_q] = joints[robot.index[name]]
    data, found = model.createData(), geometry.createData()
    pin.computeDistances(model, data, geometry, found, q)
    theirs = np.array([r.min_distance for r in found.distanceResults])
    shapes = {s.name: s for s in robot.shapes}
    kept = [k for k, (i, j) in enumerate(robot.pairs) if (i, j) in set(pairs_of(robot, moving))]
    ours = robot.collision_monitor("shapes").update(robot.q(joints), np.inf)
    distance = dict(zip(ours.pair.tolist(), ours.distance.tolist(), strict=True))
    exact = [k for k in kept if all("Elliptic" not in type(robot.shapes[i].shape).__name__ for i in robot.pairs[k])]
    assert len(kept) == len(theirs) and len(exact) > 10 and len(shapes) == len(robot.shapes)
    for place, k in enumerate(kept):
        if k in exact and distance[k] > 0:
            assert abs(theirs[place] - distance[k]) < 1e-5


def pairs_of(robot, moving):
    from evidence.benchmarks.peers import pairs_moved

    return pairs_moved(robot, moving)


def test_a_chain_stretches_towards_what_is_out_of_its_reach():
    case = far_chain_program("far", robot := chain_robot(20))
    case.begin()
    fast = 0
    for k in range(60):
        case.aim(k)
        assert case.tick(robot.q())
        fast += int((np.abs(case.velocity()) > 0.999 * robot.velocity).sum())
    assert robot.n == 20 and len(robot.pairs) == 3 and fast > 60


def test_far_targets_saturate_most_joints():
    for name in bench.SATURATED:
        case = saturated_program(name, robot := load_robot(name, "floating"))
        case.begin()
        held = 0
        before = np.zeros(robot.n)
        for k in range(60):
            case.aim(k)
            assert case.tick(robot.q())
            v = case.velocity()
            most = robot.accelerations_within(200.0, 1.0).acceleration * DT
            held += int(((np.abs(v) > 0.999 * robot.velocity) | (np.abs(v - before) > 0.999 * most)).sum())
            before = v.copy()
        assert held > 60 * 4
