"""Retarget a motion capture clip to a robot of your own and write its joint angles as CSV.

    python examples/retarget_a_clip_to_your_urdf.py                           the built-in dance, a robot of the package
    python examples/retarget_a_clip_to_your_urdf.py walk.c3d my_robot.urdf -o walk.csv

A clip is a C3D, TRC, BVH, AMC or CSV file. Beside `my_robot.urdf` lies `my_robot.yaml`, which says where its shoulders,
elbows and wrists are: `humanoid robots map my_robot.urdf` writes a first guess (docs/adding_a_robot.md).
"""

import argparse
from pathlib import Path

import numpy as np

from humanoid_control.mocap import load_body_points
from humanoid_control.paths import share_dir
from humanoid_control.retargeting import POINTS, RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot

parser = argparse.ArgumentParser()
parser.add_argument("clip", nargs="?", default="dance")
parser.add_argument("urdf", nargs="?", default=share_dir() / "urdf" / "wabian2.urdf", type=Path)
parser.add_argument("-o", "--output", default="trajectory.csv", type=Path)
args = parser.parse_args()

body = load_body_points(args.clip)  # read, cleaned, reduced to body points
for warning in body.warnings:
    print("note:", warning)
robot = load_robot(args.urdf, "fixed")  # its pelvis is held
targets = scale_to_robot(body, robot)  # seven points, with the robot's lengths

trajectory = retarget_clip(targets, robot, RetargetSettings(margin=0.015))  # shapes keep 15 mm

for point, error in zip(POINTS, 100 * trajectory.errors.mean(axis=0), strict=True):
    print(f"{point:8} is {error:5.2f} cm from its target in the mean")
speed = np.abs(trajectory.velocities).max(axis=0) / robot.velocity
print(f"{len(targets)} frames at {targets.rate:g} Hz; fastest joint at {100 * speed.max():.0f} % of its speed limit")
nearest = trajectory.clearance.min()  # pairs farther apart than 5 cm are not measured
print(f"nearest two shapes: {100 * nearest:.1f} cm" if np.isfinite(nearest) else "no two shapes nearer than 5 cm")
trajectory.write_csv(args.output)
print("written:", args.output)
