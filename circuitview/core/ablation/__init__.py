"""Causal runs: what the model does when something is taken away.

A contribution is bookkeeping, an effect is an experiment; every row carries both. Read in this
order: sites (what is taken away), kinds (what is put in its place, one file each), cases (what is
run, and where it is measured), metrics (what is measured), lab (the experiment), by_order (path
ablation), bookkeeping (what sites contribute), table (what was found). Of these only sites, metric
and table load without torch.
"""
