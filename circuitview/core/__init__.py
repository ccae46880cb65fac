"""The exact core: a checkpoint and a prompt become numbers that add up. No screen, no network.

Read in this order: value_side (what the sums need of any model), weights (folding), runner and
recording (one run), target, path, expansion (a logit as a sum) with listed, largest and hops (which
paths, of trillions), through_mlps (paths that run on through MLPs), orders (exact sums at any
depth), path_vectors and frozen (the same, computed forwards), attention (what a head or a chain
looks at), ov (the same by source token), check (that a model is what its value side says).
checkpoint/ opens files, one format each; ablation/ measures, training/ trains small models,
hand_built writes two by hand.
"""
