"""Pure functions on numbers: what the data say, before anybody judges it."""
