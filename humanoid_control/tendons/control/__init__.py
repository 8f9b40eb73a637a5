"""Control through the tendons: what tendons can hold, laws, supervision, and the loop of a winch's drive."""
