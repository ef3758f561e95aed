"""A training step of nothing, where torch would be too much."""


class Parts:
    """A model, an optimizer and a loss in one."""

    def __call__(self, batch):
        return self

    def zero_grad(self, *, set_to_none):
        pass

    def backward(self):
        pass

    def step(self):
        pass

    def detach(self):
        return 1.0
