"""All three solvers: against each other, a plain reference, and pinocchio's closed chains."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.multibody import ENVIRONMENT, Body, ForwardDynamics, Model, quadratic, revolute
from test.multibody.random_trees import BASES, random_bodies, random_inertia, random_state, random_wrenches
from test.multibody.screw_leg import knee_and_ankle
from test.reference.plain_dynamics import equations
from test.robots_under_test import nightly

SOLVERS = ("articulated_body", "sparse", "dense")
GRAVITY = (0.4, -1.1, -9.7)


def all_solvers(model, *state):
    return [ForwardDynamics(model, s, GRAVITY)(*state) for s in SOLVERS]


def difference(a, b):
    return np.abs(a - b).max() / max(np.abs(a).max(), np.abs(b).max())


@pytest.mark.parametrize("trees", [60, nightly(300)])
def test_three_solvers_agree_on_random_trees_with_shared_coordinates(trees):
    rng = np.random.default_rng(11)
    loops, sizes, nested = 0, set(), 0
    for trial in range(trees):
        model = Model(random_bodies(rng, int(rng.integers(3, 25)), BASES[trial % 3]))
        loops += len(model.loops)
        sizes |= {len(loop.coordinates) for loop in model.loops}
        nested += sum(any(model.bodies[model.index[b]].parent in x.bodies for b in x.bodies) for x in model.loops)
        q, v = random_state(model, rng)
        tau, wrench = rng.normal(size=model.nv), random_wrenches(model, rng)
        a, b, c = all_solvers(model, q, v, tau, wrench, rng.random(model.nv) * 0.1)
        assert difference(a, b) < 1e-9 and difference(a, c) < 1e-9, f"tree {trial}: {model.loops}"
    assert loops > 5 * trees / 3 and nested > trees / 3 and {1, 2, 3, 4, 5} <= sizes


@pytest.mark.parametrize("base", BASES)
def test_solvers_obey_newton_and_euler_as_a_plain_program_writes_them(base):
    rng = np.random.default_rng(BASES.index(base))
    for trial in range(9):
        model = Model(random_bodies(rng, 3 + trial // 2, base, sharing=0.5))
        q, v = random_state(model, rng)
        tau, wrench = rng.normal(size=model.nv), random_wrenches(model, rng)
        armature = rng.random(model.nv) * 0.1
        M, rhs = equations(model, q, v, wrench, np.array(GRAVITY))
        expected = np.linalg.solve(M + np.diag(armature), rhs + tau)
        for solver, qdd in zip(SOLVERS, all_solvers(model, q, v, tau, wrench, armature), strict=True):
            assert difference(qdd, expected) < 1e-8, f"{solver}, tree {trial}: {model.loops}"


def five_bodies(rng, coupling):
    """The example of figure 2.12: shank, ankle, foot, screw that depends on both joints, toe."""

    def body(name, parent, joint):
        return Body(name, parent, joint, random_inertia(rng), r=rng.normal(size=3) * 0.2)

    return Model(
        [
            body("B1", ENVIRONMENT, revolute("q1")),
            body("B2", "B1", revolute("q2")),
            body("B3", "B2", revolute("q3")),
            body("B4", "B1", coupling),
            body("B5", "B3", revolute("q5")),
        ]
    )


def test_example_of_five_bodies_has_one_subsystem_of_three_and_the_plain_accelerations():
    rng = np.random.default_rng(3)
    model = five_bodies(rng, quadratic(["q2", "q3"], 0.2, [7.0, -5.0], np.array([[2.0, 1.0], [1.0, -3.0]])))
    assert [loop.bodies for loop in model.loops] == [("B2", "B3", "B4")]
    assert model.loops[0].coordinates == ("q2", "q3") and model.coordinates == ("q1", "q2", "q3", "q5")
    assert [n.name for n in model.nodes] == ["environment", "B1", "B2", "B5"]
    q, v = random_state(model, rng)
    M, rhs = equations(model, q, v, np.zeros((5, 6)), np.array(GRAVITY))
    for qdd in all_solvers(model, q, v):
        assert difference(qdd, np.linalg.solve(M, rhs)) < 1e-9


def test_members_below_members_bodies_between_them_and_loops_on_loops_join_as_they_must():
    rng = np.random.default_rng(9)

    def body(name, parent, joint):
        return Body(name, parent, joint, random_inertia(rng), r=rng.normal(size=3) * 0.2)

    def both(*c):
        return quadratic(c, 0.1, np.ones(len(c)), np.eye(len(c)))

    model = Model(
        [
            body("a", ENVIRONMENT, revolute("a")),
            body("between", "a", revolute("between")),  # shares nothing, but lies between two that do
            body("c", "between", both("a")),
            body("d", "c", revolute("d")),  # a loop that hangs on a member of the first
            body("e", "c", both("d")),
            body("f", "d", revolute("f")),
            body("g", "f", prismatic_like("f", "d")),  # nested: its coordinates reach up into the second
        ]
    )
    assert [loop.bodies for loop in model.loops] == [("a", "between", "c"), ("d", "e", "f", "g")]
    q, v = random_state(model, rng)
    M, rhs = equations(model, q, v, np.zeros((7, 6)), np.array(GRAVITY))
    for qdd in all_solvers(model, q, v):
        assert difference(qdd, np.linalg.solve(M, rhs)) < 1e-9


def prismatic_like(*coordinates):
    return quadratic(coordinates, 0.1, [0.3] * len(coordinates), np.full((len(coordinates),) * 2, 0.2), motion=1)


def test_nan_in_gives_nan_out_and_leaves_no_trace_in_the_next_call():
    model = five_bodies(np.random.default_rng(3), quadratic(["q2", "q3"], 0.2, [1.0, 1.0], np.eye(2)))
    for solver in SOLVERS:
        dynamics = ForwardDynamics(model, solver)
        q, v = np.full(4, 0.3), np.ones(4)
        before = dynamics(q, v)
        assert np.isnan(dynamics(np.full(4, np.nan), v)).all()
        assert np.array_equal(dynamics(q, v), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_a_copy_of_the_dynamics_has_arrays_of_its_own(copied):
    rng = np.random.default_rng(5)
    model = Model(random_bodies(rng, 6, "quaternion"))
    for solver in SOLVERS:
        one = ForwardDynamics(model, solver)
        q, v = random_state(model, rng)
        expected = one(q, v)
        other = copied(one)
        other.arrays.set_gravity((0.0, 0.0, 0.0))
        assert not np.allclose(other(q, v), expected)
        assert np.array_equal(one(q, v), expected)
        del one
        assert not np.allclose(other(q, v), expected)


def test_arguments_of_a_wrong_shape_are_refused_and_any_memory_layout_is_taken():
    rng = np.random.default_rng(6)
    model = Model(random_bodies(rng, 6, "quaternion"))
    dynamics, (q, v) = ForwardDynamics(model), random_state(model, rng)
    expected = dynamics(q, v)
    table = np.zeros((model.nq, 2))
    table[:, 0] = q
    assert np.array_equal(dynamics(table[:, 0], list(v)), expected)
    for bad in ({"q": q[1:]}, {"v": q}, {"tau": q}, {"wrench": np.zeros(6)}, {"armature": np.zeros(0)}):
        (name,) = bad
        with pytest.raises(RobotError, match=f"{name} must have the shape"):
            dynamics(**({"q": q, "v": v} | bad))


def states(base, rng):
    q = np.array([rng.uniform(-0.5, 0.5), rng.uniform(0.2, 1.4), *rng.uniform(-0.25, 0.25, 2)])
    v = rng.normal(size=4)
    if not base:
        return q, v
    turned = pin.Quaternion(pin.exp3(rng.normal(size=3))).coeffs()
    return np.concatenate([rng.normal(size=3), turned, q]), np.concatenate([rng.normal(size=6), v])


@pytest.mark.parametrize("base", [False, True], ids=["fixed", "floating"])
def test_screws_of_knee_and_ankle_accelerate_as_pinocchios_closed_chains(base):
    """pinocchio needs some inertia in the couplers, which have none: its error is linear in it, and is taken off."""
    leg, rng = knee_and_ankle(base), np.random.default_rng(4)
    assert [set(loop.bodies) for loop in leg.model.loops] == [
        {"knee", "unit", "knee_shaft"},
        {"ankle", "foot", "ankle_shaft0", "ankle_shaft1"},
    ]
    light, heavy = leg.chains(1e-7), leg.chains(2e-7)
    for _ in range(5):
        q, v = states(base, rng)
        tau = rng.normal(size=leg.model.nv) * 10
        ours = [ForwardDynamics(leg.model, s)(q, v, tau) for s in ("articulated_body", "sparse", "dense")]
        found = []
        for chains in (light, heavy):
            x, u = chains.close(q, v)
            found.append(chains.accelerate(x, u, chains.loads(tau))[chains.tree_v])
        limit = 2 * found[0] - found[1]
        scale = np.abs(limit).max()
        for qdd in ours:
            assert np.abs(qdd - limit).max() < 3e-9 * scale  # measured: below 4e-10
        assert np.abs(limit - found[0]).max() < 1e-6 * scale


PENDULUM = """
import numpy as np
from humanoid_control.multibody import Body, ForwardDynamics, Inertia, Model, revolute, rotor

link = Body("link", "", revolute("q"), Inertia.about_com(2.0, np.array([0.5, 0.0, 0.0]), 0.1 * np.eye(3)))
shaft = Body("motor", "", rotor("q", 100.0), Inertia(about_origin=np.diag([5e-5, 5e-5, 1e-4])))
for solver in ("articulated_body", "sparse", "dense"):
    print(ForwardDynamics(Model([link, shaft]), solver, (0.0, -9.81, 0.0))(np.zeros(1), np.zeros(1))[0])
"""


def test_solvers_run_as_plain_python_without_compilation():
    """A geared pendulum, as a debugger sees it: m g l / (J + N^2 Jm)."""
    command, env = [sys.executable, "-c", PENDULUM], os.environ | {"NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(command, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    expected = -2.0 * 9.81 * 0.5 / (2.0 * 0.25 + 0.1 + 100.0**2 * 1e-4)
    assert [float(line) for line in result.stdout.split()] == pytest.approx([expected] * 3, rel=1e-12)
