"""Who computes draws, what is kept of them, and where a number comes from."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
