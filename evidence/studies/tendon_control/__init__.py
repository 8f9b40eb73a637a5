"""Control through the tendons: laws, errors of the model, faults, payloads, on a plant that winches alone move."""
