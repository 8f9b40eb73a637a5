"""How sure a tendon filter is, and whether rightly: errors of random walks beside the deviations that it gives them.

python examples/how_sure_is_a_tendon_filter.py [hrp2 | hand.xml] [degrees a step] [walks] [steps] [absolute | r2 | r3]
"""

import sys

import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.tendons import EstimatorSettings, TendonEstimator, TendonGroup, exact_mapping, read_mjcf

given = [*sys.argv[1:], *("kengoro_upper", "0.5", "1", "300", "absolute")[len(sys.argv) - 1 :]]
name, sigma, walks, steps, observation = given[0], np.radians(float(given[1])), int(given[2]), int(given[3]), given[4]
NOISE, RATE = (1e-4 if name.endswith(".xml") else 5e-4), 100.0  # of a length [m]; steps in a second
if name.endswith(".xml"):
    geometry = read_mjcf(name).geometry()
    groups = [TendonGroup("all", geometry.joint_names, (), geometry.tendon_names)]
    mappings = {"all": exact_mapping(geometry)}
else:
    robot = load_robot(name, "fixed")
    geometry, groups = tendon_geometry(robot), tendon_groups(robot)
    mappings = tendon_mappings(robot, groups)

estimator = TendonEstimator(groups, mappings, EstimatorSettings(observation, length_noise=NOISE))
tendon = [geometry.tendon_names.index(n) for n in estimator.muscle_names]
joint = [geometry.joint_names.index(n) for n in estimator.joint_names]
low, high = geometry.limits.T
nees, wrong, searches, recoveries = [], [], 0, 0
for walk in range(walks):
    rng, q, v = np.random.default_rng(walk), (low + high) / 2, np.zeros(len(low))
    for k in range(steps):
        v = 0.9 * v + np.sqrt(0.19) * sigma * rng.standard_normal(len(q))
        v = np.where((q + v < low) | (q + v > high), -v, v)
        q = np.clip(q + v, low, high)
        if k == 0:
            estimator.reset(dict(zip(estimator.joint_names, q[joint], strict=True)))
        z = geometry.lengths(q) + NOISE * rng.standard_normal(len(geometry.tendon_names))
        error = np.abs(estimator.step(z[tendon]) - q[joint])
        ratio = error / estimator.deviation
        nees.append(np.mean(ratio**2))
        wrong.append(((error > np.radians(10.0)) & (ratio > 5.0)).any())
    searches += sum(f.search.alarms for f in estimator.filters if f.search is not None)
    recoveries += sum(f.recoveries for f in estimator.filters)
    estimator = TendonEstimator(groups, mappings, estimator.settings)

print(
    f"{name}, {observation}: {walks * steps / RATE / 3600:.3f} hours at {RATE:g} Hz, {np.degrees(sigma):g} deg a step"
)
print(f"  error beside deviation: NEES a joint {np.mean(nees):.2f} (1 is honest), median {np.median(nees):.2f}")
print(f"  more than 10 deg and five deviations off: {100 * np.mean(wrong):.2f} % of the steps")
print(f"  alarms (searches begun) {searches}, recoveries {recoveries}")
