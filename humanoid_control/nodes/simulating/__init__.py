"""The node `simulator` in parts: parameters, inputs, outputs."""
