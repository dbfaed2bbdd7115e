"""Asks a Triton that was just started for answers that are known: an empty tensor looks like any other from outside."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tritonclient.grpc import InferenceServerClient

from serving.errors import ModelRefused
from serving.metrics import Metrics
from serving.repository import find_versions
from serving.runtime.over_triton import TritonRuntime

RUN_SECONDS = 60.0


def check_values(url: str, models_dir: Path, *, reload: bool) -> Iterator[str]:
    """A line for each version that answers as it should; raises a SetupError for the first that does not."""
    with closing(TritonRuntime(url, RUN_SECONDS, Metrics())) as runtime:
        for name, versions in sorted(find_versions(models_dir).items()):
            if reload:
                runtime.client.load_model(name)
            for version, model in sorted(versions.good.items()):
                runtime.load(model)
                known = "as at its export" if model.manifest.probe else "in the right form; its manifest has no probe"
                yield f"{name} {version}: answers {known}"
            for version, error in sorted(versions.broken.items()):
                yield f"{name} {version}: left out, {error.message}"
            if not versions.good:
                raise ModelRefused(f"{name} has no version that can be served")


def served_models(url: str) -> Iterator[str]:
    """A line for each version of a model."""
    with closing(InferenceServerClient(url)) as client:
        for model in sorted(client.get_model_repository_index().models, key=lambda each: (each.name, each.version)):
            yield f"{model.name} {model.version}: {model.state.lower() or 'not loaded'} {model.reason}".rstrip()
