"""From a report to text: every rendering reads `model.Report` and nothing else."""
