"""Tendons of MuJoCo models: what their files say, what is said about bad ones, and lengths beside MuJoCo's own."""

import sys

import numpy as np
import pytest

from humanoid_control.errors import EnvironmentProblem, RobotError, UnknownNameError
from humanoid_control.tendons import read_mjcf

mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")

MJCF = """<mujoco model="toy"><compiler angle="radian"/>
<default><default class="arm"><joint axis="0 1 0" range="-1 2"/></default></default>
<worldbody><site name="a" pos="0 0 .1"/>
  <body name="upper" childclass="arm"><joint name="elbow"/><geom name="g" type="cylinder" size=".02 .1"/>
    <geom name="box" type="box" size="1 1 1"/><site name="b" pos=".05 0 0"/><site name="s" pos="0 .1 0"/>
    <body name="lower" pos="0.2 0 0"><site name="c" pos=".1 0 0"/></body></body></worldbody>
<tendon><spatial name="t"><site site="a"/><geom geom="g" sidesite="s"/><site site="c"/></spatial></tendon></mujoco>"""
URDF = """<robot name="r"><link name="base"/><link name="arm"/><joint name="j" type="revolute"><parent link="base"/>
<child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
FIXED = (
    MJCF[: MJCF.index("<tendon>")]
    + """<tendon><fixed name="t"><joint joint="elbow" coef="1"/></fixed></tendon>
