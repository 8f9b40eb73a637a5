"""Self-collision: signed distances, witness points and gradients of pairs of shapes, for any mechanism.

```python
import numpy as np
from humanoid_control.collision import CollisionPairs, ShapeArrays

# A capsule of radius 0.1 and half length 0.2 along z on joint 0; a ball of radius 0.05 on joint 1.
sizes = [(0.1, 0.1, 0.1, 0.2), (0.05, 0.05, 0.05, 0.0)]
shapes = ShapeArrays.build(["capsule", "sphere"], sizes, [0, 1], [np.eye(3)] * 2, np.zeros((2, 3)))
pairs = CollisionPairs(shapes, np.array([[0, 1]]), ancestor_mask=np.array([[0.0], [1.0]]))
pairs.place(np.array([np.eye(3)] * 2), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5]]))
near = pairs.near(0.3)  # one pair, near.distance == [0.15], near.normal == [[0, 0, 1]]
rates = near.gradient(np.array([[0.0], [0.0], [1.0], [0.0], [0.0], [0.0]]))  # joint 1 slides along z: [[1]]
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.collision.coal_backend import CoalPairs as CoalPairs
    from humanoid_control.collision.coal_backend import ancestor_mask as ancestor_mask
    from humanoid_control.collision.coal_backend import shape_arrays as shape_arrays
    from humanoid_control.collision.pair_distance import CollisionPairs as CollisionPairs
    from humanoid_control.collision.pair_distance import NearPairs as NearPairs
    from humanoid_control.collision.shapes import Box as Box
    from humanoid_control.collision.shapes import Capsule as Capsule
    from humanoid_control.collision.shapes import Cylinder as Cylinder
    from humanoid_control.collision.shapes import Ellipsoid as Ellipsoid
    from humanoid_control.collision.shapes import EllipticCapsule as EllipticCapsule
    from humanoid_control.collision.shapes import LinkShape as LinkShape
    from humanoid_control.collision.shapes import ShapeArrays as ShapeArrays
    from humanoid_control.collision.shapes import Sphere as Sphere

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "coal_backend": ["CoalPairs", "ancestor_mask", "shape_arrays"],
        "pair_distance": ["CollisionPairs", "NearPairs"],
        "shapes": [
            "Box",
            "Capsule",
            "Cylinder",
            "Ellipsoid",
            "EllipticCapsule",
            "LinkShape",
            "ShapeArrays",
            "Sphere",
        ],
    },
    public=["Box", "Capsule", "CollisionPairs", "Cylinder", "Ellipsoid", "LinkShape", "NearPairs", "Sphere"],
)
