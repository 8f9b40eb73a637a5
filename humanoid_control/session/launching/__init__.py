"""Launch descriptions of stacks for `ros2 launch`, with checked arguments."""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.session.launching.description import stack_launch_description as stack_launch_description
    from humanoid_control.session.launching.navigation import (
        navigation_launch_description as navigation_launch_description,
    )

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {"description": ["stack_launch_description"], "navigation": ["navigation_launch_description"]},
    public=["stack_launch_description", "navigation_launch_description"],
)
