"""Let a robot stand in the simulator, push it, and see how far it sways.

python examples/stand_push_and_plot.py [picture.png]
"""

import sys

import numpy as np

from humanoid_control.simulation import SimulationConfig

PUSH, DURATION, SECONDS = 150.0, 0.1, 3.0  # [N] forward, [s], [s]

engine = SimulationConfig("lola", base="floating").build()  # at rest in the neutral posture, commanded to stay there
engine.step(round(0.5 / engine.settings.step))  # it sinks into its drives and the ground
engine.push(engine.robot.root_link, np.array([PUSH, 0, 0, 0, 0, 0]), DURATION)

rows = []
while engine.time < SECONDS and not engine.diverged:
    engine.step(10)
    pose, _ = engine.base_state()
    load = sum(wrench[2] for wrench in engine.read().foot_wrenches.values())
    rows.append((engine.time, pose[0], pose[2], load))
time, x, z, load = np.array(rows).T

x = 1000 * (x - x[0])
print(f"{engine.robot.name} was pushed forward with {PUSH:g} N for {DURATION:g} s:")
print(f"  its {engine.robot.root_link} swayed by {x.max():.1f} mm and stands {x[-1]:.1f} mm from where it was")
print(
    f"  its feet carry {load[-1]:.0f} N, its weight is {9.81 * sum(i.mass for i in engine.robot.model.inertias):.0f} N"
)

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, sharex=True)
    above.plot(time, x)
    above.set_ylabel("sway forward [mm]")
    below.plot(time, load)
    below.set(xlabel="time [s]", ylabel="load on the feet [N]")
    figure.savefig(sys.argv[1], dpi=150)
    print(f"written: {sys.argv[1]}")
