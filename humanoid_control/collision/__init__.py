"""Self-collision: signed distances, witness points and gradients of pairs of shapes. Knows no robot by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from humanoid_control.collision.coal_backend import NearPairs, SelfDistance, support_of_joints
from humanoid_control.collision.shapes import ShapeArrays

if TYPE_CHECKING:
    from humanoid_control.collision.pair_distance import ShapePairs

__all__ = ["NearPairs", "SelfDistance", "ShapeArrays", "ShapePairs", "support_of_joints"]

# What is compiled loads the compiler: 60 MB and 0.2 s, which nodes that measure nothing go without.
_COMPILED = {"ShapePairs": "pair_distance"}


def __getattr__(name: str) -> Any:
    if name not in _COMPILED:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_COMPILED[name]}"), name)
