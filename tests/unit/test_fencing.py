"""Fencing tokens only grow, whoever asks."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop.fencing import next_token
from rackloop.store import open_store


def test_tokens_grow_for_each_lab_by_itself(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite", VirtualClock())
    assert [next_token(store, "a"), next_token(store, "a"), next_token(store, "b")] == [1, 2, 1]
    store.close()


def test_no_two_controllers_get_the_same_token(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite", VirtualClock())
    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda _: next_token(store, "a"), range(40)))
    assert sorted(tokens) == list(range(1, 41))
    store.close()


def test_a_store_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="lab store"):
        open_store(tmp_path / "absent" / "store.sqlite", VirtualClock())
