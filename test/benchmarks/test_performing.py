"""`humanoid bench perform`: peers get the robot itself, true or estimated states, and rows say what became of them."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from evidence.benchmarks.performing import comparison
from evidence.benchmarks.performing.comparison import COLUMNS, Case, notes
from evidence.benchmarks.performing.crocoddyl_peer import CrocoddylPerformer
from evidence.benchmarks.performing.peer_process import ARRAYS, SOLES, peers_folder, urdf_with_soles
from evidence.benchmarks.performing.states import EstimatedStates
from evidence.benchmarks.performing.tsid_peer import TsidPerformer
from humanoid_control.errors import UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.performing import FeasibilitySettings, OpenLoop, make_feasible, perform
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting import CLIP, retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from test.performing.pieces import piece

needs_peers = pytest.mark.skipif(
    not peers_folder().exists(), reason="TSID and crocoddyl are not installed (HUMANOID_PEERS names their folder)"
)


@pytest.fixture(scope="module")
def case():
    robot = load_robot("hrp2", "floating")
    trajectory = piece(retarget_whole_body(load_body_points("dance"), robot, method=CLIP), 3.0, 4.0)
    return Case(
        "hrp2", "dance", "mujoco", robot, trajectory, make_feasible(trajectory, robot, FeasibilitySettings(hold=0.3))
    )


def test_peers_get_the_soles_of_the_robot(case, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(urdf_with_soles(case.robot))
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data, soles, q = model.createData(), RigidSoles.of(case.robot), case.motion.q[80]
    assert list(model.names)[2:] == list(case.robot.joint_names)
    assert sum(i.mass for i in model.inertias) == pytest.approx(case.robot.mass)
    pin.framesForwardKinematics(model, data, q)
    R, p = (x[0] for x in soles.poses(case.robot, q[None]))
    for f, name in enumerate(SOLES):
        sole = data.oMf[model.getFrameId(name)]
        assert sole.translation == pytest.approx(p[f], abs=1e-6) and sole.rotation == pytest.approx(R[f], abs=1e-6)
        toe = data.oMf[model.getFrameId(f"{name}_toe")].translation
        assert toe == pytest.approx(p[f] + R[f] @ soles.corners[f, 2:].mean(axis=0), abs=1e-6)
    assert {name for name in ARRAYS if not hasattr(case.motion, name)} == set()


@pytest.mark.nightly
def test_rows_say_what_became_of_each(case, monkeypatch):
    monkeypatch.setattr(comparison.Case, "of", classmethod(lambda cls, *_: case))
    rows = comparison.measure("hrp2", only="pd_feasible,ours")
    by = {r["name"]: r for r in rows}
    assert list(by) == ["pd_feasible", "ours"] and set(COLUMNS) <= set(rows[0])
    assert {r["danced"] for r in rows} == {"to the end"}
    assert by["ours"]["unit"] == "ms" and by["ours"]["median"] > 0 and by["pd_feasible"]["median"] == ""
    assert by["ours"]["root_cm"] < 0.2 and all(len(line) > 20 for line in notes(rows))


def test_one_that_is_not_here_costs_no_other(case, monkeypatch, capsys):
    monkeypatch.setenv("HUMANOID_PEERS", "/nowhere")
    monkeypatch.setattr(comparison.Case, "of", classmethod(lambda cls, *_: case))
    rows = comparison.measure("hrp2", only="tsid_stiff,crocoddyl,twist2,pd_feasible")
    assert [r["name"] for r in rows] == ["pd_feasible"]
    said = capsys.readouterr()
    told = (said.out + said.err).replace("\n", " ")
    assert "tsid is not in /nowhere" in told and "crocoddyl is omitted" in told and "twist2 is omitted" in told


def test_a_peer_that_is_none_is_refused():
    with pytest.raises(UnknownNameError, match="tsid_stiff"):
        comparison.measure(only="tsid_stif")


def test_estimated_states_are_near_the_true_ones(case):
    world, off = case.world(), []
    states = EstimatedStates("hrp2", case.motion, world, 0)
    states.start()

    def watch(t, engine):
        q, v = states(t, engine)
        off.append([np.abs(q[:3] - engine.q[:3]).max(), np.abs(q[7:] - engine.q[7:]).max(), np.abs(v - engine.v).max()])

    assert perform(case.motion, world, OpenLoop(case.motion), watch).survived
    most = np.array(off).max(axis=0)
    assert most[0] < 0.02 and 1e-4 < most[1] < 0.02 and most[2] < 0.5, "near, and by noisy sensors"


@needs_peers
@pytest.mark.parametrize("name", ["tsid_stiff", "crocoddyl"])
def test_a_peer_performs_by_the_true_state(case, name):
    row = case.row(name)
    assert row["danced"] == "to the end" and row["root_cm"] < 1.0 and 0 < row["median"] < 20
    assert row["version"].split(" with pin ")[0]


@needs_peers
def test_a_peer_falls_by_a_state_that_is_not_its_own(case):
    """A constant state feeds nothing back: what the rows measure is the peer's feedback."""

    class Frozen:
        def start(self):
            pass

        def __call__(self, t, engine):
            return case.motion.q[0], np.zeros(case.robot.nv)

    performer = TsidPerformer(case.robot, case.motion, "stiff", Frozen())
    world = SimulationConfig("hrp2", "floating", "mujoco").build(case.robot)
    try:
        assert not perform(case.motion, world, performer).survived
    finally:
        performer.close()


@needs_peers
def test_a_peer_that_breaks_is_said_in_one_line(case):
    broken = replace(case.motion, q=case.motion.q[:, :-1])
    with pytest.raises(ImportError, match="crocoddyl does not run: ") as e:
        CrocoddylPerformer(case.robot, broken)
    assert "\n" not in str(e.value)
