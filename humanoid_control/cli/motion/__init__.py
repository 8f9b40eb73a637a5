"""Commands about motions of people, and of arms that move as people do."""
