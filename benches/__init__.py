"""Real workloads that the gate measures on itself; see README.md."""
