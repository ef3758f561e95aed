"""The judge: pure functions from numbers and a policy to a verdict."""
