"""`python -m figures`: every figure."""

import sys

from figures._command import draw_all

sys.exit(draw_all())
