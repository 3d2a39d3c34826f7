"""The 4-bit float of mxfp4 and nvfp4: a sign, 2 exponent and 1 mantissa bit, doubled so that every value is whole."""

import numpy as np

E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], dtype=np.int16)
