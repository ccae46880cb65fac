"""Training of small attention-only models on text files.

- settings.py: what a run is asked for (sizes, schedule, seed).
- rows.py: text files -> tokens -> training rows, some of them repeated so that induction forms.
- network.py: the trainable model, its parameters named as a bundle names them.
- run.py: the loop, its checkpoints, and the finished bundle.
- card.py: the model card, written from what was measured.
"""
