"""Every task's Jacobian and drift against finite differences, on random configurations of floating robots."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.ik import (
    CenterOfMass,
    CenterOfMassTask,
    FramePoint,
    FrameTask,
    GazeTask,
    HalfSpaceTask,
    JointTask,
    LimbCenterOfMass,
    LineTask,
    OrientationTask,
    PlaneTask,
    PointsTask,
    PointTask,
    PostureTask,
    RelativeFrameTask,
    WholeBodyIk,
    lola_tasks,
)
from humanoid_control.ik.tasks import Task, prepare, prepare_second_order
from humanoid_control.robots import load_robot


def random_q(robot, rng, reach=2.0):
    joints = rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5))
    if robot.base == "fixed":
        return robot.q(joints)
    turn = pin.exp3(rng.normal(size=3))
    return robot.q(joints, pin.SE3(turn, rng.uniform(-reach, reach, 3)))


def arm(robot):
    model = robot.model
    return [j for j in range(2, model.njoints) if model.names[j].startswith("l_") and "hip" not in model.names[j]][:3]


KINDS = {
    "hand pose": lambda r: FrameTask(r, "l_forearm", orientation_weight=0.7, name="t"),
    "points": lambda r: PointsTask(r, [r.point_frame("l_elbow"), r.point_frame("r_wrist")]),
    "posture": lambda r: PostureTask(r, weights=np.linspace(0.1, 2, r.n)),
    "point with offset": lambda r: PointTask(
        r, FramePoint(r, r.model.getFrameId("r_forearm"), (0.1, -0.2, 0.3)), name="t"
    ),
    "point in the axes of a link": lambda r: PointTask(
        r,
        FramePoint(r, r.point_frame("l_wrist")),
        FramePoint(r, r.point_frame("r_elbow")),
        r.point_frame("sternum"),
        name="t",
    ),
    "orientation": lambda r: OrientationTask(r, "r_wrist", name="t"),
    "relative orientation": lambda r: OrientationTask(
        r, r.point_frame("r_wrist"), r.model.getFrameId("head"), name="t"
    ),
    "relative pose": lambda r: RelativeFrameTask(r, "l_wrist", "r_wrist", name="t"),
    "centre of mass": lambda r: CenterOfMassTask(r, name="t"),
    "foot from the centre of mass": lambda r: PointTask(
        r, FramePoint(r, r.point_frame("l_elbow")), CenterOfMass(), r.point_frame("sternum"), name="t"
    ),
    "arm's centre of mass": lambda r: PointTask(
        r, LimbCenterOfMass(r, arm(r)), CenterOfMass(), r.point_frame("sternum"), name="t"
    ),
    "joints": lambda r: JointTask(r, [r.joint_names[3], r.joint_names[0]], name="t"),
    "gaze": lambda r: GazeTask(r, "head", (1.0, 0.3, -0.2), name="t"),
    "line": lambda r: LineTask(r, "l_wrist", (1, 2, 3), (0.2, -1, 0.4), name="t"),
    "plane": lambda r: PlaneTask(r, "l_wrist", (1, 2, 3), (0.2, -1, 0.4), name="t"),
    "outside the half-space": lambda r: HalfSpaceTask(r, CenterOfMass(), (0, 0, 50), (0.1, 0, 1), name="t"),
}


def made(kind, robot):
    """A task of a kind, with the neutral posture for its target, where it needs one."""
    task = KINDS[kind](robot)
    if not isinstance(task, LineTask | PlaneTask | HalfSpaceTask):
        task.set_target_from(robot.q())
    return task


def at_target(task, robot, data):
    """Orientation errors have the identity for derivative only where they vanish; put the target there."""
    if isinstance(task, FrameTask):
        task.X_target = pin.SE3(data.oMf[task.frame])
    elif isinstance(task, OrientationTask):
        task.target = np.array(task.value(data))
    elif isinstance(task, RelativeFrameTask):
        task.X_target = data.oMf[task.turn.relative_to].actInv(data.oMf[task.turn.frame])
    elif isinstance(task, GazeTask):
        task.target = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_derivative_of_the_error(kind, base):
    robot = load_robot("wabian2" if base == "floating" else "lola", base)
    rng, h, task, data = np.random.default_rng(1), 1e-6, made(kind, robot), robot.model.createData()
    for _ in range(12):
        q, dv = random_q(robot, rng), rng.normal(size=robot.nv)
        prepare(robot, data, q)
        at_target(task, robot, data)
        J, v = task.rows(robot, data, q)
        assert np.allclose(v, task.gain * task.error(robot, data, q), atol=1e-12)
        errors = []
        for s in (1, -1):
            moved = pin.integrate(robot.model, q, s * h * dv)
            prepare(robot, data, moved)
            errors.append(task.error(robot, data, moved))
        assert np.allclose(-J @ dv, (errors[0] - errors[1]) / (2 * h), atol=2e-7 * (1 + np.abs(J).max()))


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", KINDS)
def test_drift_is_the_change_of_the_rows_along_the_motion(kind, base):
    """dJ/dt v by the task itself, by the general form, and by differences of J v, are the same."""
    robot = load_robot("wabian2" if base == "floating" else "lola", base)
    rng, task, data = np.random.default_rng(2), made(kind, robot), robot.model.createData()
    for _ in range(6):
        q, v, h = random_q(robot, rng), rng.normal(size=robot.nv), 1e-5
        Jv = []
        for s in (1, -1):
            moved = pin.integrate(robot.model, q, s * h * v)
            prepare(robot, data, moved)
            Jv.append(task.rows(robot, data, moved)[0] @ v)
        prepare_second_order(robot, data, q, v)
        exact, scale = task.drift(robot, data, q, v), 1 + np.abs(Jv[0]).max() ** 2
        assert np.allclose(exact, (Jv[0] - Jv[1]) / (2 * h), atol=1e-6 * scale)
        assert np.allclose(Task.drift(task, robot, data, q, v), exact, atol=1e-5 * scale)


def test_limb_centre_of_mass_is_the_mean_of_its_links_and_of_all_the_whole():
    robot = load_robot("lola", "floating")
    rng, data = np.random.default_rng(3), robot.model.createData()
    everything = LimbCenterOfMass(robot, range(1, robot.model.njoints))
    for _ in range(10):
        q = random_q(robot, rng)
        prepare(robot, data, q)
        assert np.allclose(everything.position(robot, data), robot.center_of_mass(q))
        assert np.allclose(everything.jacobian(robot, data), CenterOfMass().jacobian(robot, data))
        limb = LimbCenterOfMass(robot, arm(robot))
        parts = [(robot.model.inertias[j].mass, data.oMi[j].act(robot.model.inertias[j].lever)) for j in arm(robot)]
        mean = sum(m * c for m, c in parts) / sum(m for m, _ in parts)
        assert np.allclose(limb.position(robot, data), mean)
        sub = robot.model.getJointId("l_shoulder_flexion")
        J = pin.jacobianSubtreeCenterOfMass(robot.model, data, q, sub)
        prepare(robot, data, q)
        assert np.allclose(LimbCenterOfMass(robot, robot.model.subtrees[sub].tolist()).jacobian(robot, data), J)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("posture", "line", "plane", "outside the half-space")])
def test_a_task_without_a_target_says_so(kind):
    robot = load_robot("lola", "fixed")
    task, q = KINDS[kind](robot), robot.q("zero")
    prepare(robot, robot.data, q)
    for use in (task.error, task.rows):
        with pytest.raises(ConfigError, match="its target was never set"):
            use(robot, robot.data, q)
    task.set_target_from(q)
    assert np.allclose(task.error(robot, robot.data, q), 0.0, atol=1e-9), "what is reached already is the target"


@pytest.mark.parametrize("make", [FrameTask, OrientationTask, GazeTask, PointTask, lambda r, n: PointsTask(r, [n])])
def test_what_a_task_moves_is_named(make):
    robot = load_robot("hrp2", "fixed")
    made = [make(robot, what) for what in ("r_wrist", "r_hand", robot.point_frame("r_wrist"))]
    frame = robot.model.frames[robot.point_frame("r_wrist")].name
    if not isinstance(made[0], PointsTask):  # which has a name of its own
        assert [task.name for task in made] == ["r_wrist", "r_hand", frame]
    with pytest.raises(UnknownNameError, match="did you mean r_wrist"):
        make(robot, "r_wirst")
    with pytest.raises(ConfigError, match="no frame 9999"):
        make(robot, 9999)


BOUND_TO_PLACES = ("line", "plane", "outside the half-space", "points", "posture", "joints")


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in BOUND_TO_PLACES])
def test_relative_tasks_do_not_see_where_the_robot_stands(kind):
    """Moved by a kilometre and turned, every task gives the same rows for the joints, its target moved along."""
    robot = load_robot("lola", "floating")
    rng, data, task = np.random.default_rng(4), robot.model.createData(), made(kind, robot)
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 2.0), np.array([1000.0, -700.0, 3.0]))
    R = np.kron(np.eye(2), X.rotation)
    for _ in range(5):
        q, dv = random_q(robot, rng), rng.normal(size=robot.nv)
        prepare(robot, data, q)
        at_target(task, robot, data)
        here = task.rows(robot, data, q)[0] @ dv
        far = q.copy()
        far[:7] = pin.SE3ToXYZQUAT(X * pin.XYZQUATToSE3(q[:7]))
        prepare(robot, data, far)
        if isinstance(task, GazeTask):
            task.target = X.act(task.target)
        there = task.rows(robot, data, far)[0] @ dv
        in_the_world = isinstance(task, FrameTask) or (
            getattr(task, "axes", 0) is None or getattr(task, "relative_to", 0) is None
        )
        assert np.allclose(there, R[: len(here), : len(here)] @ here if in_the_world else here, atol=1e-8)


def test_gaze_is_zero_when_aimed_and_the_angle_otherwise():
    robot = load_robot("lola", "floating")
    frame, data, rng = robot.model.getFrameId("head"), robot.model.createData(), np.random.default_rng(5)
    task = GazeTask(robot, frame, (2.0, 0.0, 0.0), name="look")
    for _ in range(50):
        q, angle = random_q(robot, rng), rng.uniform(0, np.pi - 0.01)
        prepare(robot, data, q)
        X = data.oMf[frame]
        side = rng.normal(size=3) * [0, 1, 1]
        side /= np.linalg.norm(side)
        task.target = X.act(3.0 * (np.cos(angle) * np.array([1.0, 0, 0]) + np.sin(angle) * side))
        assert np.linalg.norm(task.error(robot, data, q)) == pytest.approx(angle, abs=1e-9)
        assert task.angle(data) == pytest.approx(angle, abs=1e-9)
        for straight in (5.0, -5.0):  # ahead and behind: finite, and right about which is which
            task.target = X.act(np.array([straight, 0.0, 0.0]))
            J, v = task.rows(robot, data, q)
            assert np.isfinite(J).all() and np.isfinite(v).all()
            assert np.linalg.norm(task.error(robot, data, q)) == pytest.approx(0 if straight > 0 else np.pi, abs=1e-9)


def test_rows_of_a_gaze_go_on_where_it_is_aimed():
    """The quotient of angle and sine is replaced there: the rows are those of a hair's breadth beside it."""
    robot = load_robot("lola", "floating")
    frame, data, q = robot.model.getFrameId("head"), robot.model.createData(), random_q(robot, np.random.default_rng(6))
    task = GazeTask(robot, frame, (2.0, 0.0, 0.0), name="look")
    prepare(robot, data, q)
    task.target = data.oMf[frame].act(np.array([5.0, 1e-6, 0.0]))
    beside = task.rows(robot, data, q)[0]
    task.target = data.oMf[frame].act(np.array([5.0, 0.0, 0.0]))
    np.testing.assert_allclose(task.rows(robot, data, q)[0], beside, atol=1e-5)
    assert np.abs(beside).max() > 0.1


