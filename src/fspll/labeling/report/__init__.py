"""The page that shows what labeling found."""
