"""Dancing on the own feet: the upper body follows somebody, and so do the steps."""
