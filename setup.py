"""Metadata for pip and for colcon (ament_python): both read this file, so it is the only place for it."""

import os
import re
from pathlib import Path

from setuptools import find_packages, setup

NAME = "humanoid_control"
HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / NAME / "__init__.py").read_text()).group(1)
NODES = ["trajectory_streamer", "target_source", "whole_body_ik", "simulator", "state_estimator", "viewer"]


def shared(folder):
    """data_files rows for every file below a folder, its structure kept under share/<package>."""
    return [
        (os.path.join("share", NAME, where), [os.path.join(where, f) for f in sorted(files)])
        for where, dirs, files in os.walk(folder)
        if files and "__pycache__" not in where
    ]


setup(
    name=NAME,
    version=VERSION,
    description="Real-time humanoid robot control on ROS 2: imitation, inverse kinematics, estimation, simulation",
    long_description=(HERE / "README.md").read_text() if (HERE / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    maintainer="humanoid_control maintainers",
    maintainer_email="maintainers@humanoid-control.example",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["mocap/marker_sets/*.yaml", "py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared("launch"),
        *shared("config"),
        *shared("urdf"),
    ],
    install_requires=[
        "setuptools",
        "numpy>=1.26",
        "scipy>=1.11",
        "numba>=0.59",
        "pin>=3.4",
        "coal>=3.0",
        "daqp>=0.7",
        "pyyaml>=6",
        "rosbags>=0.10",
        "viser>=1.0",
        "trimesh>=4",
        "websockets>=12",
        "rich>=13",
        "matplotlib>=3.6",
    ],
    extras_require={
        # ROS 2 itself as wheels, for a machine without a ROS installation (x86_64 Linux only).
        "ros": [
            "ros-rclpy[fastrtps]==9.1.2; platform_machine == 'x86_64'",
            "ros-sensor-msgs==5.5.1; platform_machine == 'x86_64'",
            "ros-visualization-msgs==5.5.1; platform_machine == 'x86_64'",
            "ros-std-srvs==5.5.1; platform_machine == 'x86_64'",
            "ros-diagnostic-msgs==5.5.1; platform_machine == 'x86_64'",
            "ros-nav-msgs==5.5.1; platform_machine == 'x86_64'",
            "ros-geometry-msgs==5.5.1; platform_machine == 'x86_64'",
        ],
        "test": [
            "pytest<9",
            "pytest-xdist",
            "ezc3d>=1.5",
            "hypothesis",
            "pillow",
            "mcap",
            "mcap-ros2-support",
            "catkin-pkg",
            "wheel",
            "mujoco>=3.17",
        ],
        # The second engine of the simulator.
        "simulation": ["mujoco>=3.17"],
        "check": ["ruff", "mypy", "types-PyYAML"],
        "bench": ["pin-pink", "mink", "mujoco", "qpsolvers", "filterpy"],
    },
    zip_safe=False,
    entry_points={
        "console_scripts": ["humanoid = humanoid_control.cli.main:main"]
        + [f"{node} = humanoid_control.nodes.{node}:main" for node in NODES],
    },
)
