"""Joint-angle estimator of a tendon-driven body: group filters, observations and fault diagnosis."""
