"""Mappings: TOML tables from Log events to ethogram events, checked before a line is read."""
