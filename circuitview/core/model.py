"""A model that is open: its weights in the precisions asked for, its tokenizer, its name."""

from dataclasses import dataclass, field
from pathlib import Path as FilePath

import torch

from circuitview.core.config import ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.names import DtypeName
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.runner import run
from circuitview.core.tokenizer import Tokenizer
from circuitview.core.weights import Weights

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False)
class Model:
    """An open checkpoint.

    Attributes:
        name: a bundled name, or the folder's.
        folder: where it was opened.
        config: sizes and kinds.
        tokenizer: text to tokens.
        exact: folded weights in float64.
    """

    name: str
    folder: FilePath
    config: ModelConfig
    tokenizer: Tokenizer
    exact: Weights
    _cast: dict[torch.dtype, Weights] = field(default_factory=dict, repr=False)

    def weights(self, dtype: DtypeName = "float32") -> Weights:
        """The folded weights in `dtype`, rounded once from float64."""
        wanted = DTYPES[dtype]
        if wanted not in self._cast:
            self._cast[wanted] = self.exact.to(wanted)
        return self._cast[wanted]

    def prompt(self, text: str, prepend_bos: bool | None = None) -> Prompt:
        """The tokens of `text`; see Tokenizer.encode for BOS and errors."""
        ids = self.tokenizer.encode(text, prepend_bos)
        return Prompt(self.name, ids, tuple(self.tokenizer.label(token) for token in ids))

    def run(
        self, prompt: Prompt, dtype: DtypeName = "float32", edits: Edits | None = None
    ) -> Recording:
        """The recording of `prompt`; see runner.run for cost and errors."""
        return run(self.weights(dtype), prompt, edits)
