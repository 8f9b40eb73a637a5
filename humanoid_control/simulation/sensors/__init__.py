"""What sensors read, and what is wrong with them."""
