"""Other tools' fixtures and results."""
