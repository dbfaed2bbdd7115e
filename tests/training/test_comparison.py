from training.comparison import compare


def test_a_model_a_row():
    comparison = compare(
        {
            "one": [{"b/val/1-nn": 0.5, "a/val_unseen_class/r@1": 0.75, "a/val_unseen_class/r@2": 0.9}],
            "three": [{"a/val_unseen_class/r@1": value} for value in (0.6, 0.7, 0.8)],
        }
    )
    assert comparison.columns == ["model", "a/val_unseen_class/r@1", "b/val/1-nn"]
    assert comparison.rows == [["one", "0.7500", "0.5000"], ["three", "0.7000 ± 0.1000", "–"]]
    assert comparison.markdown().splitlines()[:2] == [
        "| model | a/val_unseen_class/r@1 | b/val/1-nn |",
        "| --- | --- | --- |",
    ]
