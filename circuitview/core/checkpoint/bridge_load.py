"""From a Hugging Face folder or GGUF file to a bridge: transformers reads, transformer_lens hooks.

Nothing is asked of the network, no code from a checkpoint is run, and every array that the model
has must come from the file, whole and finite. What goes wrong is said in one line with a file's
name, whatever either program raises.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path as FilePath
from typing import Any

import torch

from circuitview.core.checkpoint.bridge_refusals import check_fields, check_parts
from circuitview.core.checkpoint.bridge_sizes import (
    require_numbers,
    require_shapes,
    require_tables,
)
from circuitview.core.formats import CONFIG
from circuitview.core.names import CircuitviewError
from circuitview.core.weight_files import BUFFERS


def read_config(
    folder: FilePath, files: tuple[FilePath, ...], gguf_file: str | None
) -> tuple[Any, Any]:
    """The config as transformers reads it, and transformer_lens' adapter of its architecture.

    Raises:
        CircuitviewError: where either program does not know the family, or its paths can't be
            exact, or it asks for more weights than there are.
    """
    import transformers

    select_adapter, architecture_of, build_config = _adapter_parts()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    path = folder / (gguf_file or CONFIG)
    more = {} if gguf_file is None else {"gguf_file": gguf_file}
    hf_config = None
    try:
        hf_config = transformers.AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, **more
        )
        architecture = architecture_of(hf_config)
        tl_config = build_config(hf_config, architecture, str(folder), torch.float32)
        adapter = select_adapter(tl_config)
    except Exception as error:  # noqa: BLE001  (each family's code raises what it likes)
        raise CircuitviewError(_unknown(path, hf_config, error)) from None
    _check_sizes(adapter.cfg, path, files)
    check_fields({**hf_config.to_dict(), "architectures": [architecture]}, str(path))
    check_parts(adapter.component_mapping or {}, str(path), architecture)
    return hf_config, adapter


def _adapter_parts() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """What picks transformer_lens' adapter of an architecture. Some of it is private there.

    Raises:
        CircuitviewError: where the version that is installed keeps it elsewhere.
    """
    try:
        from transformer_lens.factories.architecture_adapter_factory import (
            ArchitectureAdapterFactory,
        )
        from transformer_lens.model_bridge.sources._bridge_builder import (
            build_bridge_config_from_hf,
        )
        from transformer_lens.model_bridge.sources.transformers import (
            determine_architecture_from_hf_config,
        )
    except ImportError as error:
        found = version("transformer_lens")
        raise CircuitviewError(
            f"transformer_lens {found} is not a version that this program knows ({error}); "
            "install the one that it asks for: pip install --upgrade circuitview"
        ) from None
    select = ArchitectureAdapterFactory.select_architecture_adapter
    return select, determine_architecture_from_hf_config, build_bridge_config_from_hf


def load(
    folder: FilePath,
    hf_config: Any,
    listed: FilePath,
    files: tuple[FilePath, ...],
    gguf_file: str | None,
) -> Any:
    """The model as transformers builds it, in float32, with every weight from the file.

    Args:
        folder: where it is.
        hf_config: transformers' config.
        listed: the file that lists or holds the weights.
        files: those that hold them.
        gguf_file: the name of a GGUF file, or None.

    Raises:
        CircuitviewError: naming the first array that is missing, unknown, of another shape or not
            finite.
    """
    from transformers import AutoModelForCausalLM

    _require_arrays(folder / (gguf_file or CONFIG), hf_config, listed, files, gguf_file is not None)
    more = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        hf_model, info = AutoModelForCausalLM.from_pretrained(
            str(folder),
            config=hf_config,
            dtype=torch.float32,
            attn_implementation="eager",
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # they are refused below, with a name
            output_loading_info=True,
            **more,
        )
    except Exception as error:  # noqa: BLE001
        path = folder / (gguf_file or CONFIG)
        raise CircuitviewError(_unreadable(path, listed, error)) from None
    for key, found, wanted in sorted(info.get("mismatched_keys") or ()):
        raise CircuitviewError(
            f"{listed}: {key} has shape {list(found)}, {CONFIG} asks for {list(wanted)}; one of "
            "the two belongs to another model"
        )
    for key in sorted(info.get("missing_keys") or ()):
        raise CircuitviewError(f"{listed}: {key} is missing; save the whole model")
    for key in sorted(info.get("unexpected_keys") or ()):
        if not BUFFERS.search(key):
            raise CircuitviewError(
                f"{listed}: holds {key}, which {type(hf_model).__name__} does not have; check "
                f"{CONFIG}"
            )
    for key, array in hf_model.named_parameters():
        # Without a copy: NaN and infinity show in the extremes.
        if not all(bool(extreme.isfinite()) for extreme in torch.aminmax(array.detach())):
            raise CircuitviewError(
                f"{listed}: {key} holds NaN or infinity; the training run went wrong, use an "
                "earlier checkpoint"
            )
    return hf_model.eval()


def _require_arrays(
    path: FilePath, hf_config: Any, listed: FilePath, files: tuple[FilePath, ...], packed: bool
) -> None:
    """Pass a config that asks for the arrays that its files hold, before any is made."""
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            bare = AutoModelForCausalLM.from_config(
                hf_config, attn_implementation="eager", trust_remote_code=False
            )
    except Exception as error:  # noqa: BLE001
        raise CircuitviewError(no_model(path, error)) from None
    require_tables(bare, hf_config, sum(file.stat().st_size for file in files), str(path))
    if packed:
        import gguf

        require_numbers(
            bare, sum(int(array.n_elements) for array in gguf.GGUFReader(str(listed)).tensors), path
        )
    else:
        require_shapes(bare, listed, files)


def _check_sizes(cfg: Any, path: FilePath, files: tuple[FilePath, ...]) -> None:
    """Refuse sizes before anything of them is made: a wrong number would fill the memory."""
    n_layers, d_model, d_vocab = (
        int(getattr(cfg, name)) for name in ("n_layers", "d_model", "d_vocab")
    )
    for name, size in (("n_layers", n_layers), ("d_model", d_model), ("vocabulary", d_vocab)):
        if size < 1:
            raise CircuitviewError(f"{path}: {name} is {size}; need 1 or more")
    held = sum(file.stat().st_size for file in files)
    # At the very least the embedding and a norm in each layer; two bytes each, packed one bit.
    if (n_layers + d_vocab) * d_model > held * (8 if path.suffix == ".gguf" else 0.5):
        raise CircuitviewError(
            f"{path}: asks for {n_layers} layers, d_model {d_model} and a vocabulary of {d_vocab}, "
            f"more than {files[0].name} holds; one of the two belongs to another model"
        )


def _unknown(path: FilePath, hf_config: Any, error: Exception) -> str:
    """What to say of an error about a config, None where transformers itself could not read it."""
    text = _short(error)
    if "does not recognize this architecture" in text or "Unrecognized model" in text:
        import transformers

        family = re.search(r"model type `(\w+)`", text)
        named = f"the family {family[1]}" if family else "its family"
        return (
            f"{path}: transformers {transformers.__version__} does not know {named}; update "
            "transformers, or choose another model"
        )
    if "custom code" in str(error) or "trust_remote_code" in str(error):
        return (
            f"{path}: asks to run Python code that comes with the model, which is never done; "
            "choose a model of a family that transformers knows"
        )
    if "Unsupported architecture" in text or "supported architecture from config" in text:
        known = getattr(hf_config, "architectures", None) or [type(hf_config).__name__]
        return f"{path}: transformer_lens does not know {known[0]}; choose another model"
    return f"{path}: {text}; mend the file or copy it again"


def _unreadable(path: FilePath, listed: FilePath, error: Exception) -> str:
    """What to say of an error that building the model or reading its weights raised."""
    text = str(error)
    if "weights_only" in text or "Weights only load failed" in text:
        return (
            f"{listed}: holds Python objects other than tensors, which could run code; save the "
            "model as safetensors, with save_pretrained(…, safe_serialization=True)"
        )
    if isinstance(error, KeyError | AttributeError | TypeError | AssertionError | IndexError):
        return no_model(path, error)
    return f"{listed}: can't be read ({_short(error)}); copy or save it again"


def no_model(path: FilePath | str, error: Exception) -> str:
    """What to say of a config that some code could make nothing of."""
    named = f"{type(error).__name__}: {_short(error)}"
    return f"{path}: no model can be made of it ({named}); mend the file or copy it again"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"


def boot(folder: FilePath, hf_model: Any) -> Any:
    """The bridge around `hf_model`, its weights as they are."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.model_bridge.sources import transformers as _  # noqa: F401
    from transformers import PreTrainedTokenizerFast

    # The bridge wants a tokenizer; prompts reach it as token ids, so that any will do.
    inner = Tokenizer(models.WordLevel({"<>": 0, "a": 1}, unk_token="<>"))
    stand_in = PreTrainedTokenizerFast(tokenizer_object=inner)
    try:
        bridge = TransformerBridge.boot_transformers(
            str(folder), hf_model=hf_model, tokenizer=stand_in, device="cpu"
        )
    except Exception as error:  # noqa: BLE001
        raise CircuitviewError(
            f"{folder}: transformer_lens can't hook {type(hf_model).__name__} ({_short(error)}); "
            "choose another model"
        ) from None
    return bridge.eval()


