"""What every room uses: seeds, files, signals, memory, sentences for bad input, and statistics of draws."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
