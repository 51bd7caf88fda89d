"""The version, read by the build and by every file the package writes."""

__version__ = "0.1.0"
