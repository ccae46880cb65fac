"""What was asked and what was computed, as two frozen values; pure Python, no Qt."""
