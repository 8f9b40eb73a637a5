"""Models of others: what their files say, and what is said about bad ones."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.tendons.files.cardsflow import read_cardsflow
from humanoid_control.tendons.files.mjcf import read_mjcf
from humanoid_control.tendons.routing.geometry import TendonGeometry

MJCF = """<mujoco model="toy"><compiler angle="radian"/>
<default><default class="arm"><joint axis="0 1 0" range="-1 2"/></default></default>
<worldbody><site name="a" pos="0 0 .1"/>
  <body name="upper" childclass="arm"><joint name="elbow"/><geom name="g" type="cylinder" size=".02 .1"/>
    <geom name="box" type="box" size="1 1 1"/><site name="b" pos=".05 0 0"/><site name="s" pos="0 .1 0"/>
    <body name="lower" pos="0.2 0 0"><site name="c" pos=".1 0 0"/></body></body></worldbody>
<tendon><spatial name="t"><site site="a"/><geom geom="g" sidesite="s"/><site site="c"/></spatial></tendon></mujoco>"""
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


def test_a_small_model_of_each_kind(tmp_path):
    (tmp_path / "a.xml").write_text(MJCF)
    (tmp_path / "model.urdf").write_text(URDF)
    (tmp_path / "cardsflow.xml").write_text(ROUTING)
    toy = read_mjcf(tmp_path / "a.xml")
    assert toy.name == "toy" and toy.geometry().joint_names == ("elbow",)
    np.testing.assert_allclose(toy.geometry().limits, [[-1, 2]])
    cable = read_cardsflow(tmp_path).geometry()
    assert cable.zero == pytest.approx([0.1 * 2**0.5 + 0.1])
    assert cable.jacobian(np.zeros(1)) == pytest.approx(0.1 / 2**0.5), "the arm turns down, away from the origin"


def test_included_files_take_the_place_of_their_include(tmp_path):
    body = MJCF[MJCF.index("<worldbody>") : MJCF.index("<tendon>")]
    (tmp_path / "body.xml").write_text(f"<mujoco>{body}</mujoco>")
    (tmp_path / "a.xml").write_text(MJCF.replace(body, '<include file="body.xml"/>'))
    (tmp_path / "whole.xml").write_text(MJCF)
    a, b = (read_mjcf(tmp_path / f) for f in ("a.xml", "whole.xml"))
    assert a.tendons.tendons == b.tendons.tendons
    (tmp_path / "body.xml").write_text('<mujoco><include file="body.xml"/></mujoco>')
    with pytest.raises(RobotError, match="includes itself"):
        read_mjcf(tmp_path / "a.xml")


BAD_MJCF = {
    "no xml": (MJCF[:200], "not a MuJoCo model, XML error"),
    "urdf": (URDF, "outermost element is <robot>, expected <mujoco>"),
    "no tendon": (MJCF.replace("spatial", "fixed"), "has no <spatial> tendons"),
    "site": (MJCF.replace('site="c"', 'site="d"'), "unknown site 'd'.*spatial 't'"),
    "geom": (MJCF.replace('geom geom="g"', 'geom geom="box"'), "unknown sphere or cylinder 'box'"),
    "side": (MJCF.replace('sidesite="s"', 'sidesite="c"'), "'c' is on body 'lower', its geom on 'upper'"),
    "end": (MJCF.replace('<site site="c"/></spatial>', "</spatial>"), "spatial 't'.*needs a point at both ends"),
    "number": (MJCF.replace(".05 0 0", ".05 0"), "site 'b': 'pos' must be 3 finite number"),
    "nan": (MJCF.replace(".05 0 0", ".05 nan 0"), "site 'b': 'pos' must be 3 finite number"),
    "class": (MJCF.replace('childclass="arm"', 'childclass="amr"'), "unknown default class 'amr': did you mean arm"),
    "axis": (MJCF.replace("0 1 0", "0 0 0", 1), "joint 'elbow': its axis is zero"),
    "kind": (MJCF.replace('<joint name="elbow"', '<joint type="screw" name="elbow"'), "its type is 'screw'"),
    "range": (MJCF.replace("-1 2", "2 -1"), "its range 2 .. -1 is empty"),
    "ball": (
        MJCF.replace('<joint name="elbow"', '<joint type="ball" name="elbow"'),
        "'elbow' has 3 degrees of freedom",
    ),
    "step": (MJCF.replace('<site site="a"/>', '<sites site="a"/>'), "unknown step of a path 'sites'"),
    "replicate": (MJCF.replace("<body", '<replicate count="2"/><body', 1), "<replicate> is not read"),
    "twice": (MJCF.replace('name="b"', 'name="a"'), "site 'a': the name is used twice"),
    "global": (MJCF.replace('"radian"', '"radian" coordinate="global"'), "global coordinates are not read"),
}
BAD_ROUTING = {
    "link": (ROUTING.replace('"arm"', '"amr"'), "unknown link 'amr': did you mean arm"),
    "millimetres": (ROUTING.replace("0.1 0 0<", "100 0 0<"), "myoMuscle 'm': a coordinate of 100.*millimetres"),
    "number": (ROUTING.replace("0.1 0 0<", "0.1 x 0<"), "a via point must be 'x y z' in metres, got '0.1 x 0'"),
    "type": (ROUTING.replace("FIXPOINT", "MESH", 1), "unknown type of via point 'MESH'"),
    "empty": ("<cardsflow/>", "it has no <myoMuscle>"),
    "other": (MJCF, "outermost element is <mujoco>, expected <cardsflow>"),
}


@pytest.mark.parametrize("case", BAD_MJCF)
def test_a_bad_mujoco_model_is_answered_in_one_line(case, tmp_path):
    text, says = BAD_MJCF[case]
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_mjcf(tmp_path / "a.xml").geometry()
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("case", BAD_ROUTING)
def test_a_bad_routing_file_is_answered_in_one_line(case, tmp_path):
    text, says = BAD_ROUTING[case]
    (tmp_path / "model.urdf").write_text(URDF)
    (tmp_path / "cardsflow.xml").write_text(text)
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_cardsflow(tmp_path)
    assert "\n" not in str(e.value)


def test_files_that_are_not_there_are_named(tmp_path):
    for read in (read_mjcf, read_cardsflow):
        with pytest.raises(RobotError, match="cannot be read as"):
            read(tmp_path / "none.xml")
