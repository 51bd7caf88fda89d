"""Pages that people read: one HTML file each, with everything inside."""
