"""What is predicted, at finite width or at leading order in 1/width, by roads that draw nothing."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
