"""Self-collision: signed distances, witness points and gradients of pairs of shapes. Knows no robot by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from humanoid_control.collision.self_distance import NearPairs, SelfDistance, support_of_joints
from humanoid_control.collision.shape_arrays import ShapeArrays

if TYPE_CHECKING:
    from humanoid_control.collision.shape_pairs import ShapePairs

__all__ = ["NearPairs", "SelfDistance", "ShapeArrays", "ShapePairs", "support_of_joints"]

# What is compiled loads the compiler: 60 MB and 0.2 s, which nodes that measure nothing go without.
_COMPILED = {"ShapePairs": "shape_pairs"}


def __getattr__(name: str) -> Any:
    if name not in _COMPILED:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_COMPILED[name]}"), name)
