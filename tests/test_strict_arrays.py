"""The stand-in refuses what it is there to refuse: the negative controls of all that is tested through it."""

import numpy as np
import pytest

from tests import strict_arrays

XP = strict_arrays.namespace()
DOUBLE, SINGLE = (XP.zeros((2, 3), dtype=precision) for precision in ("float64", "float32"))
ON_HOST = np.zeros((2, 3))


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda: np.asarray(DOUBLE),
        lambda: np.sqrt(DOUBLE),
        lambda: np.stack([DOUBLE, DOUBLE]),
        lambda: DOUBLE + ON_HOST,
        lambda: ON_HOST @ DOUBLE,
        lambda: DOUBLE * np.float64(2),
        lambda: np.float64(2) * DOUBLE,
        lambda: DOUBLE.__iadd__(ON_HOST),
        lambda: DOUBLE.__setitem__(0, ON_HOST[0]),
        lambda: DOUBLE + SINGLE,
        lambda: DOUBLE.__setitem__(0, SINGLE[0]),
        lambda: XP.concatenate([DOUBLE, SINGLE]),
        lambda: XP.multiply(SINGLE, 2.0, out=DOUBLE),
        lambda: XP.maximum(DOUBLE, ON_HOST),
        lambda: XP.take(DOUBLE, np.array([0]), axis=0),
        lambda: DOUBLE[np.array([0])],
        lambda: float(DOUBLE[0, 0]),
        lambda: bool(DOUBLE[0, 0] > 0),
        lambda: list(DOUBLE),
        lambda: max(DOUBLE[0]),
    ],
)
def test_it_refuses(forbidden):
    with pytest.raises(TypeError):
        forbidden()


def test_it_has_no_other_functions():
    with pytest.raises(AttributeError):
        _ = XP.vecdot


def test_views_write_through_and_copies_do_not():
    rows = XP.asarray(ON_HOST)
    view = rows[:, 1:]
    view += 1.0
    np.testing.assert_array_equal(XP.asnumpy(rows), [[0, 1, 1], [0, 1, 1]])
    assert not ON_HOST.any()


def test_single_precision_stays_single():
    assert (2 * SINGLE / 3.0 + 1).dtype == np.float32
    assert XP.sqrt(SINGLE).dtype == (SINGLE @ SINGLE.swapaxes(0, 1)).dtype == np.float32
