"""Rectifiers: how candidates are weighted, and what is known about the classes then."""
