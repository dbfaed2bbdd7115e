from serving.reference import README, rewritten
from serving.settings import Settings


def test_the_readme_is_what_the_code_says():
    text = README.read_text()
    assert rewritten(text) == text, "run `make fix`"


def test_a_missing_row_is_noticed():
    text = README.read_text()
    line = next(line for line in text.splitlines() if "READLEAF_PORT" in line)
    assert rewritten(text.replace(line + "\n", "")) == text


def test_every_setting_stands_in_the_readme():
    text = README.read_text()
    for name, field in Settings.model_fields.items():
        assert f"`READLEAF_{name.upper()}`" in text
        assert str(field.description) in text
