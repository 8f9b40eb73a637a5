"""Tasks: goals of the robot, each as rows of J v = v_desired; see `humanoid_control.ik`."""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.ik.tasks.task import Task as Task
    from humanoid_control.ik.tasks.task import VectorTask as VectorTask
    from humanoid_control.ik.tasks.task import prepare as prepare
    from humanoid_control.ik.tasks.task import prepare_second_order as prepare_second_order

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {"task": ["Task", "VectorTask", "prepare", "prepare_second_order"]},
    public=["Task", "VectorTask"],
)