def packed_dtype(file: FilePath) -> str:
    """How most arrays of a GGUF file are packed, by GGUF's name for it ("Q4_1").

    Raises:
        CircuitviewError: where the file is not whole.
    """
    import gguf

    try:
        kinds = Counter(tensor.tensor_type.name for tensor in gguf.GGUFReader(str(file)).tensors)
    except Exception as error:  # noqa: BLE001  (the reader raises what numpy does)
        raise CircuitviewError(
            f"{file}: not a whole GGUF file ({_short(error)}); copy it again"
        ) from None
    if not kinds:
        raise CircuitviewError(f"{file}: holds no arrays; copy it again")
    ((most, _),) = kinds.most_common(1)
    return str(most)


@contextmanager
def one_reader() -> Iterator[None]:
    """While open: a GGUF file is read through once instead of once for each of config, tokenizer
    and weights (seconds each for a large vocabulary), and without a progress bar."""
    import gguf
    from transformers import modeling_gguf_pytorch_utils as reading

    reader, bar = gguf.GGUFReader, reading.tqdm
    once = lru_cache(maxsize=1)(reader)
    # A link to the file is the file.
    gguf.GGUFReader = lambda file, *more: once(os.path.realpath(file), *more)
    reading.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        gguf.GGUFReader, reading.tqdm = reader, bar
