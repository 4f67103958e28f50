"""Verdicts: measured beside predicted, what each paper claims, and what decides it."""

from meanfield.contents import contents

__getattr__, __dir__, __all__ = contents(__name__, __file__)
