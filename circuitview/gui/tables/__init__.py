"""Item models and delegates of the panels' tables."""
