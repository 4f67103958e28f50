"""What a net is: depth units and maps as data, and the families that list them."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
