"""How each kind of benchmark is driven: what one iteration is."""
