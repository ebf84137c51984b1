"""Beside this file lie the native programs, in ``bin``, and the native library, in ``lib``."""
