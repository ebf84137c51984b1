"""Names and texts in messages."""

from __future__ import annotations

from rackloop.names import in_one_line


def test_a_text_is_put_in_one_line_and_cut_where_it_is_long() -> None:
    assert in_one_line(" two\n  words\t", 9) == "two words"
    assert in_one_line("two\nwords more", 9) == "two wo..."