def test_half_space_has_a_row_only_outside():
    robot = load_robot("lola", "floating")
    data, q = robot.model.createData(), robot.q()
    prepare(robot, data, q)
    height = robot.center_of_mass(q)[2]
    inside = HalfSpaceTask(robot, CenterOfMass(), (0, 0, height - 0.1), (0, 0, 2), name="above")
    outside = HalfSpaceTask(robot, CenterOfMass(), (0, 0, height + 0.1), (0, 0, 2), name="above")
    assert len(inside.error(robot, data, q)) == 0 and inside.rows(robot, data, q)[0].shape == (0, robot.nv)
    assert inside.height(robot, data) == pytest.approx(0.1)
    assert outside.error(robot, data, q) == pytest.approx([0.1])


def test_lolas_task_vector_is_square_and_without_the_arms_leaves_six():
    """Table 4.2: 28 rows for the base and the 22 joints that move; dropping both arms leaves 6 (T-01, T-02)."""
    robot = load_robot("lola", "floating")
    biped, data, rng = lola_tasks(robot), robot.model.createData(), np.random.default_rng(6)
    moving = np.array([*range(6), *(6 + k for k, n in enumerate(robot.joint_names) if n not in biped.held)])
    assert len(moving) == 28 and len(biped.tasks) == 12
    assert all("neck" in n or "camera" in n for n in biped.held)
    for k in range(20):
        q = robot.q() if k == 0 else random_q(robot, rng)
        prepare(robot, data, q)
        J = np.vstack([t.rows(robot, data, q)[0] for t in biped.all()])[:, moving]
        assert J.shape == (28, 28) and np.linalg.matrix_rank(J) == 28
        J = np.vstack([t.rows(robot, data, q)[0] for t in biped.without("left_arm", "right_arm")])[:, moving]
        assert J.shape == (22, 28) and np.linalg.matrix_rank(J) == 22


