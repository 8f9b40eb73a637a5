"""Use the robot as a plain state-space model dz/dt = f(t, z, u), and compare integrators on it.

Lola with her motors, gears and ground contact stands without voltage: she begins to sink into her knees.

    python examples/drop_a_robot_with_any_integrator.py
"""

import time

import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.simulation.state_space import IntegratorSettings, StateSpaceModel, integrate

DURATION = 0.05  # [s]

model = StateSpaceModel(load_robot("lola", "floating"), "rigid")
counts = model.order
print(f"{counts.mechanical} coordinates, {counts.contact} contact states, {counts.electrical} currents:", end=" ")
print(f"{counts.first_order} first-order equations")

start, voltages = model.initial(), np.zeros(model.inputs)
height = model.base(start)[0][2]
for method, step in (("mixed", 1e-3), ("multirate", 1e-3), ("rk4", 5e-5)):
    settings = IntegratorSettings(method, step, substeps=20)
    begin = time.perf_counter()
    z = integrate(model.rates, start, DURATION, voltages, settings=settings, layout=model.layout)
    took = time.perf_counter() - begin
    sunk = 1000 * (height - model.base(z)[0][2])
    print(f"{method:10} steps of {1000 * step:5.2f} ms: sank {sunk:.3f} mm in {DURATION:g} s, computed in {took:.2f} s")
