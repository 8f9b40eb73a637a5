"""Numerics without joints for kernels and Python: vectors, rotations, splines, Cholesky factors, tiles, a box QP.

```python
import numpy as np
from humanoid_control.numerics import euler_zxz_matrix, rotation_error, rotation_matrix

A = euler_zxz_matrix(0.3, 0.5, -0.2)
turn = rotation_error(np.eye(3), A)  # rotation vector [rad] from the identity to A
assert np.allclose(rotation_matrix(turn), A)
```

`vec3`, `spline`, `cholesky` and `tiles` are for other kernels, which import them from their modules.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.numerics.box_qp import solve_box_qp as solve_box_qp
    from humanoid_control.numerics.box_qp_certificate import is_optimal as is_optimal
    from humanoid_control.numerics.box_qp_certificate import optimality_error as optimality_error
    from humanoid_control.numerics.rotation import euler_zxz_angles as euler_zxz_angles
    from humanoid_control.numerics.rotation import euler_zxz_matrix as euler_zxz_matrix
    from humanoid_control.numerics.rotation import interpolate_rotation as interpolate_rotation
    from humanoid_control.numerics.rotation import rotation_error as rotation_error
    from humanoid_control.numerics.rotation import rotation_matrix as rotation_matrix

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "box_qp": ["solve_box_qp"],
        "box_qp_certificate": ["is_optimal", "optimality_error"],
        "rotation": [
            "euler_zxz_angles",
            "euler_zxz_matrix",
            "interpolate_rotation",
            "rotation_error",
            "rotation_matrix",
        ],
    },
    public=["rotation_error", "rotation_matrix", "solve_box_qp"],
)
