"""Asks a Triton that was just started for answers that are known: an empty tensor looks like any other from outside."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tritonclient.grpc import InferenceServerClient
from tritonclient.utils import InferenceServerException

from serving.errors import ModelRefused, TritonUnusable
from serving.metrics import Metrics
from serving.repository import find_versions
from serving.runtime.over_triton import TritonRuntime
from serving.runtime.triton_facts import CHECK_SECONDS

RUN_SECONDS = 60.0


def check_values(url: str, models_dir: Path, *, reload: bool) -> Iterator[str]:
    """A line for each version that answers as it should; raises a SetupError for the first that does not."""
    with closing(TritonRuntime(url, RUN_SECONDS, Metrics())) as runtime:
        for name, versions in sorted(find_versions(models_dir).items()):
            if reload and versions.good:
                _load(runtime.client, name)
            for version, model in sorted(versions.good.items()):
                runtime.load(model)
                known = "as at its export" if model.manifest.probe else "in the right form; its manifest has no probe"
                yield f"{name} {version}: answers {known}"
            for version, error in sorted(versions.broken.items()):
                yield f"{name} {version}: left out, {error.message}"
            if not versions.good:
                raise ModelRefused(f"{name} has no version that can be served")


def served_models(url: str) -> Iterator[str]:
    """A line for each version of a model; raises TritonUnusable if Triton does not say."""
    with closing(InferenceServerClient(url)) as client:
        try:
            models = client.get_model_repository_index(client_timeout=CHECK_SECONDS).models
        except InferenceServerException as error:
            raise TritonUnusable(f"Triton at {url} does not say what it serves ({error.message()})") from error
        for model in sorted(models, key=lambda each: (each.name, each.version)):
            yield f"{model.name} {model.version}: {model.state.lower() or 'not loaded'} {model.reason}".rstrip()


def _load(client: InferenceServerClient, name: str) -> None:
    try:
        client.load_model(name, client_timeout=RUN_SECONDS)
    except InferenceServerException as error:
        raise TritonUnusable(f"Triton cannot load {name}: {error.message()}") from error
