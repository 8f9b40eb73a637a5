"""Tendon-driven joints: routing, lengths and moment arms of tendons, and joint angles from lengths.

    from humanoid_control.robots import load_robot
    from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
    from humanoid_control.tendons import EstimatorSettings, TendonEstimator

    robot = load_robot("kengoro_upper", "fixed")
    groups = tendon_groups(robot)
    estimator = TendonEstimator(groups, tendon_mappings(robot, groups), EstimatorSettings("absolute"))
    geometry = tendon_geometry(robot)
    order = [geometry.tendon_names.index(name) for name in estimator.muscle_names]
    measured = geometry.lengths(geometry.limits.mean(axis=1))  # [m], here of the middle posture
    for _ in range(20):
        angles = estimator.step(measured[order])  # [rad], by estimator.joint_names

Kawaharazuka 2018: K. Kawaharazuka et al., "A Method of Joint Angle Estimation Using Only Relative Changes in Muscle
Lengths for Tendon-driven Humanoids with Complex Musculoskeletal Structures" (arXiv 2404.14100).
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.tendons.control.laws import TendonController as TendonController
    from humanoid_control.tendons.control.settings import TendonControllerSettings as TendonControllerSettings
    from humanoid_control.tendons.estimator.estimator import EstimatorComparison as EstimatorComparison
    from humanoid_control.tendons.estimator.estimator import TendonEstimator as TendonEstimator
    from humanoid_control.tendons.estimator.grouping import find_groups as find_groups
    from humanoid_control.tendons.estimator.samples import TendonSamples as TendonSamples
    from humanoid_control.tendons.estimator.settings import OBSERVATIONS as OBSERVATIONS
    from humanoid_control.tendons.estimator.settings import EstimatorSettings as EstimatorSettings
    from humanoid_control.tendons.files.cardsflow import read_cardsflow as read_cardsflow
    from humanoid_control.tendons.files.mjcf import TendonModel as TendonModel
    from humanoid_control.tendons.files.mjcf import read_mjcf as read_mjcf
    from humanoid_control.tendons.mappings.exact import GeometryMapping as GeometryMapping
    from humanoid_control.tendons.mappings.exact import exact_mapping as exact_mapping
    from humanoid_control.tendons.mappings.exact import group_mappings as group_mappings
    from humanoid_control.tendons.mappings.fitting import fit_mapping as fit_mapping
    from humanoid_control.tendons.mappings.fitting import load_mapping as load_mapping
    from humanoid_control.tendons.mappings.fitting import save_mapping as save_mapping
    from humanoid_control.tendons.mappings.mapping import JointMuscleMapping as JointMuscleMapping
    from humanoid_control.tendons.mappings.neural import AntagonismUpdater as AntagonismUpdater
    from humanoid_control.tendons.mappings.neural import NeuralMapping as NeuralMapping
    from humanoid_control.tendons.routing.geometry import TendonGeometry as TendonGeometry
    from humanoid_control.tendons.tendon import Pulley as Pulley
    from humanoid_control.tendons.tendon import Tendon as Tendon
    from humanoid_control.tendons.tendon import TendonGroup as TendonGroup
    from humanoid_control.tendons.tendon import TendonSet as TendonSet
    from humanoid_control.tendons.tendon import ViaPoint as ViaPoint
    from humanoid_control.tendons.tendon import Wrap as Wrap
    from humanoid_control.tendons.tendon import complete_groups as complete_groups
    from humanoid_control.tendons.tendon import joint_owners as joint_owners

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "control.laws": ["TendonController"],
        "control.settings": ["TendonControllerSettings"],
        "estimator.estimator": ["EstimatorComparison", "TendonEstimator"],
        "estimator.grouping": ["find_groups"],
        "estimator.samples": ["TendonSamples"],
        "estimator.settings": ["OBSERVATIONS", "EstimatorSettings"],
        "files.cardsflow": ["read_cardsflow"],
        "files.mjcf": ["TendonModel", "read_mjcf"],
        "mappings.exact": ["GeometryMapping", "exact_mapping", "group_mappings"],
        "mappings.fitting": ["fit_mapping", "load_mapping", "save_mapping"],
        "mappings.mapping": ["JointMuscleMapping"],
        "mappings.neural": ["AntagonismUpdater", "NeuralMapping"],
        "routing.geometry": ["TendonGeometry"],
        "tendon": [
            "Pulley",
            "Tendon",
            "TendonGroup",
            "TendonSet",
            "ViaPoint",
            "Wrap",
            "complete_groups",
            "joint_owners",
        ],
    },
    public=[
        "EstimatorSettings",
        "OBSERVATIONS",
        "Pulley",
        "Tendon",
        "TendonEstimator",
        "TendonGeometry",
        "TendonModel",
        "ViaPoint",
        "Wrap",
        "fit_mapping",
        "load_mapping",
        "read_mjcf",
        "save_mapping",
    ],
)
