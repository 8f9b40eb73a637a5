"""Experiments of Kawaharazuka 2018 on the joint angles of a tendon-driven robot, repeated in simulation.

"A Method of Joint Angle Estimation Using Only Relative Changes in Muscle Lengths for Tendon-driven Humanoids with
Complex Musculoskeletal Structures" (arXiv 2404.14100). E1 to E6 are its experiments in the order of the paper; earlier
estimators that it names, and arms of others, are tried on the same walks.

    from humanoid_control.robots import load_robot
    from evidence.studies.kawaharazuka2018.experiments import EXPERIMENTS
    from evidence.studies.kawaharazuka2018.result import Runs
    from evidence.studies.kawaharazuka2018.testbed import TendonTestbed

    testbed = TendonTestbed(load_robot("kengoro_upper", "fixed"))
    for row in EXPERIMENTS["E4"](testbed, Runs(seeds=2, steps=500)).rows:
        print(row.name, row.median, row.unit)
"""
