"""Shared by all rooms: seeds, files, signals, memory, checks of input, and statistics of draws."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
