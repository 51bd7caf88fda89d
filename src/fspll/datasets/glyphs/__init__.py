"""Handwritten characters drawn by code, with nothing to download."""

from fspll.datasets.glyphs.drawing import GLYPHS, SPLITS, load_glyphs

__all__ = ["GLYPHS", "SPLITS", "load_glyphs"]
