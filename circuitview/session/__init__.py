"""What was asked and what was computed, as two frozen values, and the words
and numbers that say it; pure Python, no Qt."""
