"""The program of the centre of mass: its equation against pinocchio, its optimum against another solver."""

import daqp
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.performing import FeasibilitySettings
from humanoid_control.performing import center_program as cp
from humanoid_control.performing.center_program import CenterProgram, CenterReference
from humanoid_control.performing.contact_plan import ContactPlan, Stance
from humanoid_control.performing.foot_paths import SolePaths
from humanoid_control.performing.source_motion import RigidSoles, rotations_z
from humanoid_control.robots import load_robot
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.planning.lipm import ZmpPath, follow_dcm

RULES = FeasibilitySettings()


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


def stepping(soles, swings, frames, at=(0.0, 0.0), yaw=0.0):
    """Plan of a robot that steps in place, and paths of its soles."""
    stands, c, s = np.ones((frames, 2), dtype=bool), np.cos(yaw), np.sin(yaw)
    for f, a, b in swings:
        stands[a:b, f] = False
    stances = ([], [])
    for f in (0, 1):
        y = (0.5 - f) * soles.width
        place = np.array(at) + [-s * y, c * y]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], stands[:, f], [0]]).astype(int))).reshape(-1, 2)
        stances[f].extend(Stance(f, int(a), int(b), place, yaw, int(b), 0.0) for a, b in edges)
    R = np.broadcast_to(rotations_z(np.array(yaw)), (frames, 2, 3, 3)).copy()
    p = np.zeros((frames, 2, 3))
    for f in (0, 1):
        p[:, f, :2] = stances[f][0].place
    return ContactPlan(stands, np.zeros_like(stands), stances), SolePaths(R, p)


SWINGS = tuple((k % 2, 120 + 70 * k, 170 + 70 * k) for k in range(6))


def program(soles, swings=SWINGS, frames=700, **kwargs):
    plan, paths = stepping(soles, swings, frames, **kwargs)
    return CenterProgram(soles, plan, paths, RULES), plan


def reference(robot, frames, z=0.7, momentum=0.0):
    center = np.tile([0.0, 0.0, z], (frames, 1))
    t = np.arange(frames) / RULES.rate
    L = momentum * np.stack([np.sin(3 * t), np.cos(2 * t), 0 * t], axis=1)
    return CenterReference(center, L, robot.mass)


def test_the_zero_moment_point_is_that_of_the_moment_balance(robot):
    """p of (1) with pinocchio's centre of mass and momentum is where the moment of the ground's force vanishes."""
    rng, rate, T = np.random.default_rng(0), 1000.0, 400
    t = np.arange(T) / rate
    waves = rng.uniform(0.5, 2.0, robot.nv), rng.uniform(0, 6, robot.nv), 0.1 * rng.uniform(-1, 1, robot.nv)
    v = waves[2] * np.sin(2 * np.pi * waves[0] * t[:, None] + waves[1])
    a = waves[2] * 2 * np.pi * waves[0] * np.cos(2 * np.pi * waves[0] * t[:, None] + waves[1])
    q = np.empty((T, robot.nq))
    q[0] = robot.q("neutral")
    for k in range(1, T):
        q[k] = pin.integrate(robot.model, q[k - 1], 0.5 * (v[k - 1] + v[k]) / rate)
    data, worst = robot.model.createData(), 0.0
    for k in range(10, T - 10, 7):
        tau = pin.rnea(robot.model, data, q[k], v[k], a[k])
        pin.forwardKinematics(robot.model, data, q[k])
        wrench = data.oMi[1].act(pin.Force(tau[:6])).vector
        p = np.array([-wrench[4], wrench[3]]) / wrench[2]
        pin.centerOfMass(robot.model, data, q[k], v[k], a[k])
        c, c2 = data.com[0].copy(), data.acom[0].copy()
        rate_L = pin.computeCentroidalMomentumTimeVariation(robot.model, data, q[k], v[k], a[k]).angular
        gamma = GRAVITY + c2[2]
        own = c[:2] - c[2] / gamma * c2[:2] + np.array([-rate_L[1], rate_L[0]]) / (robot.mass * gamma)
        worst = max(worst, np.abs(own - p).max())
    assert worst < 1e-4


