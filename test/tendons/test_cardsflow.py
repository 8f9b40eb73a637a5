"""Tendons of CARDSflow robots: what their files say, and what is said about bad ones."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.tendons import TendonGeometry, read_cardsflow

URDF = """<robot name="r"><link name="base"/><link name="arm"/><joint name="j" type="revolute"><parent link="base"/>
<child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
ROUTING = """<cardsflow><myoMuscle name="m"><link name="base"><viaPoint type="FIXPOINT">0 0 0.1</viaPoint></link>
<link name="arm"><viaPoint type="FIXPOINT">0.1 0 0</viaPoint><viaPoint type="FIXPOINT">0.2 0 0</viaPoint></link>
</myoMuscle></cardsflow>"""


def test_vrpuppet_is_read_with_its_six_tendons(model_file):
    folder = model_file("muscles/cardsflow/VRpuppet/cardsflow.xml").parent
    puppet = read_cardsflow(folder)
    model, axes, rng = puppet.model, [f"axis{k}" for k in range(6)], np.random.default_rng(0)
    data = model.createData()
    for _ in range(20):
        q = rng.uniform(-0.3, 0.3, model.nq)
        held = {n: float(q[model.joints[model.getJointId(n)].idx_q]) for n in puppet.tendons.names}
        box, whole = TendonGeometry(model, puppet.tendons, axes, held), puppet.geometry()
        assert box.tendon_names == tuple(f"motor{k}" for k in range(6)) and len(whole.joint_names) == 12
        pin.framesForwardKinematics(model, data, q)
        frames = [[data.oMf[model.getFrameId(e.link, pin.FrameType.BODY)] for e in t.path] for t in puppet.tendons]
        paths = zip(frames, [t.path for t in puppet.tendons], strict=True)
        ends = [[X.act(np.array(e.xyz)) for X, e in zip(*pair, strict=True)] for pair in paths]
        expected = [np.linalg.norm(b - a) for a, b in ends]
        for geometry in (box, whole):
            lengths, _G = geometry.raw(geometry.theta(q)[None])
            np.testing.assert_allclose(lengths[0], expected, atol=1e-12)
        assert np.linalg.matrix_rank(box.jacobian(box.theta(q)), 1e-6) == 6


def test_a_small_model(tmp_path):
    (tmp_path / "model.urdf").write_text(URDF)
    (tmp_path / "cardsflow.xml").write_text(ROUTING)
    cable = read_cardsflow(tmp_path).geometry()
    assert cable.zero == pytest.approx([0.1 * 2**0.5 + 0.1])
    assert cable.jacobian(np.zeros(1)) == pytest.approx(0.1 / 2**0.5), "the arm turns down, away from the origin"


BAD_ROUTING = {
    "link": (ROUTING.replace('"arm"', '"amr"'), "unknown link 'amr': did you mean arm"),
    "millimetres": (ROUTING.replace("0.1 0 0<", "100 0 0<"), "myoMuscle 'm': a coordinate of 100.*millimetres"),
    "number": (ROUTING.replace("0.1 0 0<", "0.1 x 0<"), "a via point must be 'x y z' in metres, got '0.1 x 0'"),
    "type": (ROUTING.replace("FIXPOINT", "MESH", 1), "unknown type of via point 'MESH'"),
    "empty": ("<cardsflow/>", "it has no <myoMuscle>"),
    "other": ("<mujoco/>", "outermost element is <mujoco>, expected <cardsflow>"),
}


@pytest.mark.parametrize("case", BAD_ROUTING)
def test_a_bad_routing_file_is_answered_in_one_line(case, tmp_path):
    text, says = BAD_ROUTING[case]
    (tmp_path / "model.urdf").write_text(URDF)
    (tmp_path / "cardsflow.xml").write_text(text)
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_cardsflow(tmp_path)
    assert "\n" not in str(e.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RobotError, match="cannot be read as"):
        read_cardsflow(tmp_path / "none.xml")
