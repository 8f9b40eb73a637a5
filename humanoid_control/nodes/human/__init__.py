"""Parts of the node `human_motion`: plates, outputs, calibration."""
