"""Optimizers as pure functions of a state and a gradient, by the names that hyperparameter tables use."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
