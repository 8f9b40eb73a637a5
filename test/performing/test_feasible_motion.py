"""Feasible motions: contacts and drives can carry them, on whatever axes the world has, and what cannot be is said."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError, ConfigError, RobotError
from humanoid_control.performing import DynamicMotion, FeasibilitySettings, feasibility_row, make_feasible
from humanoid_control.performing.clip_dynamics import friction_cone
from humanoid_control.performing.source_motion import clip_times
from humanoid_control.robots import load_robot
from humanoid_control.walking.gait import GRAVITY
from test.performing.pieces import elsewhere, mirrored, piece, retargeted_dance
from test.robots_under_test import by_kind

ONE = FeasibilitySettings(pace=1.0)


@pytest.fixture(scope="module")
def dances():
    """The first quarter of a minute of the built-in dance on a robot, retargeted; each once."""
    made = {}

    def dance(name):
        if name not in made:
            robot = load_robot(name, "floating")
            made[name] = robot, retargeted_dance(robot, 15.0)
        return made[name]

    return dance


@pytest.fixture(scope="module", params=by_kind(("lola", "hrp2", "wabian2")))
def performed(request, dances):
    """Five seconds of it with steps, made feasible."""
    robot, trajectory = dances(request.param)
    return robot, make_feasible(piece(trajectory, 3.0, 8.0), robot)


@pytest.fixture(scope="module")
def short(dances):
    """HRP-2, three seconds of it, and what is made of them at the clip's own pace."""
    robot, trajectory = dances("hrp2")
    part = piece(trajectory, 3.0, 6.0)
    return robot, part, make_feasible(part, robot, ONE)


def sole_corners(robot, m):
    """Corners (T, 8, 3) of the soles by pinocchio, in the order of the forces."""
    from humanoid_control.performing.source_motion import RigidSoles

    soles = RigidSoles.of(robot)
    R, p = soles.poses(robot, m.q)
    return (np.einsum("tfij,fkj->tfki", R, soles.corners) + p[:, :, None]).reshape(len(m), 8, 3), soles


def test_contacts_and_drives_carry_it(performed):
    robot, m = performed
    row = feasibility_row(m, robot.mass * GRAVITY)
    assert not m.fallback and row["steps"] >= 4
    assert row["infeasible_percent"] == 0.0 and row["missing_percent"] < 0.5
    assert row["torque_beyond_percent"] < 0.5 and row["speed_share"] <= 1.0 + 1e-6
    assert row["moved_root_cm"] < 1.0 and row["way_percent"] > 85 and m.center_error < 3e-3
    q = m.q[:, robot.iq :]
    assert (q >= robot.lower - 1e-9).all() and (q <= robot.upper + 1e-9).all()
    assert m.clearance.min() > 0.0


def test_soles_stay_where_they_stand_and_never_jump(performed):
    robot, m = performed
    corners, _ = sole_corners(robot, m)
    held = np.repeat(np.stack([m.stands & ~m.toe_only, m.stands], axis=2).reshape(-1, 4), 2, axis=1)
    assert np.abs(corners[held][:, 2]).max() < 1e-3 and corners[..., 2].min() > -1e-3
    for f in (0, 1):
        both = m.stands[1:, f] & m.stands[:-1, f]
        toe = corners[:, 4 * f + 2 : 4 * f + 4]
        assert np.abs(np.diff(toe, axis=0)[both]).max() < 5e-4
    # From frame to frame no sole is faster than a step, and its speed does not jump.
    steps = np.diff(corners, axis=0) * m.rate
    assert np.linalg.norm(steps, axis=2).max() < 4.0
    assert np.linalg.norm(np.diff(steps, axis=0), axis=2).max() < 1.5


def test_forces_lie_in_the_cone_and_act_where_a_foot_stands(performed):
    robot, m = performed
    cone = friction_cone(FeasibilitySettings().friction)
    assert (m.forces[..., 2] >= 0).all()
    assert (np.abs(m.forces[..., :2]) <= cone[0, 0] * m.forces[..., 2:] + 1e-9).all()
    standing = np.repeat(np.stack([m.stands & ~m.toe_only, m.stands], axis=2).reshape(-1, 4), 2, axis=1)
    assert (m.forces[~standing] == 0).all()
    assert np.median(m.forces[..., 2].sum(axis=1)) == pytest.approx(robot.mass * GRAVITY, rel=0.05)


