"""Joints of MuJoCo models that follow others, by polynomials and chains: lengths and moment arms as MuJoCo's."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.tendons import EstimatorSettings, read_mjcf
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.mappings.exact import group_mappings
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import JointCoupling, TendonGroup, TendonSet

mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")

COEFFICIENTS = {"knee_slide": (0.01, 0.03, -0.02, 0.01, 0.004), "patella": (0.1, 0.6, 0.1, 0.0, 0.0)}  # of the knee
COUPLED = """<mujoco model="knee"><compiler angle="radian" autolimits="true"/>
<default><geom size=".01" mass="1"/></default><worldbody><site name="a" pos="0.03 0.01 .1"/>
  <site name="b" pos="-.05 .02 .05"/>
  <body name="thigh"><joint name="hip" axis="1 0 0" range="-1 1"/><geom/><site name="c" pos=".04 0 -.2"/>
    <body name="shank" pos="0 0 -.3"><joint name="knee_slide" type="slide" axis="1 0 .2"/>
      <joint name="knee" axis="0 1 0.1" range="-1.2 1" ref="0.3"/><geom/><site name="d" pos=".02 .01 -.1"/>
      <body name="kneecap" pos=".03 0 0"><joint name="patella" axis="0 1 0" ref="-0.2"/>
        <joint name="toe" axis="0 0 1"/><geom/><site name="e" pos=".05 0.01 -.03"/>
        <geom name="g" type="cylinder" size=".02 .1" euler="1.5 0 0" pos=".01 0 -.02"/>
        <body name="foot" pos="0 0 -.1"><joint name="stiff" axis="1 1 0"/><geom/><site name="f" pos=".03 .01 -.02"/>
        </body>
      </body></body></body></worldbody>
<equality><joint joint1="knee_slide" joint2="knee" polycoef="{knee_slide}"/>
  <joint joint1="patella" joint2="knee" polycoef="{patella}"/>
  <joint joint1="toe" joint2="patella" polycoef="0 -0.5 0.3 0 0"/>
  <joint joint1="stiff" polycoef="0.2 0 0 0 0"/><joint joint1="hip" joint2="knee" active="false"/>
  <connect body1="foot" body2="thigh" anchor="0 0 0" active="false"/></equality>
<tendon><spatial name="t0"><site site="a"/><site site="c"/><site site="d"/></spatial>
  <spatial name="t1"><site site="b"/><site site="c"/><geom geom="g"/><site site="f"/></spatial>
  <spatial name="t2"><site site="c"/><site site="e"/><site site="f"/></spatial></tendon></mujoco>"""


@pytest.fixture
def coupled(tmp_path):
    text = {name: " ".join(map(str, c)) for name, c in COEFFICIENTS.items()}
    (tmp_path / "knee.xml").write_text(COUPLED.format(**text))
    return tmp_path / "knee.xml"


def followers(m, theta, names):
    """MuJoCo's qpos (nq,) for values theta of some joints, the others by its equalities; and d qvel / d theta dot."""
    index = {m.joint(j).name: int(m.jnt_qposadr[j]) for j in range(m.njnt)}
    q, T = m.qpos0.copy(), np.zeros((m.nv, len(names)))
    q[[index[n] for n in names]] = theta
    T[[int(m.joint(n).dofadr[0]) for n in names], range(len(names))] = 1.0
    for _ in range(4):  # a chain of equalities settles link by link
        for e in np.flatnonzero((m.eq_type == mujoco.mjtEq.mjEQ_JOINT) & (m.eq_active0 != 0)):
            joint, two, c = m.eq_obj1id[e], int(m.eq_obj2id[e]), m.eq_data[e, :5]
            one, dof = m.jnt_qposadr[joint], m.jnt_dofadr[joint]
            x = q[m.jnt_qposadr[two]] - m.qpos0[m.jnt_qposadr[two]] if two >= 0 else 0.0
            q[one] = m.qpos0[one] + sum(c[k] * x**k for k in range(5))
            T[dof] = sum(k * c[k] * x ** (k - 1) for k in range(1, 5)) * T[m.jnt_dofadr[two]] if two >= 0 else 0.0
    return q, T


def compiled_without_meshes(path):
    """The model with its equalities and tendons; the files of its meshes and textures need not be there."""
    spec = mujoco.MjSpec.from_file(str(path))
    for geom in [g for g in spec.geoms if g.meshname or g.hfieldname]:
        spec.delete(geom)
    for element in (*spec.geoms, *spec.sites, *spec.tendons):
        element.material = ""
    for kind in ("keys", "sensors", "skins", "excludes", "pairs", "materials", "textures", "meshes", "hfields"):
        for element in list(getattr(spec, kind)):
            spec.delete(element)
    spec.compiler.boundmass, spec.compiler.boundinertia = 1e-3, 1e-6
    return spec.compile()


