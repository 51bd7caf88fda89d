"""Networks from images to features, and the registry from which a file builds them again."""
