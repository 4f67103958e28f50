"""The array type of this library's signatures."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
