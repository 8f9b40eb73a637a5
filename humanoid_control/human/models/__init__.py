"""Built-in person models, marker templates and subjects of recordings.

from humanoid_control.human.models import own_person

person = own_person(stature=1.70, mass=65.0, sex="women", markers="plug_in_gait").person
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.human.models.marker_template import TEMPLATES as TEMPLATES
    from humanoid_control.human.models.marker_template import MarkerTemplate as MarkerTemplate
    from humanoid_control.human.models.marker_template import TemplateMatch as TemplateMatch
    from humanoid_control.human.models.marker_template import find_template as find_template
    from humanoid_control.human.models.marker_template import read_template as read_template
    from humanoid_control.human.models.osim_export import osim_text as osim_text
    from humanoid_control.human.models.person_file import PersonFile as PersonFile
    from humanoid_control.human.models.person_file import read_person_file as read_person_file
    from humanoid_control.human.models.robot_motion import RobotMotion as RobotMotion
    from humanoid_control.human.models.robot_motion import fit_robot as fit_robot
    from humanoid_control.human.models.robot_motion import robot_rows as robot_rows
    from humanoid_control.human.models.subject import Subject as Subject
    from humanoid_control.human.models.subject import SubjectSettings as SubjectSettings
    from humanoid_control.human.models.subject import analyse_subject as analyse_subject
    from humanoid_control.human.models.subject import find_subject as find_subject
    from humanoid_control.human.models.subject import own_person as own_person
    from humanoid_control.human.models.urdf_export import UrdfExport as UrdfExport
    from humanoid_control.human.models.urdf_export import urdf_of as urdf_of

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "marker_template": ["MarkerTemplate", "TEMPLATES", "TemplateMatch", "find_template", "read_template"],
        "osim_export": ["osim_text"],
        "person_file": ["PersonFile", "read_person_file"],
        "robot_motion": ["RobotMotion", "fit_robot", "robot_rows"],
        "subject": ["Subject", "SubjectSettings", "analyse_subject", "find_subject", "own_person"],
        "urdf_export": ["UrdfExport", "urdf_of"],
    },
    public=["SubjectSettings", "analyse_subject", "fit_robot", "own_person"],
)
