"""The exact core: a checkpoint and a prompt become numbers that add up. No screen, no network.

Read in this order: value_side (what the sums need of any model), weights (folding), runner and
recording (one run), target, path, expansion (a logit as a sum) with listed, largest and hops (which
paths, of trillions), through_mlps (paths that run on through MLPs), orders (exact sums at any
depth), path_vectors and frozen (the same, computed forwards), attention (what a head or a chain
looks at), ov (the same by source token), difference (B − A, path by path), check (that a model is
what its value side says), edits (what a run changes) and resumed (such runs without computing
again what a change can't reach). checkpoint/ opens files, one format each; ablation/ measures,
freezing/ shows what holding the patterns makes linear, training/ trains small models,
hand_built writes two by hand.
"""
