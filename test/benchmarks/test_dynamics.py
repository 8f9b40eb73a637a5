"""`humanoid bench dynamics`: its rows, its fits, and that pinocchio is given the same robot."""

import json

import numpy as np
import pytest

from evidence.benchmarks import dynamics as bench_dynamics
from evidence.benchmarks.closed_chains import chains_of
from evidence.benchmarks.dynamics import growth, slope
from evidence.benchmarks.page import SECTIONS
from humanoid_control.cli.main import main
from humanoid_control.multibody import ForwardDynamics, Model
from humanoid_control.robots import load_robot
from humanoid_control.simulation.drives.drive_train import RIGID, build_drive_train


@pytest.mark.nightly
def test_dynamics_has_a_row_for_each_model_solver_and_stage(capsys, monkeypatch):
    few = {"CALLS": 40, "WORLD_CALLS": 5, "DILL_CALLS": 20, "DILL_LEVELS": range(1, 4)}
    for name, value in few.items():
        monkeypatch.setattr(bench_dynamics, name, value)
    assert main(["bench", "dynamics", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["name"]: r for r in said["rows"]}
    for kind, dof in (("type2", 30), ("type3", 46)):
        for solver, stages in (("on", "fw1 bw fw2"), ("sparse", "fw1 matrix solve"), ("dense", "fw1 matrix solve")):
            row = rows[f"fd_{kind}_{solver}"]
            assert row["dof"] == dof and row["n"] == 40 and 0 < row["median"] <= row["p99"]
            whole = [rows[f"{kind}_{solver}_{s}"]["in_loop"] for s in stages.split()]
            assert whole[0] > 0 and np.isclose(
                sum(rows[f"{kind}_{solver}_{s}"]["median"] for s in stages.split()), whole[-1], atol=0.01
            )
    assert rows["pinocchio_aba_armature"]["dof"] == 30 and rows["pinocchio_aba_armature"]["median"] > 0
    if "mujoco_step_lola" in rows:
        depths = [rows[n]["sole_depth_mm"] for n in ("world_step_lola", "mujoco_step_lola")]
        assert all(0 < d < 5 for d in depths) and rows["mujoco_forward"]["n"] > 0
        assert rows["world_step_lola_stiff"]["sole_depth_mm"] < 0.2 * depths[0]
        assert any("mm" in line and "MuJoCo" in line for line in said["notes"])
    assert rows["pinocchio_constrained_type2"]["dof"] == 48 and rows["pinocchio_aba_tree"]["dof"] == 30
    assert [rows[f"dill_{n}{s}"]["dof"] for n in (1, 2, 3) for s in ("", "_sparse", "_dense")] == [2] * 3 + [4] * 3 + [
        8
    ] * 3
    assert any("0.941-1.16" in line for line in said["notes"])
    text = SECTIONS["dynamics"](rows)
    assert "`pinocchio_aba_armature`" in text and "`world_step_lola_elastic`" in text


def test_pinocchios_closed_chains_are_the_robot_of_the_subsystems():
    """With plain rotors as armature in ours too, only the tilt of the knee's screw is left, which ours neglects."""
    robot, rng = load_robot("lola", "floating"), np.random.default_rng(0)
    train = build_drive_train(robot, RIGID)
    chains = chains_of(robot, train)
    assert chains.model.nv == 48 and len(chains.contacts) == 6
    q = train.model.neutral()
    q[7:] = 0.5 * bench_dynamics.posture(robot, train.joints)
    v, tau = 0.3 * rng.normal(size=30), np.concatenate([np.zeros(6), 10 * rng.normal(size=24)])
    x, u = chains.close(q, v)
    theirs = chains.accelerate(x, u, chains.loads(tau))[chains.tree_v]
    screws = {x.body for x in train.shafts if "knee" in x.drive.name or "ankle" in x.drive.name}
    plain = {x.body for x in train.shafts} - screws
    model = Model([b for b in train.model.bodies if b.name not in plain], train.model.coordinates)
    assert len(model.loops) == 4
    ours = ForwardDynamics(model)(q, v, tau, armature=chains.tree.armature)
    assert np.abs(theirs - ours).max() < 1e-4 * np.abs(ours).max()  # measured: 3.5e-5
    assert np.abs(theirs - ForwardDynamics(train.model)(q, v, tau)).max() < 1e-2 * np.abs(ours).max()
    with pytest.raises((ArithmeticError, np.linalg.LinAlgError)):
        q[train.model.coordinates.index("l_knee_flexion") + 1] = np.nan
        chains.close(q, v)


def test_growth_and_slope_find_what_was_put_in():
    dof = np.array([2.0, 8.0, 64.0, 512.0])
    a, b, off = growth(dof, 3.0 + 0.25 * dof)
    assert np.allclose([a, b, off], [3.0, 0.25, 0.0], atol=1e-12)
    assert np.isclose(slope(dof, 0.1 * dof**2.5), 2.5)
    assert growth(dof, 0.1 * dof**2)[2] > 0.5
