"""The freezing experiments as figures: linearity, swap, row, each on its own; bars is what they
share. finding_figure draws whichever was found, with the run that it is of."""
