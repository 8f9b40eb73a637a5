"""Parts of the node `state_estimator`: tendon lengths on their way to angles, their reports and markers."""
