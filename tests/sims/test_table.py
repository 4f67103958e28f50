"""Tables and numbers as reports print them."""

import math

import pytest

from sims.common.tables import LINE, from_log, table

WIDE = "x" * 30


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        (0.0, "1"),
        (math.log(12345.6), "1.235e+04"),
        (1000 * math.log(10) + math.log(2.5), "2.500e+1000"),
        (-1000 * math.log(10) + math.log(2.5), "2.500e-1000"),
        (1000 * math.log(10) + math.log(9.9999), "1.000e+1001"),
        (math.nan, "-"),
    ],
)
def test_numbers_beyond_floats(log, shown):
    assert from_log(log) == shown


def test_a_narrow_table_stays_whole():
    assert table(["l", ["a", "b"]], [["1", "20", "3"]], "Title").text() == "Title\nl   a  b\n-  --  -\n1  20  3"


def test_a_wide_table_is_parted_between_groups_and_repeats_its_keys():
    text = table([["net", "l"], ["a", "b"], ["c", "d"], "e"], [["mlp", "1", WIDE, WIDE, WIDE, "2", "3"]]).text()
    first, second = (part.splitlines() for part in text.split("\n\n"))
    assert first[0].split() == ["net", "l", "a", "b"]
    assert second[0].split() == ["net", "l", "c", "d", "e"]
    assert [line[:6].split() for line in (first[2], second[2])] == [["mlp", "1"]] * 2
    assert max(map(len, [*first, *second])) <= LINE


def test_no_table_is_left_with_what_the_others_had_no_room_for():
    """Seven columns, of which a line takes six: four and three, not six and one."""
    text = table(["l", *"abcdefg"], [["1", *["x" * 14] * 7]]).text()
    assert [len(part.splitlines()[0].split()) - 1 for part in text.split("\n\n")] == [4, 3]


def test_a_group_that_no_line_takes_is_parted():
    text = table(["l", ["a", "b", "c", "d"]], [["1", *[WIDE] * 4]]).text()
    assert max(map(len, text.splitlines())) <= LINE
    assert [part.splitlines()[0].split() for part in text.split("\n\n")] == [["l", "a", "b"], ["l", "c", "d"]]


def test_long_titles_go_on_below():
    assert max(map(len, table(["a"], [["1"]], "word " * 50).text().splitlines())) <= LINE
