"""Freezing experiments: what is linear once patterns, norm scales and MLP outputs are held.

linearity (frozen, the logits are linear in the token embeddings; recomputed they are not), swap
(another token at one position: frozen, foretold by its paths, and free), row (one row of a head's
attention under two prompts). In a notebook:

    from circuitview.core.freezing.linearity import linearity
    from circuitview.core.progress import finished

    model = circuitview.open_model("attn-only-2l")
    recording = model.run(model.prompt("I like green tea, so I drink green"))
    found = finished(linearity(model, recording))
    print(found.frozen.error, found.free.error)

Source: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
"""
