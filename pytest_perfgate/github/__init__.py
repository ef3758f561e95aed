"""GitHub: the only package that speaks HTTP, and the words of Actions' logs."""
