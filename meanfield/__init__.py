"""How the learning rate of a deep network must shrink with depth, computed exactly.

The public names, in the order of the theory (`__init__.pyi`): what a net is, what one gradient step does to it, what
theory expects, and how the two compare. Names load on first use, so that asking for help costs nothing.
"""

from meanfield.contents import contents
from meanfield.version import __version__

__getattr__, __dir__, _names = contents(__name__, __file__)
__all__ = ["__version__", *_names]
