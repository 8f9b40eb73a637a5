"""Parts of the node `robot_driver`: trajectory action, gate, reports."""