def test_forces_torques_and_accelerations_fulfil_the_equations_of_motion(performed):
    """M a + h = S tau + J' f + what is missing, with the drives' rotors at their joints; by pinocchio alone."""
    robot, m = performed
    corners, soles = sole_corners(robot, m)
    data, worst, momentum = robot.model.createData(), 0.0, 0.0
    for k in range(0, len(m), 37):
        left = pin.rnea(robot.model, data, m.q[k], m.v[k], m.a[k])
        pin.computeJointJacobians(robot.model, data, m.q[k])
        c = pin.centerOfMass(robot.model, data, m.q[k], m.v[k], m.a[k]).copy()
        right = np.zeros(robot.nv)
        for i in range(8):
            joint = int(soles.carriers[i // 4, i % 4])
            J = pin.getJointJacobian(robot.model, data, joint, pin.LOCAL_WORLD_ALIGNED)
            arm = corners[k, i] - data.oMi[joint].translation
            right += J[:3].T @ m.forces[k, i] + J[3:].T @ np.cross(arm, m.forces[k, i])
        J = pin.getJointJacobian(robot.model, data, 1, pin.LOCAL_WORLD_ALIGNED)
        lever = np.cross(c - data.oMi[1].translation, m.missing[k, :3])
        right += J[:3].T @ m.missing[k, :3] + J[3:].T @ (m.missing[k, 3:] + lever)
        worst = max(worst, np.abs((left - right)[:6]).max())
        rotor = 1e-3 * np.where(robot.effort_known, robot.effort, 0.0) * m.a[k, 6:]
        tau = (left - right)[6:] + rotor
        for follower, leader, multiplier, _ in robot.mimic:
            tau[leader] += multiplier * tau[follower]
            tau[follower] = 0.0
        assert np.abs(tau - m.torque[k]).max() < 1e-6 * robot.mass * GRAVITY
        total = m.forces[k].sum(axis=0) + m.missing[k, :3]
        momentum = max(momentum, np.abs(total - robot.mass * (data.acom[0] + [0, 0, GRAVITY])).max())
    assert worst < 1e-6 * robot.mass * GRAVITY and momentum < 1.0


def test_made_feasible_again_it_hardly_moves(short):
    robot, _, m = short
    again = make_feasible(m.trajectory(), robot, ONE)
    playing = again.playing
    assert again.moved[playing, 1].mean() < 3e-3 and again.moved[playing, 0].mean() < 1e-2
    assert [c for c in again.changes if c.unit == "deg"] == []


@pytest.mark.nightly
def test_it_does_not_depend_on_the_axes_of_the_world(short):
    robot, part, here = short
    yaw, at = 0.5 * np.pi, np.array([1000.0, -300.0])
    there = make_feasible(elsewhere(part, yaw, at), robot, ONE)
    assert np.abs(there.q[:, 7:] - here.q[:, 7:]).max() < 1e-6
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
    assert np.abs((there.center - [*at, 0.0]) @ turn - here.center).max() < 1e-6
    assert np.abs(there.torque - here.torque).max() < 1e-3


@pytest.mark.nightly
def test_the_mirror_image_is_made_the_mirror_image(dances):
    robot, trajectory = dances("lola")  # whose masses are symmetric; those of HRP-2 are not
    short = piece(trajectory, 3.0, 6.0)
    here, other = make_feasible(short, robot, ONE), make_feasible(mirrored(short, robot), robot, ONE)
    image = mirrored(here.trajectory(), robot)
    assert (other.stands[:, ::-1] == here.stands).all()
    assert np.abs(other.center * [1, -1, 1] - here.center).max() < 1e-6
    assert np.abs(other.trajectory().positions - image.positions).max() < 1e-5


@pytest.mark.nightly
def test_a_bow_that_hips_cannot_hold_becomes_shallower(dances):
    """HRP-2 has 100 N m at its hips: without the dial the bow of the dance is beyond them."""
    robot, trajectory = dances("hrp2")
    bow = piece(trajectory, 10.0, 14.0)
    held = make_feasible(bow, robot, ONE)
    free = make_feasible(bow, robot, replace(ONE, torque_share=1e3))
    assert held.torque_share.max() < 1.0 < free.torque_share.max()
    assert any(c.what == "posture eased for torque" for c in held.changes)


def test_a_fast_turn_is_slowed_there_alone(dances):
    robot, trajectory = dances("hrp2")
    still = piece(trajectory, 0.0, 0.1)
    T, rate = 300, trajectory.rate
    t = np.arange(T) / rate
    yaw = 1.6 * np.exp(-(((t - 3.0) / 0.14) ** 2))
    turning = replace(
        still,
        positions=np.repeat(still.positions[:1], T, axis=0),
        velocities=np.zeros((T, robot.n)),
        errors=np.zeros((T, 20)),
        saturated=np.zeros(T),
        clearance=np.full(T, np.inf),
        used_fallback=np.zeros(T, dtype=int),
        root_position=np.repeat(still.root_position[:1], T, axis=0),
        root_quaternion=np.stack([0 * yaw, 0 * yaw, np.sin(0.5 * yaw), np.cos(0.5 * yaw)], axis=1),
        contacts=np.ones((T, 4), dtype=bool),
    )
    m = make_feasible(turning, robot)
    pace = np.gradient(m.clock) * m.rate
    turns, calm = (m.clock > 2.8) & (m.clock < 3.2), (m.clock > 1.2) & (m.clock < 1.8)
    assert pace[turns].min() < 0.8 and pace[calm].min() > 0.97
    assert m.clock[-1] == pytest.approx((T - 1) / rate)


def test_where_the_posture_is_lost_it_is_the_retargeted_motion_and_said(short):
    robot, part, _ = short
    m = make_feasible(part, robot, replace(ONE, lost_center=1e-5))
    assert m.fallback.startswith("the retargeted motion: the centre of mass is missed by")
    frames = np.clip(np.round(m.clock * part.rate).astype(int), 0, len(part.positions) - 1)
    assert np.abs(m.q[:, 7:] - part.positions[frames]).mean() < 0.02
    assert feasibility_row(m, robot.mass * GRAVITY)["missing_percent"] > 1


def test_a_file_holds_all_of_it(short, tmp_path):
    m = short[2]
    m.write(tmp_path / "m.npz")
    read = DynamicMotion.read(tmp_path / "m.npz")
    assert read.changes == m.changes and read.joint_names == m.joint_names and read.robot == "hrp2"
    for name in ("q", "v", "a", "forces", "torque", "stands", "sole_position", "clock", "missing"):
        assert np.array_equal(getattr(read, name), getattr(m, name))


def test_files_that_are_none_are_refused(short, tmp_path):
    m = short[2]
    (tmp_path / "text.npz").write_text("no motion")
    with pytest.raises(ClipError, match=r"text\.npz: is not a feasible motion"):
        DynamicMotion.read(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", q=m.q)
    with pytest.raises(ClipError, match="lacks robot"):
        DynamicMotion.read(tmp_path / "other.npz")
    broken = m.q.copy()
    broken[3, 9] = np.nan
    replace(m, q=broken).write(tmp_path / "nan.npz")
    with pytest.raises(ClipError, match="q contains a non-numeric value"):
        DynamicMotion.read(tmp_path / "nan.npz")
    replace(m, rate=0.0).write(tmp_path / "rate.npz")
    with pytest.raises(ClipError, match="the rate must be positive"):
        DynamicMotion.read(tmp_path / "rate.npz")


def test_what_cannot_be_made_feasible_is_refused_by_name(dances):
    robot, trajectory = dances("hrp2")
    short = piece(trajectory, 3.0, 5.0)
    with pytest.raises(ClipError, match="does not belong to lola"):
        make_feasible(short, load_robot("lola", "floating"))
    broken = short.positions.copy()
    broken[7, 2] = np.inf
    with pytest.raises(ClipError, match="non-numeric value in frame 7"):
        make_feasible(replace(short, positions=broken), robot)
    with pytest.raises(ClipError, match="a rate of 0 Hz"):
        make_feasible(replace(short, rate=0.0), robot)
    with pytest.raises(ClipError, match="3 frames: at least 5"):
        make_feasible(piece(trajectory, 3.0, 3.0 + 3 / trajectory.rate), robot)
    flying = np.zeros_like(short.contacts)
    with pytest.raises(ClipError, match="100 % of the clip is in flight"):
        make_feasible(replace(short, contacts=flying), robot)
    with pytest.raises(RobotError, match="fixed base"):
        make_feasible(short, load_robot("hrp2", "fixed"))


@pytest.mark.parametrize(
    "changed,message",
    [
        ({"rate": 10.0}, "rate must be between 50 and 500 Hz"),
        ({"pace": 7.0}, "pace must be between 0.1 and 2"),
        ({"margin": -0.1}, "margin must not be negative"),
        ({"least_pace": 0.0}, "least_pace must be between"),
        ({"passes": 0}, "passes must be 1 or more"),
        ({"friction": np.nan}, "friction must not be negative, got nan"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ConfigError, match=message):
        FeasibilitySettings(**changed)


def test_the_clips_time_runs_from_rest_to_rest_at_its_pace():
    s = FeasibilitySettings()
    t = clip_times(10.0, s)
    assert t[0] == 0 and t[-1] == pytest.approx(10.0) and (np.diff(t) >= -1e-12).all()
    rate = np.diff(t) * s.rate
    assert rate.max() == pytest.approx(1.0, abs=1e-3) and np.abs(np.diff(rate)).max() < 0.02
    assert (t[: s.frames(s.hold)] == 0).all() and len(t) == pytest.approx((10.0 + 1.2 + 3.0) * s.rate, abs=3)
    half = np.ones(1001)
    half[400:600] = 0.5
    slow = clip_times(10.0, s, half)
    assert len(slow) - len(t) == pytest.approx(2.0 * s.rate, abs=5)
    assert len(clip_times(10.0, replace(s, pace=0.5))) == pytest.approx((20.0 + 1.2 + 3.0) * s.rate, abs=3)
    brief = clip_times(0.4, s)
    assert brief[-1] == pytest.approx(0.4) and (np.diff(brief) >= -1e-12).all()
