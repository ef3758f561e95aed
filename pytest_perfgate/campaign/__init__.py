"""The manager: which worker measures what, until when."""
