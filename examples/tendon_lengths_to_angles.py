"""Joint angles from tendon lengths: of a robot of the catalogue, or of a MuJoCo model with spatial tendons.

python examples/tendon_lengths_to_angles.py [hrp2 | kengoro_upper | arm.xml]
"""

import sys

import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.tendons import EstimatorSettings, TendonEstimator, TendonGroup, exact_mapping, read_mjcf
from humanoid_control.tendons.mappings.postures import random_walk

STEPS, NOISE, START_ERROR = 1000, 1e-4, np.radians(10.0)  # of the walk, of a measured length [m], of the first guess

name = sys.argv[1] if len(sys.argv) > 1 else "kengoro_upper"
if name.endswith(".xml"):
    geometry = read_mjcf(name).geometry()
    groups = [TendonGroup("all", geometry.joint_names, (), geometry.tendon_names)]
    mappings = {"all": exact_mapping(geometry)}
else:
    robot = load_robot(name, "fixed")
    geometry, groups = tendon_geometry(robot), tendon_groups(robot)
    mappings = tendon_mappings(robot, groups)

# The true motion, and the lengths that encoders read of it, zero where all joints are zero.
low, high = geometry.limits.T
margin = np.minimum(0.1, 0.1 * (high - low))
theta = random_walk(geometry.limits, np.clip(0.0, low + margin, high - margin), STEPS, np.radians(0.5))
rng = np.random.default_rng(0)
lengths = geometry.lengths_of(theta) + NOISE * rng.standard_normal((STEPS + 1, len(geometry.tendon_names)))

print(f"{name}: {len(geometry.joint_names)} joints, {len(geometry.tendon_names)} tendons, the first guess 10 deg off")
for observation, text in (("absolute", "lengths zeroed at a known posture"), ("r2", "only changes of length")):
    estimator = TendonEstimator(groups, mappings, EstimatorSettings(observation, length_noise=NOISE))
    tendon = [geometry.tendon_names.index(n) for n in estimator.muscle_names]
    joint = [geometry.joint_names.index(n) for n in estimator.joint_names]
    guess = theta[0, joint] + START_ERROR * rng.choice([-1.0, 1.0], len(joint))
    estimator.reset(dict(zip(estimator.joint_names, np.clip(guess, low[joint], high[joint]), strict=True)))
    estimates = np.array([estimator.step(row) for row in lengths[:, tendon]])
    error = np.degrees(np.abs(estimates - theta[:, joint])[-STEPS // 5 :]).mean(axis=0)
    worst = int(error.argmax())
    print(
        f"  {text}: median error {np.median(error):.2f} deg, worst {error[worst]:.2f} ({estimator.joint_names[worst]})"
    )
