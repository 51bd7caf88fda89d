"""Pages that are one file: no request to anywhere."""
