"""What is measured: the passes over a net, and what is read off a draw."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
