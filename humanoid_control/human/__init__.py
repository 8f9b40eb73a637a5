"""The person as a model: fitted to markers, and the forces that moved it.

from humanoid_control.human import Person, read_osim

person = read_osim("subject.osim")
markers = person.marker_positions(person.rest)
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.human.elements import Axis as Axis
    from humanoid_control.human.elements import Body as Body
    from humanoid_control.human.elements import Coordinate as Coordinate
    from humanoid_control.human.elements import Coupling as Coupling
    from humanoid_control.human.elements import Frame as Frame
    from humanoid_control.human.elements import Joint as Joint
    from humanoid_control.human.elements import Marker as Marker
    from humanoid_control.human.functions import Function as Function
    from humanoid_control.human.model import Person as Person
    from humanoid_control.human.osim import read_osim as read_osim

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "elements": ["Axis", "Body", "Coordinate", "Coupling", "Frame", "Joint", "Marker"],
        "functions": ["Function"],
        "model": ["Person"],
        "osim": ["read_osim"],
    },
)
