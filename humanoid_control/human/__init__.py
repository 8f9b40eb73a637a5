"""Model of a person: marker fit, calibration, and inverse dynamics.

from humanoid_control.human import Person, read_osim

person = read_osim("subject.osim")
markers = person.marker_positions(person.rest)
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.human.analysis import Analysis as Analysis
    from humanoid_control.human.analysis import AnalysisSettings as AnalysisSettings
    from humanoid_control.human.analysis import analyse as analyse
    from humanoid_control.human.calibration import Calibration as Calibration
    from humanoid_control.human.calibration import CalibrationSettings as CalibrationSettings
    from humanoid_control.human.calibration import calibrate as calibrate
    from humanoid_control.human.dynamics import GeneralisedForces as GeneralisedForces
    from humanoid_control.human.dynamics import WeightedForces as WeightedForces
    from humanoid_control.human.dynamics import acceleration_variance as acceleration_variance
    from humanoid_control.human.dynamics import inverse_dynamics as inverse_dynamics
    from humanoid_control.human.dynamics import weighted_inverse_dynamics as weighted_inverse_dynamics
    from humanoid_control.human.elements import AnatomicalJoint as AnatomicalJoint
    from humanoid_control.human.elements import Coordinate as Coordinate
    from humanoid_control.human.elements import CoordinateAxis as CoordinateAxis
    from humanoid_control.human.elements import Coupling as Coupling
    from humanoid_control.human.elements import Marker as Marker
    from humanoid_control.human.elements import OffsetFrame as OffsetFrame
    from humanoid_control.human.elements import PersonBody as PersonBody
    from humanoid_control.human.forward_tracking import Tracking as Tracking
    from humanoid_control.human.forward_tracking import TrackingSettings as TrackingSettings
    from humanoid_control.human.functions import Function as Function
    from humanoid_control.human.ik_setup import CoordinateTask as CoordinateTask
    from humanoid_control.human.ik_setup import FitTasks as FitTasks
    from humanoid_control.human.ik_setup import read_ik_setup as read_ik_setup
    from humanoid_control.human.marker_fit import REASONS as REASONS
    from humanoid_control.human.marker_fit import Fit as Fit
    from humanoid_control.human.marker_fit import FitSettings as FitSettings
    from humanoid_control.human.marker_fit import fit as fit
    from humanoid_control.human.model import Person as Person
    from humanoid_control.human.osim import read_osim as read_osim
    from humanoid_control.human.records import write_records as write_records

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "analysis": ["Analysis", "AnalysisSettings", "analyse"],
        "calibration": ["Calibration", "CalibrationSettings", "calibrate"],
        "dynamics": [
            "GeneralisedForces",
            "WeightedForces",
            "acceleration_variance",
            "inverse_dynamics",
            "weighted_inverse_dynamics",
        ],
        "elements": [
            "CoordinateAxis",
            "PersonBody",
            "Coordinate",
            "Coupling",
            "OffsetFrame",
            "AnatomicalJoint",
            "Marker",
        ],
        "forward_tracking": ["Tracking", "TrackingSettings"],
        "functions": ["Function"],
        "ik_setup": ["CoordinateTask", "FitTasks", "read_ik_setup"],
        "marker_fit": ["Fit", "FitSettings", "REASONS", "fit"],
        "model": ["Person"],
        "osim": ["read_osim"],
        "records": ["write_records"],
    },
    public=[
        "Analysis",
        "AnalysisSettings",
        "CalibrationSettings",
        "FitSettings",
        "Person",
        "analyse",
        "calibrate",
        "fit",
        "read_osim",
    ],
)
