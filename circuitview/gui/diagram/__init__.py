"""The residual-stream diagram on the screen: a scene built from figures/diagram."""