def test_the_solution_fulfils_its_equation(robot):
    soles = RigidSoles.of(robot)
    solve, _ = program(soles)
    m = solve.solve(reference(robot, 700, momentum=2.0))
    gamma = GRAVITY + m.acceleration[:, 2]
    p = m.center[:, :2] - (m.center[:, 2] / gamma)[:, None] * m.acceleration[:, :2]
    p += np.stack([-m.momentum_rate[:, 1], m.momentum_rate[:, 0]], axis=1) / (robot.mass * gamma)[:, None]
    assert np.abs(p - m.zmp).max() < 1e-9
    # Velocities and accelerations belong to the path.
    assert np.abs(np.gradient(m.center, 0.01, axis=0) - m.velocity)[2:-2].max() < 0.01


def test_the_centre_of_mass_is_the_closed_form_for_its_zero_moment_point(robot):
    """For a constant height, the pendulum that the walker plans by has the same path."""
    soles = RigidSoles.of(robot)
    solve, _ = program(soles)
    m = solve.solve(reference(robot, 700))
    t = np.arange(700) / RULES.rate
    omega = float(np.sqrt(GRAVITY / 0.7))
    path = ZmpPath.of(t, m.zmp, omega)
    xi = np.array([path.dcm(x) for x in t])
    c = [m.center[0, :2]]
    for k in range(1, len(t)):
        c.append(follow_dcm(c[-1], xi[k - 1], xi[k], omega, 0.01))
    assert np.abs(np.array(c) - m.center[:, :2]).max() < 3e-3


def test_the_support_holds_the_corners_and_the_zero_moment_point(robot):
    soles = RigidSoles.of(robot)
    solve, plan = program(soles)
    sides = solve.sides
    for k, frame in enumerate(solve.knots):
        on = np.flatnonzero(plan.stands[max(0, frame - 2) : frame + 3].all(axis=0))
        own = soles.corners if len(on) == 2 else soles.pressed
        corners = np.vstack([own[f][:, :2] + plan.stance_at(f, frame).place for f in on])
        reach = sides.n[k] @ corners.T - sides.b[k][:, None]
        assert reach.max() < 1e-9 and np.abs(reach[sides.b[k] < cp.NOWHERE].max(axis=1)).max() < 1e-9
    m = solve.solve(reference(robot, 700))
    assert m.infeasible.max() == 0.0
    p = m.zmp[solve.knots]
    beyond = (np.einsum("ksi,ki->ks", sides.n, p) - sides.b).max(axis=1)
    assert beyond.max() < -RULES.margin_least + 1e-4


def test_a_standing_clip_is_feasible_and_stays(robot):
    soles = RigidSoles.of(robot)
    solve, _ = program(soles, swings=())
    m = solve.solve(reference(robot, 700))
    assert m.infeasible.max() == 0.0 and np.ptp(m.center[:, :2], axis=0).max() < 1e-6


def test_what_no_support_allows_is_measured(robot):
    """A centre of mass held where it is while the arms turn: the point leaves the support, told by how far."""
    soles = RigidSoles.of(robot)
    solve, _ = program(soles, swings=((0, 100, 150), (1, 150, 200)))
    wild = reference(robot, 700)
    wild.momentum[:, 0] = 400 * np.sin(30 * np.arange(700) / 100)
    assert solve.solve(wild._replace(weight=1e6)).infeasible.max() > 1e-3


