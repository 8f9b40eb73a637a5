"""A person live: fitted to markers as they come, with the forces of plates as they come."""