</mujoco>"""
)


def compare(path, postures=40, seed=0, joints=None):
    """Greatest differences of lengths and moment arms from MuJoCo's, and how many tendons touch a solid how often."""
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    geometry = read_mjcf(path).geometry(joints)
    ids = [mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_JOINT, n) for n in geometry.joint_names]
    rng, length, arm, wrapped = np.random.default_rng(seed), [], [], 0
    limits = np.clip(geometry.limits, -3, 3)
    J = np.zeros((m.ntendon, m.nv))
    for _ in range(postures):
        theta = rng.uniform(limits[:, 0], limits[:, 1])
        d.qpos[m.jnt_qposadr[ids]] = theta
        mujoco.mj_forward(m, d)
        if m.nv < J.shape[1] or d.ten_J.size != J.size:
            mujoco.mju_sparse2dense(J, d.ten_J.ravel(), m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
        else:
            J[:] = d.ten_J.reshape(J.shape)
        ours, G = geometry.raw(theta[None])
        length.append(np.abs(ours[0] - d.ten_length))
        arm.append(np.abs(G[0] - J[:, m.jnt_dofadr[ids]]))
        wrapped += int((d.wrap_obj.ravel()[: d.ten_wrapnum.sum()] >= 0).sum())
    return np.array(length), np.array(arm), wrapped, geometry


@pytest.mark.parametrize("name", ["myoelbow_1dof6muscles", "myoelbow_2dof6muscles"])
def test_the_elbow_models_have_mujocos_lengths_and_moment_arms(name, model_file):
    path = model_file(f"muscles/myo_sim_meshfree/{name}_meshfree.xml")
    length, arm, wrapped, geometry = compare(path, 300)
    assert len(geometry.tendon_names) == 6 and wrapped > 100
    assert length.max() < 1e-9 and arm.max() < 1e-9


def scene(rng, sides):
    """An arm of two hinges and a slide, with tendons over random spheres and cylinders."""
    vec = lambda s: " ".join(f"{v:.6f}" for v in rng.uniform(-s, s, 3))  # noqa: E731
    solids, spatial = "", ""
    for k in range(6):
        kind, r = ("sphere", "cylinder")[k % 2], rng.uniform(0.02, 0.05)
        size = f"{r:.4f}" if kind == "sphere" else f"{r:.4f} 0.2"
        solids += f'<geom name="g{k}" type="{kind}" size="{size}" pos="{vec(0.02)}" euler="{vec(1.5)}"/>'
        centre_near = rng.uniform(-1, 1, 3)
        reach = {"none": 1.0, "outside": 3.0, "inside": 0.3}[sides[k % len(sides)]]
        solids += f'<site name="side{k}" pos="{" ".join(f"{v:.6f}" for v in centre_near * reach * r)}"/>'
        side = f'sidesite="side{k}"' if sides[k % len(sides)] != "none" else ""
        lead = '<pulley divisor="0.4"/>' if k == 3 else ""  # one divides the first branch too
        spatial += f"""<spatial name="t{k}">{lead}<site site="a{k}"/><geom geom="g{k}" {side}/><site site="b{k}"/>
            <pulley divisor="2.5"/><site site="b{k}"/><site site="c{k}"/></spatial>"""
    ends = "".join(f'<site name="a{k}" pos="{vec(0.12)}"/>' for k in range(6))
    mids = "".join(f'<site name="b{k}" pos="{vec(0.12)}"/>' for k in range(6))
    tips = "".join(f'<site name="c{k}" pos="{vec(0.12)}"/>' for k in range(6))
    return f"""<mujoco><compiler angle="radian" eulerseq="XYz"/>
    <default><joint limited="true" range="-1.5 1.5"/><default class="s"><joint type="slide" range="-.1 .1"/></default>
    </default><worldbody><body pos="0.3 -0.2 1" euler="0.3 0.1 -2">{ends}
      <body name="u" pos="0.01 0.02 0.03" axisangle="1 0.2 0 0.7"><joint name="j0" axis="0.1 1 0.3" pos="0.01 0 0.02"/>
        <joint name="j1" axis="1 0 0.2" ref="0.2"/><geom size=".01" mass="1"/>
        <frame euler="0.1 0.2 0.3">{solids}</frame>
        <body name="f" pos="0.02 0 0.01"><joint name="j2" class="s" axis="0 0.3 1"/><geom size=".01" mass="1"/>{mids}
          <body><joint name="j3" axis="0 1 0"/><geom size=".01" mass="1"/>{tips}</body></body></body></body></worldbody>
    <tendon>{spatial}</tendon></mujoco>"""


@pytest.mark.parametrize("sides", [("none",), ("outside",), ("inside",)], ids=lambda s: s[0])
def test_random_spheres_and_cylinders_are_wrapped_as_in_mujoco(sides, tmp_path):
    if sides != ("none",) and int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("the sides of wrapping solids have their present meaning since MuJoCo 4")
    met = 0
    for seed in range(8):
        path = tmp_path / f"{sides[0]}{seed}.xml"
        path.write_text(scene(np.random.default_rng(seed), sides))
        length, arm, wrapped, _geometry = compare(path, 25, seed, ("j3", "j0", "j2", "j1"))
        bound = 1e-6 if sides == ("inside",) else 1e-9
        assert length.max() < bound, f"seed {seed}: {np.argwhere(length > bound)}"
        assert arm.max() < 1e2 * bound
        met += wrapped
    assert met > 200, "the comparison is about wrapping"


def test_a_small_model(tmp_path):
    (tmp_path / "a.xml").write_text(MJCF)
    toy = read_mjcf(tmp_path / "a.xml")
    assert toy.name == "toy" and toy.geometry().joint_names == ("elbow",)
    np.testing.assert_allclose(toy.geometry().limits, [[-1, 2]])
    assert [t.name for t in toy.tendons] == ["t"]


def test_included_files_take_the_place_of_their_include(tmp_path):
    body = MJCF[MJCF.index("<worldbody>") : MJCF.index("<tendon>")]
    (tmp_path / "body.xml").write_text(f"<mujoco>{body}</mujoco>")
    (tmp_path / "a.xml").write_text(MJCF.replace(body, '<include file="body.xml"/>'))
    (tmp_path / "whole.xml").write_text(MJCF)
    a, b = (read_mjcf(tmp_path / f) for f in ("a.xml", "whole.xml"))
    assert a.tendons.tendons == b.tendons.tendons
    (tmp_path / "body.xml").write_text('<mujoco><include file="body.xml"/></mujoco>')
    with pytest.raises(RobotError, match="already included"):
        read_mjcf(tmp_path / "a.xml")


BAD_MJCF = {
    "no xml": (MJCF[:200], "does not read it: XML parse error"),
    "urdf": (URDF, "has no <spatial> tendons"),
    "no tendon": (FIXED, "has no <spatial> tendons"),
    "site": (MJCF.replace('site="c"', 'site="d"'), "site 'd' not found.*line 7"),
    "geom": (MJCF.replace('geom geom="g"', 'geom geom="box"'), "geom 'box' .* is not sphere or cylinder"),
    "side": (MJCF.replace('sidesite="s"', 'sidesite="c"'), "'c' is on body 'lower', its geom on 'upper'"),
    "end": (MJCF.replace('<site site="c"/></spatial>', "</spatial>"), "tendon 't'.*not bracketed by sites"),
    "number": (MJCF.replace(".05 0 0", ".05 0"), "attribute 'pos' does not have enough data.*'site', line 5"),
    "nan": (MJCF.replace(".05 0 0", ".05 nan 0"), "site 'b': its position is not finite"),
    "class": (MJCF.replace('childclass="arm"', 'childclass="amr"'), "unknown default childclass.*line 4"),
    "axis": (MJCF.replace("0 1 0", "0 0 0", 1), "axis too small in joint.*'elbow'"),
    "kind": (MJCF.replace('<joint name="elbow"', '<joint type="screw" name="elbow"'), "invalid keyword: 'screw'"),
    "range": (MJCF.replace("-1 2", "2 -1"), "joint 'elbow': its range 2 .. -1 is empty"),
    "ball": (
        MJCF.replace('<joint name="elbow"', '<joint type="ball" range="0 1" name="elbow"'),
        "'elbow' has 3 degrees of freedom",
    ),
    "step": (MJCF.replace('<site site="a"/>', '<sites site="a"/>'), "unrecognized element.*'sites', line 7"),
    "twice": (MJCF.replace('name="b"', 'name="a"'), "repeated name 'a' in site"),
    "global": (MJCF.replace('"radian"', '"radian" coordinate="global"'), "global coordinates no longer supported"),
}


@pytest.mark.parametrize("case", BAD_MJCF)
def test_a_bad_mujoco_model_is_answered_in_one_line(case, tmp_path, monkeypatch):
    text, says = BAD_MJCF[case]
    (tmp_path / "a.xml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_mjcf(tmp_path / "a.xml").geometry()
    assert "\n" not in str(e.value) and ("a.xml" in str(e.value) or case == "ball")
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_replicated_bodies_are_read(tmp_path):
    """Three sites made of one by <replicate>; a tendon runs over all of them."""
    text = MJCF.replace(
        '<site name="b" pos=".05 0 0"/>',
        """<replicate count="3" offset="0 0 .1">
    <site name="b" pos=".05 0 0"/></replicate>""",
    )
    steps = "".join(f'<site site="b{k}"/>' for k in range(3))
    (tmp_path / "a.xml").write_text(text.replace('<geom geom="g" sidesite="s"/>', steps))
    (tendon,) = read_mjcf(tmp_path / "a.xml").tendons
    np.testing.assert_allclose([e.xyz for e in tendon.path[1:4]], [[0.05, 0, 0], [0.05, 0, 0.1], [0.05, 0, 0.2]])


def test_neither_masses_nor_files_of_meshes_are_needed(tmp_path):
    """What a tendon's path does not depend on is left out, and with it what refers to it."""
    text = MJCF.replace(
        "<worldbody>",
        """<asset><mesh name="m" file="nowhere.stl"/><texture name="x" type="2d"
    file="no.png"/><material name="mat" texture="x"/></asset><actuator><motor tendon="t"/></actuator><worldbody>""",
    )
    text = text.replace('type="box" size="1 1 1"', 'type="mesh" mesh="m"')
    text = text.replace('<site name="c"', '<joint name="light" axis="1 0 0"/><site name="c" material="mat"')
    (tmp_path / "a.xml").write_text(text)
    assert read_mjcf(tmp_path / "a.xml").geometry().joint_names == ("elbow", "light")


def test_without_mujoco_it_is_said_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.xml").write_text(MJCF)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(EnvironmentProblem, match=r"needs the package mujoco: pip install .*\[mujoco\]"):
        read_mjcf(tmp_path / "a.xml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RobotError, match=r"none\.xml: cannot be read as"):
        read_mjcf(tmp_path / "none.xml")
