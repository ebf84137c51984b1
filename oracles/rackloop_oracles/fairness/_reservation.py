"""Reservations of rates, and the loads that they carry."""

USED_SHARE = 0.9
"""The share of a reserved rate that arrivals at random may use: at the whole of it their queue would have no bound."""