def compare_coupled(path, postures, seed=0):
    """Greatest differences of lengths and moment arms from MuJoCo's with its equalities held, and their residual."""
    m = compiled_without_meshes(path)
    d, geometry, rng = mujoco.MjData(m), read_mjcf(path).geometry(), np.random.default_rng(seed)
    found = np.zeros(3)
    tendons = [mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_TENDON, n) for n in geometry.tendon_names]
    for _ in range(postures):
        theta = rng.uniform(*np.clip(geometry.limits, -3, 3).T)
        d.qpos[:], T = followers(m, theta, geometry.joint_names)
        mujoco.mj_forward(m, d)
        rows = (d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (d.efc_id < m.neq)
        J = np.zeros((m.ntendon, m.nv))
        if d.ten_J.size == J.size:
            J[:] = d.ten_J.reshape(J.shape)
        else:
            mujoco.mju_sparse2dense(J, d.ten_J.ravel(), m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
        lengths, arms = (x[0] for x in geometry.raw(theta[None]))
        off = (np.abs(lengths - d.ten_length[tendons]).max(), np.abs(arms - J[tendons] @ T).max())
        found = np.maximum(found, (*off, np.abs(d.efc_pos[rows]).max()))
    return found, geometry


def test_joints_that_follow_others_move_tendons_as_in_mujoco(coupled):
    """Polynomials of one joint with references, a chain of them, and a joint that is fixed."""
    (length, arm, residual), geometry = compare_coupled(coupled, 60)
    assert geometry.joint_names == ("hip", "knee") and residual < 1e-12
    assert length < 1e-9 and arm < 1e-9
    rng, h = np.random.default_rng(1), 1e-5
    for _ in range(20):
        x, v = rng.uniform(*geometry.limits.T), rng.standard_normal(2)
        slope = (geometry.jacobian(x + h * v) - geometry.jacobian(x - h * v)) / (2 * h)
        np.testing.assert_allclose(geometry.jacobian_directional(x, v), slope, atol=1e-8)


@pytest.mark.parametrize("name", ["leg/myolegs", "arm/myoarm"])
def test_the_knees_and_shoulders_of_a_human_model_are_coupled_as_in_mujoco(name, model_file):
    """14 joints that follow both knees and hips' polynomials; 11 that follow the shoulder."""
    path = model_file(f"muscles/myo_sim/{name}.xml")
    (length, arm, residual), geometry = compare_coupled(path, 20)
    assert len(geometry.tendons.couplings) >= 11 and residual < 1e-9
    assert length < 1e-9 and arm < 1e-8


def test_a_filter_estimates_the_joints_that_others_follow(coupled):
    model = read_mjcf(coupled)
    group = TendonGroup("leg", ("hip", "knee"), (), model.tendons.names)
    mapping = group_mappings(model.model, model.tendons, [group])["leg"]
    m = mujoco.MjModel.from_xml_path(str(coupled))
    d, f = mujoco.MjData(m), GroupFilter(group, mapping, EstimatorSettings("absolute", length_noise=1e-5))

    def measured(theta):
        d.qpos[:] = followers(m, theta, group.joints)[0]
        mujoco.mj_forward(m, d)
        return d.ten_length.copy()

    zero = measured(np.zeros(2))
    for k in range(60):
        theta = np.array([0.5 * np.sin(0.05 * k), 0.2 + 0.6 * np.sin(0.07 * k)])
        f.step(measured(theta) - zero)
    np.testing.assert_allclose(f.theta, theta, atol=np.radians(0.5))


def test_joints_that_follow_are_held_and_refused_as_they_are(coupled):
    model = read_mjcf(coupled)
    hip = TendonGeometry(model.model, model.tendons, ["hip"], {"knee": 0.5})
    both = model.geometry()
    np.testing.assert_allclose(hip.raw(np.array([[0.4]]))[0], both.raw(np.array([[0.4, 0.5]]))[0], atol=1e-14)
    with pytest.raises(RobotError, match="joint 'toe' follows 'knee'; name that one"):
        model.geometry(["toe"])
    with pytest.raises(RobotError, match="joint 'stiff' is fixed"):
        model.geometry(["stiff"])
    one = JointCoupling("a", "b", (0.0, 1.0))
    with pytest.raises(RobotError, match="joint 'a' follows itself: a -> b -> a"):
        TendonSet((), couplings=(one, JointCoupling("b", "a", (0.0, 1.0))))
    with pytest.raises(RobotError, match="joint 'a' follows both 'b' and 'c'"):
        TendonSet((), couplings=(one, JointCoupling("a", "c", (0.0, 1.0))))


def test_a_circle_of_equalities_is_answered_in_one_line(coupled):
    coupled.write_text(coupled.read_text().replace('joint1="stiff"', 'joint1="knee" joint2="toe"'))
    with pytest.raises(RobotError, match=r"knee.xml: equality: joint 'knee_slide' follows itself: .*knee") as e:
        read_mjcf(coupled)
    assert "\n" not in str(e.value)
