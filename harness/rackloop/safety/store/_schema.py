"""The tables of a lab store."""

from __future__ import annotations

TABLES = (
    """
CREATE TABLE IF NOT EXISTS undo_entry (
    id {serial},
    lab TEXT NOT NULL,
    run TEXT NOT NULL,
    ability TEXT NOT NULL,
    resource TEXT NOT NULL,
    what TEXT NOT NULL,
    inverse TEXT NOT NULL,
    state TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    intended_ns BIGINT NOT NULL,
    acted_ns BIGINT,
    wall TEXT NOT NULL,
    result TEXT
)
""",
    "CREATE INDEX IF NOT EXISTS undo_standing ON undo_entry (lab, id) WHERE state IN ('intended', 'acted')",
    "CREATE TABLE IF NOT EXISTS fencing (lab TEXT PRIMARY KEY, token BIGINT NOT NULL)",
    """
CREATE TABLE IF NOT EXISTS lease (
    id TEXT PRIMARY KEY,
    lab TEXT NOT NULL,
    state TEXT NOT NULL,
    within TEXT,
    holder TEXT NOT NULL,
    slice TEXT NOT NULL,
    purpose TEXT NOT NULL,
    priority INTEGER NOT NULL,
    place BIGINT NOT NULL,
    token BIGINT NOT NULL,
    term_s DOUBLE PRECISION NOT NULL,
    asked_s DOUBLE PRECISION NOT NULL,
    granted_s DOUBLE PRECISION,
    until_s DOUBLE PRECISION NOT NULL,
    ended_s DOUBLE PRECISION,
    ended_how TEXT,
    ended_by TEXT,
    ended_why TEXT
)
""",
    "CREATE INDEX IF NOT EXISTS lease_place ON lease (lab, place)",
    "CREATE INDEX IF NOT EXISTS lease_live ON lease (lab, place) WHERE state IN ('queued', 'held')",
    """
CREATE TABLE IF NOT EXISTS attempt (
    id {serial},
    lab TEXT NOT NULL,
    drive TEXT NOT NULL,
    lease TEXT,
    who TEXT NOT NULL,
    at_s DOUBLE PRECISION NOT NULL,
    granted INTEGER NOT NULL,
    reasons TEXT NOT NULL
)
""",
    """
CREATE TABLE IF NOT EXISTS upkeep (
    id {serial},
    lab TEXT NOT NULL,
    gear TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    by_whom TEXT NOT NULL,
    since_s DOUBLE PRECISION NOT NULL,
    until_s DOUBLE PRECISION,
    evidence TEXT NOT NULL,
    ended_s DOUBLE PRECISION,
    ended_by TEXT,
    ended_why TEXT
)
""",
    """
CREATE TABLE IF NOT EXISTS gear_failure (
    id {serial},
    lab TEXT NOT NULL,
    gear TEXT NOT NULL,
    run TEXT NOT NULL,
    test TEXT NOT NULL,
    test_number BIGINT NOT NULL,
    at_s DOUBLE PRECISION NOT NULL,
    cause TEXT NOT NULL,
    reason TEXT NOT NULL
)
""",
    "CREATE INDEX IF NOT EXISTS gear_failures ON gear_failure (lab, gear, id)",
    "CREATE TABLE IF NOT EXISTS gear_test (lab TEXT PRIMARY KEY, tests BIGINT NOT NULL)",
)
