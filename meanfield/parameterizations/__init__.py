"""How hyperparameters scale with width and depth under every optimizer: tables as data, and numbers from them."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
