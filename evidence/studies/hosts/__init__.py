"""Two hosts: a stack split over a link that is slow, lossy or cut, with clocks that are apart."""
