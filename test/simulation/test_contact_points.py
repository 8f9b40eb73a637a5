"""Contact points of whole robots: layout, wrenches on the bodies and in the feet, against pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Sphere
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation.contact.forces import contact_forces, contact_settle, contact_step, contact_table_of
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.points import ContactPoints, ContactSettings, pinocchio_bodies, shape_points
from humanoid_control.simulation.worlds.base import WorldSoles

PAR = ContactSettings(4.0e4, 250.0, 4.0e4, 250.0).array()


def poses(robot, seed=0):
    """A random moving posture near the ground: R, r, V of all pinocchio joints, and the data."""
    rng, model = np.random.default_rng(seed), robot.model
    q = pin.integrate(model, robot.q("neutral"), 0.05 * rng.normal(size=model.nv))
    q[2] = robot.q("neutral")[2] - 0.01
    v = 0.3 * rng.normal(size=model.nv)
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    R = np.array([X.rotation for X in data.oMi])
    r = np.array([X.translation for X in data.oMi])
    twists = [X.rotation @ t for X, t in zip(data.oMi, [[w.angular, w.linear] for w in data.v], strict=True) for t in t]
    return R, r, np.array(twists).reshape(-1, 6), q, v, data


def placed(points, ground, R, r, V):
    """The points on bodies with these poses and velocities, as the compiled loops read them."""
    return contact_table_of(points.body, points.points, ground, PAR, len(R))._replace(R=R, r=r, V=V)


def test_lola_has_48_contact_layer_states_four_to_a_sole_in_the_order_of_its_soles():
    """Table 2.3: 48 first-order states of independent contacts."""
    robot = load_robot("lola", "floating")
    points, soles = ContactPoints(robot), WorldSoles(robot)
    assert 3 * len(points) == 48
    assert points.names == [f"{name}_{k}" for name in soles.names for k in range(4)]
    assert points.body.tolist() == np.repeat(soles.joints, 4).tolist()
    assert points.points[:, :3].reshape(-1, 4, 3) == pytest.approx(soles.corners, abs=1e-12)


@pytest.mark.parametrize("name", ["lola", "hrp2"])
def test_wrenches_do_the_power_of_the_point_forces(name):
    """Virtual power: the body wrenches through pinocchio's Jacobians equal the forces at the points' own Jacobians."""
    robot = load_robot(name, "floating")
    cp, ground = ContactPoints(robot, links="all"), Ground.waves(0.02, 0.4)
    R, r, V, q, _, data = poses(robot)
    r[:, 2] -= 0.4
    s = np.abs(np.random.default_rng(1).normal(size=(len(cp), 3))) * 2e-3
    force, sdot = np.zeros((len(cp), 3)), np.zeros((len(cp), 3))
    table = placed(cp, ground.array, R, r, V)
    contact_forces(table, s, force, sdot)
    wrench = table.wrench
    assert (force[:, 2] > 1).sum() >= 10
    model = robot.model
    pin.computeJointJacobians(model, data, q)
    from_points, from_bodies = np.zeros(model.nv), np.zeros(model.nv)
    for k in range(len(cp)):
        b, centre = cp.body[k], r[cp.body[k]] + R[cp.body[k]] @ cp.points[k, :3]
        touch = centre - cp.points[k, 3] * ground.normal(*centre[:2])
        J = pin.getJointJacobian(model, data, int(b), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        from_points += (J[:3] - pin.skew(touch - r[b]) @ J[3:]).T @ force[k]
    for b in range(1, len(R)):
        J = pin.getJointJacobian(model, data, b, pin.ReferenceFrame.LOCAL)
        from_bodies += J[:3].T @ wrench[b, 3:] + J[3:].T @ wrench[b, :3]
    assert from_bodies == pytest.approx(from_points, abs=1e-9 * np.abs(from_points).max())


def test_forces_do_not_depend_on_the_bodies_frames_nor_on_the_heading():
    robot = load_robot("lola", "floating")
    R, r, V, *_ = poses(robot, 3)
    base, rng = ContactPoints(robot), np.random.default_rng(5)
    pin.seed(2)
    offsets = [pin.SE3.Random() for _ in R]  # other frames in the same bodies
    bodies = {k: (b, offsets[b].inverse() * X) for k, (b, X) in pinocchio_bodies(robot).items()}
    other = ContactPoints(robot, bodies)
    turn = pin.rpy.rpyToMatrix(0, 0, 1.1)  # and the world turned
    R2 = np.array([turn @ A @ X.rotation for A, X in zip(R, offsets, strict=True)])
    shift = np.array([A @ X.translation for A, X in zip(R, offsets, strict=True)])
    r2 = (r + shift) @ turn.T
    V2 = np.hstack([V[:, :3] @ turn.T, (V[:, 3:] + np.cross(V[:, :3], shift)) @ turn.T])
    ground, s = Ground.plane().array, rng.normal(size=(16, 3)) * 1e-3
    s[:, 0] = np.abs(s[:, 0])
    s2 = s.copy()
    s2[:, 1:] = s[:, 1:] @ turn[:2, :2].T
    out = []
    for cp, args, state in ((base, (R, r, V), s), (other, (R2, r2, V2), s2)):
        force = np.zeros((16, 3))
        contact_step(placed(cp, ground, *args), state, 1e-3, force)
        out.append((force, state))
    assert np.abs(out[0][0]).max() > 10
    assert out[1][0] == pytest.approx(out[0][0] @ turn.T, abs=1e-7)
    assert out[1][1][:, 1:] == pytest.approx(out[0][1][:, 1:] @ turn[:2, :2].T, abs=1e-12)


def test_soles_read_what_their_bodies_feel_about_the_middle_of_the_sole_in_its_axes():
    """The compiled wrenches on the bodies, moved to the sole frames by pinocchio; the same whatever the heading."""
    robot = load_robot("lola", "floating")
    R, r, V, q, _, data = poses(robot, 4)
    cp, soles, ground = ContactPoints(robot), WorldSoles(robot), Ground.plane().array
    s, force, table = np.zeros((16, 3)), np.zeros((16, 3)), placed(cp, ground, R, r, V)
    contact_step(table, s, 1e-3, force)
    read = soles.wrenches(data, force.reshape(-1, 4, 3))
    for foot in robot.feet:
        frame = robot.model.frames[robot.model.getFrameId(foot.link)]
        X_joint_sole = frame.placement * pin.SE3(np.eye(3), foot.corners().mean(axis=0))
        felt = table.wrench[frame.parentJoint]  # moment, then force, in the axes of the joint
        expected = X_joint_sole.actInv(pin.Force(felt[3:], felt[:3]))
        assert read[foot.name] == pytest.approx(expected.vector, abs=1e-8)
    assert max(np.abs(w).max() for w in read.values()) > 10
    turn = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 1.1), np.array([3.0, -2.0, 0.0]))
    q[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
    pin.forwardKinematics(robot.model, data, q)
    turned = soles.wrenches(data, (force @ turn.rotation.T).reshape(-1, 4, 3))
    assert all(turned[name] == pytest.approx(read[name], abs=1e-8) for name in read)


def test_a_robot_put_down_at_rest_feels_its_springs_and_nothing_else():
    robot = load_robot("hrp2", "floating")
    cp, ground = ContactPoints(robot), Ground.plane().array
    model, data = robot.model, robot.data
    q = robot.q("neutral")
    q[2] -= 0.002
    pin.forwardKinematics(model, data, q)
    R, r = np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi])
    s, force, table = np.full((8, 3), 9.0), np.zeros((8, 3)), placed(cp, ground, R, r, np.zeros((len(R), 6)))
    contact_settle(table, s)
    contact_step(table, s, 1e-3, force)
    depth = -(r[cp.body] + np.einsum("pij,pj->pi", R[cp.body], cp.points[:, :3]))[:, 2]
    assert depth.min() > 1e-3
    assert force[:, 2] == pytest.approx(4e4 * depth, rel=1e-9) and np.abs(force[:, :2]).max() == 0


def test_hands_touch_the_ground_when_asked_for():
    robot = load_robot("hrp2", "floating")
    hand = next(s.link for s in robot.shapes if "arm" in s.link or "hand" in s.link)
    cp = ContactPoints(robot, links=[hand])
    assert len(cp) > 8 and (cp.sole[:8] >= 0).all() and (cp.sole[8:] == -1).all()
    assert set(cp.body[8:]) == {robot.model.frames[robot.model.getFrameId(hand)].parentJoint}


@pytest.mark.parametrize("ground", [Ground.stairs(0.15, 0.35, 3), Ground.waves(0.02, 0.4)], ids=lambda g: g.name)
def test_a_ball_that_is_clear_of_the_ground_feels_nothing(ground):
    """Above the edge of a stair, whose slope does not go on beneath the ball. Clear: by brute force over the surface;

    by 3 mm, for on ground that is curved what is lowest along the normal is not quite what is nearest.
    """
    rng, radius = np.random.default_rng(0), 0.065
    middles = np.column_stack([rng.uniform(0.3, 1.4, 400), np.zeros(400), rng.uniform(-0.1, 0.6, 400)])
    around = np.linspace(-0.2, 0.2, 401)
    clear = np.array(
        [
            np.hypot(around, m[2] - [ground.height(m[0] + a, 0.0) for a in around]).min() - radius
            if m[2] > ground.height(m[0], 0.0)
            else -1.0
            for m in middles
        ]
    )
    table = contact_table_of(np.arange(400), np.tile([0, 0, 0, radius], (400, 1)), ground.array, PAR, 400)
    table = table._replace(R=np.tile(np.eye(3), (400, 1, 1)), r=middles, V=np.zeros((400, 6)))
    s, force = np.zeros((400, 3)), np.zeros((400, 3))
    contact_step(table, s, 1e-3, force)
    felt = np.linalg.norm(force, axis=1)
    assert (clear > 3e-3).sum() > 100 and (felt[clear > 3e-3] == 0).all()
    sunk = middles[:, 2] < [ground.height(x, 0.0) - 0.02 for x in middles[:, 0]]
    assert sunk.sum() > 20 and (felt[sunk] > 0).all()


def test_points_of_shapes_lie_on_their_surfaces():
    turned = Box((0.1, 0, 0.2), (0.2, 0.4, 0.6), (0.3, 0.2, 0.1))
    corners = shape_points(turned)[:, :3] - turned.center
    assert np.abs(corners @ pin.rpy.rpyToMatrix(*turned.rpy)) == pytest.approx(np.tile([0.1, 0.2, 0.3], (8, 1)))
    assert shape_points(Sphere((1, 2, 3), 0.4)).tolist() == [[1, 2, 3, 0.4]]
    assert shape_points(Capsule((0, 0, 0), (0, 0, 1), 0.1)).tolist() == [[0, 0, 0, 0.1], [0, 0, 1, 0.1]]
    p0, axis = np.array([0.1, 0.2, 0.3]), np.array([0.3, -0.2, -0.5])
    rim = shape_points(Cylinder(tuple(p0), tuple(p0 + axis), 0.07))[:, :3] - p0
    along = rim @ axis / (axis @ axis)
    assert np.sort(along.round(9)).tolist() == [0.0] * 8 + [1.0] * 8
    assert np.linalg.norm(rim - np.outer(along, axis), axis=1) == pytest.approx([0.07] * 16)
    ball = shape_points(Ellipsoid((1, 0, 0), (0.1, 0.2, 0.3)))[:, :3] - [1, 0, 0]
    assert len(ball) == 18 and ((ball / [0.1, 0.2, 0.3]) ** 2).sum(axis=1) == pytest.approx([1.0] * 18)
    egg = shape_points(EllipticCapsule((0, 0, 0.5), 0.1, 0.06, 0.04, 0.3))
    assert egg[:, 2].max() == pytest.approx(0.54) and egg[:, 2].min() == pytest.approx(0.16)


def test_unknown_links_and_links_without_shape_are_named():
    robot = load_robot("hrp2", "floating")
    with pytest.raises(UnknownNameError, match="did you mean"):
        ContactPoints(robot, links=["l_forarm"])
    bare = next(k for k in pinocchio_bodies(robot) if k not in {s.link for s in robot.shapes})
    with pytest.raises(ConfigError, match=f"'{bare}' of hrp2 has no collision shape"):
        ContactPoints(robot, links=[bare])


@pytest.mark.parametrize("ground", [Ground.plane(), Ground.plane(0.1, 0.2, 0.6)], ids=["flat", "tilted"])
def test_gains_are_how_fast_the_forces_fall(ground):
    """Finite differences: a point that sticks and moves on by h dv meets a force changed by -K dv."""
    h, step = 1e-3, 1e-5
    rng = np.random.default_rng(3)
    points, body = np.array([[0.1, 0.05, -0.02, 0.0], [-0.1, 0.02, -0.02, 0.015]]), np.zeros(2, np.int64)
    R, r = pin.exp3(0.1 * rng.normal(size=3))[None], np.array([[0.0, 0.0, ground.height(0, 0) - 0.08]])
    V = 0.01 * rng.normal(size=(1, 6))
    V[0, :3] = 0.0  # both points move alike

    def forces(dv):
        table = contact_table_of(body, points, ground.array, PAR, 1)
        table = table._replace(R=R, r=r + h * dv, V=V + np.concatenate([np.zeros(3), dv]))
        force = np.zeros((2, 3))
        s = np.array([[2e-2, 1e-3, -1e-3]] * 2)
        contact_step(table, s, h, force)
        return force, table.gains

    force, gains = forces(np.zeros(3))
    assert (np.linalg.norm(force, axis=1) > 50).all()
    rows = [(forces(step * e)[0] - forces(-step * e)[0]) / (-2 * step) for e in np.eye(3)]
    for p in range(2):
        xx, xy, xz, yy, yz, zz = gains[p]
        K = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert np.allclose(np.array(rows)[:, p].T, K, rtol=1e-6, atol=1e-5 * np.abs(K).max())
        assert np.linalg.eigvalsh(K)[0] > 100
