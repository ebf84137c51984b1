"""YAML files that users write, read once, with a line and a column for everything that is wrong with them."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.lab.yaml._document import Document as Document
    from rackloop.lab.yaml._document import Plain as Plain
    from rackloop.lab.yaml._document import Step as Step
    from rackloop.lab.yaml._document import compose as compose
    from rackloop.lab.yaml._document import compose_file as compose_file
    from rackloop.lab.yaml._examine import Description as Description
    from rackloop.lab.yaml._examine import Examined as Examined
    from rackloop.lab.yaml._examine import KeyPath as KeyPath
    from rackloop.lab.yaml._examine import M as M
    from rackloop.lab.yaml._examine import examine as examine
    from rackloop.lab.yaml._examine import field_texts as field_texts
    from rackloop.lab.yaml._fields import TEXT as TEXT
    from rackloop.lab.yaml._fields import Endpoint as Endpoint
    from rackloop.lab.yaml._fields import Eui64 as Eui64
    from rackloop.lab.yaml._fields import File as File
    from rackloop.lab.yaml._fields import Flag as Flag
    from rackloop.lab.yaml._fields import Moment as Moment
    from rackloop.lab.yaml._fields import Name as Name
    from rackloop.lab.yaml._fields import Nguid as Nguid
    from rackloop.lab.yaml._fields import Outlet as Outlet
    from rackloop.lab.yaml._fields import Scalar as Scalar
    from rackloop.lab.yaml._fields import Seconds as Seconds
    from rackloop.lab.yaml._fields import ServerPort as ServerPort
    from rackloop.lab.yaml._fields import Size as Size
    from rackloop.lab.yaml._fields import Store as Store
    from rackloop.lab.yaml._fields import Text as Text
    from rackloop.lab.yaml._fields import User as User
    from rackloop.lab.yaml._fields import Wwn as Wwn
    from rackloop.lab.yaml._fields import flag as flag
    from rackloop.lab.yaml._fields import matching as matching
    from rackloop.lab.yaml._fields import one_of as one_of
    from rackloop.lab.yaml._fields import path_of as path_of
    from rackloop.lab.yaml._fields import text_of as text_of
    from rackloop.lab.yaml._fields import time_of as time_of
    from rackloop.lab.yaml._fields import whole as whole
    from rackloop.lab.yaml._fields import wrong as wrong
    from rackloop.lab.yaml._places import SUFFIXES as SUFFIXES
    from rackloop.lab.yaml._places import find_description as find_description


__getattr__ = lazy_getattr(__name__)