@pytest.mark.parametrize("name", ["lola", "hrp2", "wabian2", "suralp"])
def test_task_vector_of_any_biped_wants_the_neutral_posture_and_has_full_rank(name):
    robot = load_robot(name, "floating")
    biped, data, q = lola_tasks(robot), robot.model.createData(), robot.q()
    prepare(robot, data, q)
    assert all(np.abs(t.error(robot, data, q)).max() < 1e-12 for t in biped.all())
    moving = [*range(6), *(6 + k for k, n in enumerate(robot.joint_names) if n not in biped.held)]
    J = np.vstack([t.rows(robot, data, q)[0] for t in biped.all()])[:, moving]
    assert np.linalg.matrix_rank(J) == len(J) <= len(moving)


MISTAKES = [
    (lambda r: lola_tasks(load_robot("lola", "fixed")), RobotError, "needs a floating base"),
    (lambda r: lola_tasks(load_robot("armar3", "floating")), UnknownNameError, "r_foot_tcp"),
    (lambda r: lola_tasks(r).without("left_amr"), UnknownNameError, "did you mean left_arm"),
    (lambda r: JointTask(r, ["l_hip_rotatoin"], name="t"), UnknownNameError, "did you mean l_hip_rotation"),
    (lambda r: GazeTask(r, 5, (0, 0, 0), name="look"), ConfigError, "must have a direction"),
    (lambda r: GazeTask(r, 5, name="look").set_target((0, 0)), ConfigError, r"must have the shape \(3,\), got \(2,\)"),
    (lambda r: FrameTask(r, 5, name="f").set_target(pin.SE3.Identity(), (0, 0)), ConfigError, "velocity must have"),
    (lambda r: OrientationTask(r, 5, name="o").set_target(np.eye(2)), ConfigError, r"must have the shape \(3, 3\)"),
    (lambda r: PostureTask(r, np.zeros(1)), ConfigError, "posture must have the shape"),
    (lambda r: PostureTask(r, weights=np.ones(2)), ConfigError, "weights must have the shape"),
    (lambda r: PlaneTask(r, CenterOfMass(), (0, 0, 0), (0, 0, 0), name="p"), ConfigError, "must have a length"),
    (lambda r: PointTask(r, CenterOfMass(), gain=-1, name="p"), ConfigError, "must not be negative"),
]


