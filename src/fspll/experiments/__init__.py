"""Experiments: methods run over many tasks, and what can be said about the figures."""
