"""Parts of the node `state_estimator`: angles from tendon lengths, reports, markers."""
