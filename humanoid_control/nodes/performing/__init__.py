"""Parts of the node `whole_body_controller`."""
