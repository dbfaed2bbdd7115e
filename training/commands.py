"""`readleaf train …`: each command reads a config and calls one training. Heavy parts are imported when one runs."""

from pathlib import Path
from typing import Annotated

import typer

train_app = typer.Typer(help="Train a model.", no_args_is_help=True)
DataFolders = Annotated[
    list[Path], typer.Option("--data", help="A folder with labels.tsv, or with one a class; may be repeated.")
]
WordFolders = Annotated[
    list[Path], typer.Option("--data", help="A folder with labels.tsv, or with LMDB sets; may be repeated.")
]
SceneFolders = Annotated[
    list[Path], typer.Option("--data", help="A folder with labels.tsv, or ICDAR'15 as published; may be repeated.")
]
Config = Annotated[Path, typer.Argument(help="A TOML file; training/configs/ has examples.")]
Out = Annotated[Path, typer.Option(help="The folder of this training.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Leave out files that are no pictures, instead of refusing them.")
]
Changes = Annotated[list[str] | None, typer.Option("--set", help="key=value in place of the config's.")]


@train_app.command("embedder")
def train_embedder(
    config: Config,
    data: DataFolders,
    out: Out,
    resume: Resume = False,
    change: Changes = None,
) -> None:
    """Train the embedder; Ctrl-C stops it, --resume goes on."""
    from training.config import read_config
    from training.train_embedder import EmbedderTraining
    from training.train_embedder import train_embedder as train

    best = train(read_config(EmbedderTraining, config, changes_of(change)), data, out, resume=resume)
    typer.echo(f"the best weights are in {best}")


@train_app.command("classifier")
def train_classifier(
    config: Config,
    data: DataFolders,
    out: Out,
    resume: Resume = False,
    skip_unreadable: SkipUnreadable = False,
    change: Changes = None,
) -> None:
    """Train a classifier by any of the seven methods; Ctrl-C stops it, --resume goes on."""
    from training.config import read_config
    from training.train_classifier import ClassifierTraining
    from training.train_classifier import train_classifier as train

    training = read_config(ClassifierTraining, config, changes_of(change))
    best = train(training, data, out, resume=resume, skip_unreadable=skip_unreadable)
    typer.echo(f"the weights are in {best}")


@train_app.command("recognizer")
def train_recognizer(
    config: Config,
    data: WordFolders,
    out: Out,
    resume: Resume = False,
    change: Changes = None,
) -> None:
    """Train the recogniser on its proxy loss; Ctrl-C stops it, --resume goes on."""
    from training.config import read_config
    from training.train_recognizer import RecognizerTraining
    from training.train_recognizer import train_recognizer as train

    best = train(read_config(RecognizerTraining, config, changes_of(change)), data, out, resume=resume)
    typer.echo(f"the best weights are in {best}")


@train_app.command("tune-recognizer")
def tune_recognizer(config: Config, data: WordFolders, out: Out, change: Changes = None) -> None:
    """Tune a trained recogniser on a learned surrogate of edit distance (LS-ED, FEDS), or go on with its proxy."""
    from training.config import read_config
    from training.tune_recognizer import RecognizerTuning
    from training.tune_recognizer import tune_recognizer as tune

    typer.echo(f"the weights are in {tune(read_config(RecognizerTuning, config, changes_of(change)), data, out)}")


@train_app.command("mix-recognizers")
def mix_recognizers(
    start: Annotated[str, typer.Argument(help="A checkpoint, or published.")],
    trained: Annotated[str, typer.Argument(help="What was trained from it.")],
    to: Annotated[Path, typer.Argument(help="The checkpoint to write.")],
    share: Annotated[float, typer.Option(help="How much of the trained one.", min=0, max=1)] = 0.5,
) -> None:
    """Mix the weights of a recogniser with those it was trained from: it forgets less."""
    from training.mix_recognizers import mix_recognizers as mix

    mix(start, trained, share, to)
    typer.echo(f"wrote {to}")


@train_app.command("words-sheet")
def words_sheet(
    to: Annotated[Path, typer.Argument(help="The PNG to write.")],
    count: Annotated[int, typer.Option(help="How many words.", min=1, max=2000)] = 500,
    seed: Annotated[int, typer.Option(help="Another seed, other words.")] = 0,
) -> None:
    """Look at the words that the recogniser's renderer draws: a contact sheet."""
    from training.data.contact_sheet import draw_sheet

    draw_sheet(to, count, seed)
    typer.echo(f"wrote {to}")


def changes_of(entries: list[str] | None) -> dict[str, str]:
    """`key=value` entries of the option --set."""
    return dict(entry.partition("=")[::2] for entry in entries or ())
