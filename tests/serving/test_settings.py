import pytest
from pydantic import ValidationError

from serving.errors import SettingsInvalid
from serving.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"READLEAF_{name.upper()}", raising=False)


def test_every_setting_is_described():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_flags_win_over_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("READLEAF_PORT", "9000")
    monkeypatch.setenv("READLEAF_DATA_DIR", str(tmp_path))
    assert load_settings().port == 9000
    assert load_settings(port=9001, host=None).port == 9001
    assert load_settings().data_dir == tmp_path


def test_an_impossible_value_is_named(monkeypatch):
    monkeypatch.setenv("READLEAF_MAX_RUNNING", "many")
    with pytest.raises(SettingsInvalid, match="READLEAF_MAX_RUNNING is 'many'"):
        load_settings()


def test_a_name_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("READLEAF_PROT", "9000")
    with pytest.raises(SettingsInvalid, match=r"READLEAF_PROT is not a setting.*READLEAF_PORT"):
        load_settings()


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        load_settings().port = 1


def test_where_a_client_finds_a_service_is_no_concern_of_a_service(monkeypatch):
    monkeypatch.setenv("READLEAF_URL", "http://127.0.0.1:9000")
    assert load_settings().port == 8000
