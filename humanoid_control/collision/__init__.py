"""Self-collision: signed distances, witness points and gradients of pairs of shapes. Knows no robot by name."""

from humanoid_control.collision.self_distance import NearPairs, SelfDistance, support_of_joints
from humanoid_control.collision.shape_arrays import ShapeArrays
from humanoid_control.collision.shape_pairs import ShapePairs

__all__ = ["NearPairs", "SelfDistance", "ShapeArrays", "ShapePairs", "support_of_joints"]
