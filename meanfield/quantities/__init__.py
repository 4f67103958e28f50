"""The registry of quantities, and the datasets that hold them."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
