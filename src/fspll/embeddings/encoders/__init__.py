"""Encoders, which turn samples into features: networks, photos, texts, vectors, a user's own."""
