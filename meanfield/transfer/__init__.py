"""Carrying a learning rate from one net to another."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
