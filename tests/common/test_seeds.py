"""Streams of many draws at once are those of the draws one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.common.seeds import stream, streams_of_draws

SEEDS = st.one_of(st.integers(0, 2**32 + 1), st.integers(2**95, 2**200))


@given(SEEDS, st.text(max_size=9), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
def test_streams_are_those_of_numpy(seed, purpose, draws):
    together = streams_of_draws(seed, purpose, draws).generators()
    alone = [stream(seed, purpose, draw) for draw in draws]
    for ours, theirs in zip(together, alone, strict=True):
        assert (
            ours.bit_generator.state["state"]["state"].tolist() == theirs.bit_generator.state["state"]["state"].tolist()
        )
        np.testing.assert_array_equal(ours.standard_normal(5), theirs.standard_normal(5))


@pytest.mark.parametrize("draws", [range(0), range(2**32 - 1, 2**32 + 1)], ids=["none", "of two words"])
def test_no_draw_and_draws_of_many_digits(draws):
    together = streams_of_draws(7, "weights", draws).generators()
    alone = [stream(7, "weights", draw) for draw in draws]
    assert [source.random() for source in together] == [source.random() for source in alone]