@pytest.mark.parametrize(("make", "error", "words"), MISTAKES, ids=[m[2] for m in MISTAKES])
def test_a_mistake_is_one_clear_line(make, error, words):
    with pytest.raises(error, match=words) as caught:
        make(load_robot("lola", "floating"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda r: PointTask("hand", "l_wrist"),
        lambda r: PointTask(r, ["l_wrist"]),
        lambda r: PointTask(r, "l_wrist", weight="heavy"),
        lambda r: PointTask(r, "l_wrist", gain=float("nan")),
        lambda r: PointsTask(r, "l_wrist"),
        lambda r: PointsTask("hand", ["l_wrist"]),
        lambda r: CenterOfMassTask("balance"),
        lambda r: FrameTask("hand", "l_wrist"),
        lambda r: OrientationTask(r, 3.5),
        lambda r: JointTask(r, r.joint_names[0]),
        lambda r: JointTask("elbow", r.joint_names[:1]),
        lambda r: PostureTask("neutral"),
        lambda r: PostureTask(r.name, r.postures["neutral"]),
        lambda r: WholeBodyIk("lola"),
    ],
)
def test_a_wrong_call_is_refused_when_the_task_is_made(wrong):
    with pytest.raises(ConfigError) as error:
        wrong(load_robot("lola", "fixed"))
    assert "\n" not in str(error.value)
