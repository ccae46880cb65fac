"""Causal runs: what the logit does when something is taken away. One file per kind.

A contribution is bookkeeping, an effect is an experiment; every row carries both.
"""
