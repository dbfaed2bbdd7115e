from typer.testing import CliRunner

import readleaf
from serving.language import read_language


def test_the_command_learns_from_training_labels_and_lists(tmp_path, monkeypatch):
    dictionary = tmp_path / "dict"
    dictionary.mkdir()
    for name in ("american-english-small", "american-english", "american-english-large"):
        (dictionary / name).write_text("leaf\nread\nroot\n")
    monkeypatch.setattr("training.language.DICTIONARY", dictionary)
    rows = ["file\ttext\tsource\tset", "a.jpg\tBotanic!\tmade\ttrain", "b.jpg\tUnseen\tmade\tval"]
    (tmp_path / "labels.tsv").write_text("\n".join(rows) + "\n")
    file = tmp_path / "made/language.npz"
    words = ["export", "language", "--data", str(tmp_path), "--out", str(file), "--weight", "0.3", "--bonus", "0.7"]
    answer = CliRunner().invoke(readleaf.app, words)
    assert answer.exit_code == 0, answer.output
    language = read_language(file)
    assert set(language.words) == {"botanic", "leaf", "read", "root"}  # nothing of val
    assert (language.weight, language.bonus) == (0.3, 0.7)
    assert language.score("leaf") > language.score("laef")
    assert language.score("roots") > language.score("rtsoo")  # spelled letter by letter
