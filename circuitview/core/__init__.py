"""The exact core: a checkpoint and a prompt become numbers that add up. No screen, no network.

Read in this order: weights (folding), runner and recording (one run), target, path, expansion (all
paths), orders (exact sums at any depth), path_vectors (the same paths, computed forwards),
attention (what a head or a chain looks at), ov (the same by source token). checkpoint/ opens files,
ablation/ measures, training/ trains small models, hand_built writes two by hand.
"""
