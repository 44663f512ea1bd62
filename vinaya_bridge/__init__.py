"""Reads the Vinaya Log and emits ethogram events."""
