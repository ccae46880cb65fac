"""A model that is open: what every kind of checkpoint becomes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.config import ELEMENTWISE, ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError, DtypeName, Head
from circuitview.core.observation import Observation
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.resumed import free_batches, frozen_batches
from circuitview.core.runner import head_scores, observe, run
from circuitview.core.tokenizer import Tokenizer
from circuitview.core.value_side import ValueSide
from circuitview.core.weights import Weights

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(ABC):
    """An open checkpoint.

    Attributes:
        name: a bundled name, the folder's, or the file's.
        folder: where it was opened.
        config: sizes and kinds.
        tokenizer: text to tokens.
        device: where it computes, "cpu" or "cuda".
        dtypes: the precisions that it can run in.
        stored: the precision that its file holds, as torch names it ("bfloat16"); it is widened.
    """

    name: str
    folder: FilePath
    config: ModelConfig
    tokenizer: Tokenizer
    device: str = "cpu"
    stored: str = "float32"
    dtypes: ClassVar[tuple[DtypeName, ...]] = ("float32", "float64")

    @abstractmethod
    def weights(self, dtype: DtypeName = "float32") -> ValueSide:
        """The value side in `dtype`."""

    @abstractmethod
    def run(
        self, prompt: Prompt, dtype: DtypeName = "float32", edits: Edits | None = None
    ) -> Recording:
        """The recording of `prompt`.

        Raises:
            CircuitviewError: where the prompt is longer than the model's context, a token lies
                outside its vocabulary, or the model can't run in `dtype`.
        """

    @abstractmethod
    def logits_after(
        self,
        recording: Recording,
        edits: Sequence[Edits],
        dests: Int[Tensor, " dest"],
        frozen: bool = False,
    ) -> Iterator[tuple[list[int], Float[Tensor, "run dest d_vocab"]]]:
        """The logits at `dests` of `recording`'s prompt after each of `edits`, some runs at a time:
        which of them, and their logits, before a soft cap.

        Between two steps lies the work of about one forward pass at most, so that a caller can
        stop.

        Args:
            recording: a clean run of this model.
            edits: what each run changes; their own `frozen` is not read.
            frozen: whether patterns, norm scales and MLP outputs are held as recorded.
        """

    @abstractmethod
    def observe(self, prompt: Prompt, dtype: DtypeName = "float32") -> Observation:
        """What a plain run of the model itself did, layer by layer, for check.py to compare with
        the recording."""

    @abstractmethod
    def scores(self, recording: Recording, head: Head) -> Float[Tensor, "dest src"]:
        """The attention scores of one head in `recording`, a run of this model with nothing
        frozen, before softmax; 0 in the future (src > dest), where the pattern is 0."""

    @property
    @abstractmethod
    def runs_by(self) -> str:
        """Whose code runs the model, in words."""

    @property
    @abstractmethod
    def carries_mlps(self) -> bool:
        """Whether paths can run on through its MLPs."""

    def prompt(self, text: str, prepend_bos: bool | None = None) -> Prompt:
        """The tokens of `text`; see Tokenizer.encode for BOS and errors."""
        ids = self.tokenizer.encode(text, prepend_bos)
        return Prompt(self.name, ids, tuple(self.tokenizer.label(token) for token in ids))

    def nearest(self, dtype: DtypeName) -> DtypeName:
        """`dtype` where the model can run in it, else the precision that it runs in."""
        return dtype if dtype in self.dtypes else self.dtypes[0]

    def elsewhere(self, device: str) -> str | None:
        """What to say where it computes elsewhere than on `device`, which was asked; else None."""
        if self.device == device:
            return None
        return f"{self.name} is run by {self.runs_by}: computed on {self.device}, not on {device}"

    def require(self, dtype: DtypeName) -> None:
        """Pass only a precision that the model can run in.

        Raises:
            CircuitviewError: naming those that it can.
        """
        if dtype not in self.dtypes:
            raise CircuitviewError(
                f"{self.name} runs in {', '.join(self.dtypes)}, not in {dtype}: the program that "
                "its family comes from computes parts of it in float32; choose float32"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class NativeModel(Model):
    """A model that runner.py runs straight from its folded weights.

    Attributes:
        folded: folds the weights, in float64 whatever the file holds, and rounds them to the
            precision asked for.
    """

    folded: Callable[[torch.dtype], Weights]
    _folded: dict[torch.dtype, Weights] = field(default_factory=dict, init=False, repr=False)

    @property
    def exact(self) -> Weights:
        """The folded weights in float64."""
        return self.weights("float64")

    def weights(self, dtype: DtypeName = "float32") -> Weights:
        """The folded weights in `dtype`, rounded once from float64.

        Those of the precision asked last are kept, and no others: another one folds anew.
        """
        wanted = DTYPES[dtype]
        if wanted not in self._folded:
            made = self.folded(wanted)
            self._folded.clear()
            self._folded[wanted] = made
        return self._folded[wanted]

    def run(
        self, prompt: Prompt, dtype: DtypeName = "float32", edits: Edits | None = None
    ) -> Recording:
        """The recording of `prompt`; see runner.run for cost and errors."""
        return run(self.weights(dtype), prompt, edits)

    def logits_after(
        self,
        recording: Recording,
        edits: Sequence[Edits],
        dests: Int[Tensor, " dest"],
        frozen: bool = False,
    ) -> Iterator[tuple[list[int], Float[Tensor, "run dest d_vocab"]]]:
        """See Model.logits_after; layers below a change are not computed again."""
        if frozen:
            return frozen_batches(recording, edits, dests)
        return free_batches(self._of_mine(recording), recording, edits, dests)

    def observe(self, prompt: Prompt, dtype: DtypeName = "float32") -> Observation:
        return observe(self.weights(dtype), prompt)

    def scores(self, recording: Recording, head: Head) -> Float[Tensor, "dest src"]:
        """Made anew from the recorded stream. Cost: 2 n d_model d_head + n² d_head."""
        return head_scores(self._of_mine(recording), recording, head)

    def _of_mine(self, recording: Recording) -> Weights:
        weights = recording.weights
        if not isinstance(weights, Weights):
            raise CircuitviewError(f"{self.name}: this run is another model's; run it again")
        return weights

    @property
    def runs_by(self) -> str:
        return "this program's own runner"

    @property
    def carries_mlps(self) -> bool:
        return not self.config.attn_only and self.config.act_fn in ELEMENTWISE
