"""YAML files that users write, read once, with a line and a column for everything that is wrong with them."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.lab.yaml._document import Document, Plain, Step, compose, compose_file
    from rackloop.lab.yaml._examine import Description, Examined, KeyPath, M, examine
    from rackloop.lab.yaml._fields import (
        LONGEST_S,
        Endpoint,
        Eui64,
        File,
        Flag,
        Name,
        Nguid,
        Outlet,
        Scalar,
        Seconds,
        ServerPort,
        Size,
        Store,
        Text,
        User,
        Wwn,
        flag,
        matching,
        one_of,
        path_of,
        text_of,
        whole,
        wrong,
    )
    from rackloop.lab.yaml._places import SUFFIXES, find_description

__all__ = [
    "LONGEST_S",
    "SUFFIXES",
    "Description",
    "Document",
    "Endpoint",
    "Eui64",
    "Examined",
    "File",
    "Flag",
    "KeyPath",
    "M",
    "Name",
    "Nguid",
    "Outlet",
    "Plain",
    "Scalar",
    "Seconds",
    "ServerPort",
    "Size",
    "Step",
    "Store",
    "Text",
    "User",
    "Wwn",
    "compose",
    "compose_file",
    "examine",
    "find_description",
    "flag",
    "matching",
    "one_of",
    "path_of",
    "text_of",
    "whole",
    "wrong",
]

__getattr__ = lazy_getattr(__name__)
