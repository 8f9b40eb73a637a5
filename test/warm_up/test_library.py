"""After the warm-up dynamics, volumes and null-space solvers of any robot are there at once."""

import numpy as np

from humanoid_control.ik import DofSelection, lola_tasks
from humanoid_control.ik.null_space import DampedLeastSquares
from humanoid_control.multibody import SOLVERS, ForwardDynamics, Model, from_pinocchio
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import segment_pairs, volumes_of
from humanoid_control.simulation.state_space import StateSpaceModel
from humanoid_control.warm_up.library import KERNELS, compile_kernels, compiled
from test.warm_up.test_walking import signatures


def test_nothing_is_compiled_for_who_calls_the_package_after_the_warm_up():
    compile_kernels()
    before = signatures()
    assert compiled() and not [k for k in KERNELS if not k.signatures]
    robot, rng = load_robot("hrp2", "floating"), np.random.default_rng(0)
    q, v = robot.q("neutral"), rng.normal(size=robot.nv)
    found = [ForwardDynamics(Model(from_pinocchio(robot.model).bodies), s)(q, v, v) for s in SOLVERS]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-6, atol=1e-6)
    lola = load_robot("lola", "floating")
    for depth in ("rigid", "elastic"):
        model = StateSpaceModel(lola, depth)
        assert np.isfinite(model.rates(0.0, model.initial(), np.zeros(model.inputs))).all()
    segment_pairs(lola, volumes_of(lola), 0.2).nearest()
    tasks = lola_tasks(lola)
    tasks.take_targets(lola.q("neutral"))
    dofs = DofSelection(lola, tasks.held)
    DampedLeastSquares(lola, dofs=dofs).step(lola.q("neutral"), tasks.all(), 0.01)
    assert {name: n for name, n in signatures().items() if n != before.get(name, 0)} == {}