def test_it_is_the_optimum_of_the_dense_program(robot):
    """Another solver, with all matrices written out, comes to the same centre of mass."""
    soles = RigidSoles.of(robot)
    frames, swings = 180, ((0, 60, 100),)
    solve, _ = program(soles, swings=swings, frames=frames)
    ref = reference(robot, frames)
    ref.center[:, 0] = 0.3 * np.sin(np.arange(frames) / 20)
    m = solve.solve(ref)
    N, dt, n = len(solve.knots), solve.dt, solve.sides.n
    r = 0.7 / GRAVITY / dt**2
    D2 = np.diag(np.full(N, -2.0)) + np.diag(np.ones(N - 1), 1) + np.diag(np.ones(N - 1), -1)
    D2[0, 0] = D2[-1, -1] = -1.0
    P, D3 = np.eye(N) - r * D2, np.diff(np.eye(N), 3, axis=0) / dt**3
    M = np.eye(N) + cp.JERK * D3.T @ D3 + cp.MIDDLE * P.T @ P
    H = np.zeros((4 * N, 4 * N))  # x, y, s, h
    H[:N, :N], H[N : 2 * N, N : 2 * N] = 2 * M, 2 * M
    H[2 * N : 3 * N, 2 * N : 3 * N] = 2 * cp.INTO * np.eye(N)
    H[3 * N :, 3 * N :] = 2 * cp.BEYOND * np.eye(N)
    wanted = ref.center[solve.knots, :2]
    g = np.concatenate(
        [
            *(-2 * wanted[:, i] - 2 * cp.MIDDLE * P.T @ solve.sides.middle[:, i] for i in (0, 1)),
            np.full(N, cp.INTO_LINEAR),
            np.full(N, cp.BEYOND_LINEAR),
        ]
    )
    rows, most = [], []
    for k in range(N):
        for i in range(n.shape[1]):
            if solve.sides.b[k, i] < cp.NOWHERE:
                row = np.zeros(4 * N)
                row[:N], row[N : 2 * N] = n[k, i, 0] * P[k], n[k, i, 1] * P[k]
                row[2 * N + k] = row[3 * N + k] = -1.0
                rows.append(row)
                most.append(solve.sides.b[k, i] - RULES.margin)
    upper = np.concatenate([np.full(2 * N, 1e6), np.full(N, RULES.margin - RULES.margin_least), np.full(N, 1e6)])
    lower = np.concatenate([np.full(2 * N, -1e6), np.zeros(2 * N)])
    A = np.ascontiguousarray(rows)
    x, _, flag, _ = daqp.solve(
        H, g, A, np.concatenate([upper, most]), np.concatenate([lower, np.full(len(most), -1e30)]),
        np.zeros(len(upper) + len(most), dtype=np.int32),
    )  # fmt: skip
    assert flag == 1
    c = np.stack([x[:N], x[N : 2 * N]], axis=1)
    assert np.abs(c - m.center[solve.knots, :2]).max() < 1e-5


def test_it_does_not_depend_on_the_axes_of_the_world(robot):
    """Turned, and a kilometre away, the same; so is the mirror image."""
    soles = RigidSoles.of(robot)
    here, _ = program(soles)
    yaw, at = 1.3, np.array([800.0, -600.0])
    there, _ = program(soles, at=at, yaw=yaw)
    ref = reference(robot, 700, momentum=2.0)
    ref.center[:, 0] = 0.05 * np.sin(np.arange(700) / 40)
    m = here.solve(ref)
    Rz = rotations_z(np.array(yaw))
    far = ref._replace(center=ref.center @ Rz.T + [*at, 0.0], momentum=ref.momentum @ Rz.T)
    assert np.abs((there.solve(far).center - [*at, 0.0]) @ Rz - m.center).max() < 1e-6
    mirror = np.array([1.0, -1.0, 1.0])
    other, _ = program(soles, swings=tuple((1 - f, a, b) for f, a, b in SWINGS))
    image = other.solve(ref._replace(center=ref.center * mirror, momentum=ref.momentum * -mirror))
    assert np.abs(image.center * mirror - m.center).max() < 1e-6


def test_sides_of_an_edge_alone_end_where_it_ends():
    n, b, middle = cp._sides(np.array([[0.1, -0.05], [0.1, 0.05]]))
    assert np.allclose(middle, [0.1, 0.0])
    for point, inside in (((0.1, 0.04), True), ((0.1, 0.06), False), ((0.12, 0.0), False), ((0.08, 0.0), False)):
        assert bool((n @ np.array(point) <= b + 1e-9).all()) is inside
