"""The paper's tables and figures: grids, runs, results, pages."""
