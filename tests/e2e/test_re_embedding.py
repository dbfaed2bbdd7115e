"""A new embedder for all collections: nothing is lost, whatever happens while it looks at all pictures."""

import os
import random
import shutil
import signal
import sqlite3
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from typer.testing import CliRunner

import readleaf

pytestmark = pytest.mark.timeout(900)


def activate(service, version, *flags):
    """By the command, which waits until it is done; its exit code."""
    words = ["models", "activate", "embedder", str(version), "--url", service.url, *flags]
    return CliRunner().invoke(readleaf.app, words).exit_code


def in_use(service):
    return {info.name: info.version for info in service.client.models().models}["embedder"]


def find_all(client, pictures):
    for label, data in pictures.items():
        [found] = client.search("c", data, 1).neighbours
        assert (found.label, found.score > 0.999) == (label, True)


def wait_for_jobs(http):
    ends = time.monotonic() + 60
    while any(job["state"] in ("waiting", "running") for job in http.get("/v1/jobs").json()["jobs"]):
        assert time.monotonic() < ends
        time.sleep(0.05)


def outage(triton, server, models, begins):
    """Triton is killed after `begins` seconds, and comes back two seconds later."""
    time.sleep(begins)
    os.kill(server.pid, signal.SIGKILL)
    time.sleep(2)
    triton.start(models, server.ports, str)


@pytest.mark.campaign
def test_kills_while_an_embedder_is_switched(tmp_path, models, add_version, run_service, photo, encoded, rounds):
    """After a start each picture finds itself, whichever version answers, and the switch is finished."""
    add_version(models, "embedder")
    pictures = {str(number): encoded(photo(60, 50, seed=number)) for number in range(80)}
    some = dict(list(pictures.items())[::8])
    wanted, seen = 2, Counter()  # a new data folder takes the newest
    for kill in range(rounds(3, 20)):
        with run_service(tmp_path / "data", models_dir=models) as service:
            if not kill:
                service.client.create_collection("c")
                for label, data in pictures.items():
                    service.client.add_item("c", data, label)
            wait_for_jobs(service.http)
            assert in_use(service) == wanted
            find_all(service.client, pictures)
            wanted = 3 - wanted
            service.client.activate("embedder", wanted)
            time.sleep(random.Random(kill).uniform(0, 0.8))
            service.process.send_signal(signal.SIGKILL)
            service.process.wait()
        with closing(sqlite3.connect(tmp_path / "data/readleaf.db")) as database, database:
            [(version,)] = database.execute("SELECT version FROM models_in_use WHERE name = 'embedder'")
            [(ready,)] = database.execute("SELECT COUNT(*) FROM prepared_vectors")
            seen["switched" if version == wanted else "half way" if ready else "not begun"] += 1
            database.execute("DELETE FROM prepared_vectors")  # else the next switch would have nothing to do
        with run_service(tmp_path / "data", models_dir=models) as service:
            find_all(service.client, some)
    with run_service(tmp_path / "data", models_dir=models) as service:
        wait_for_jobs(service.http)
        assert in_use(service) == wanted
        find_all(service.client, pictures)
    print(f"when it was killed, the switch was: {dict(seen)}")  # noqa: T201 - shown by make soak


def test_pictures_that_come_during_a_switch_are_found_after_it(models, add_version, start_service, photo, encoded):
    """Uploads do not wait for a switch, and none is left behind with a vector of the version before."""
    service = start_service(models_dir=models)
    service.client.create_collection("c")
    pictures = [encoded(photo(60, 50, seed=number)) for number in range(150)]

    def add(number):
        service.client.add_item("c", pictures[number], str(number))

    for number in range(50):
        add(number)
    add_version(models, "embedder")
    with ThreadPoolExecutor(3) as clients:
        adding = [clients.submit(add, number) for number in range(50, 150)]
        for version in (2, 1, 2):
            assert activate(service, version) == 0
        for each in adding:
            each.result()
    assert in_use(service) == 2
    assert service.client.collection("c").outdated == 0
    find_all(service.client, {str(number): data for number, data in enumerate(pictures)})


def test_jobs_wait_while_triton_is_away(tmp_path, models, add_version, run_triton, start_service, photo, encoded):
    """Neither a switch of the embedder nor an import passes over what could not be asked."""
    pictures = {str(number): encoded(photo(60, 50, seed=number)) for number in range(240)}
    add_version(models, "embedder")
    shutil.move(models / "embedder/2", tmp_path / "embedder-2")
    with run_triton(tmp_path / "triton-data", models) as (triton, server):
        service = start_service(models_dir=models, runtime="triton", triton_url=server.url)
        service.client.create_collection("c")
        with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
            for label, data in pictures.items():
                archive.writestr(f"{label}/a.jpg", data)
        job = service.client.import_archive("c", tmp_path / "many.zip")
        outage(triton, server, models, 0.5)
        wait_for_jobs(service.http)
        job = service.client.job(job.id)
        assert (job.state, job.done, job.refused) == ("done", len(pictures), 0)
        shutil.move(tmp_path / "embedder-2", models / "embedder/2")
        server, _ = triton.start(models, server.ports, str)
        activation = service.client.activate("embedder", 2)
        outage(triton, server, models, 0.5)
        wait_for_jobs(service.http)
        assert service.client.job(activation.job).state == "done"
        assert in_use(service) == 2
        assert service.client.collection("c").outdated == 0
        find_all(service.client, pictures)


def test_a_switch_that_cannot_be_finished_changes_nothing(models, add_version, start_service, photo, encoded):
    """A file of another model has gone: whatever is switched, the pipelines cannot be put together any more."""
    service = start_service(models_dir=models)
    service.client.create_collection("c")
    service.client.add_item("c", encoded(photo(seed=1)), "one")
    for name in ("embedder", "classifier"):
        add_version(models, name)
    (models / "recognizer/1/language.npz").unlink()
    answer = service.http.post("/v1/models/classifier/activate", json={"version": 2})
    assert (answer.status_code, "cannot be used" in answer.json()["detail"]) == (409, True)
    job = service.client.activate("embedder", 2).job
    wait_for_jobs(service.http)
    assert service.client.job(job).state == "failed"
    assert {info.version for info in service.client.models().models} == {1}
    service.client.add_item("c", encoded(photo(seed=2)), "two")
    find_all(service.client, {"one": encoded(photo(seed=1)), "two": encoded(photo(seed=2))})


def test_pictures_that_cannot_be_read_any_more(models, add_version, start_service, tmp_path, photo, encoded):
    """They would be found no longer, so the switch is refused, and says which they are."""
    service = start_service(models_dir=models)
    service.client.create_collection("c")
    item = service.client.add_item("c", encoded(photo(seed=1)), "lost")
    service.client.add_item("c", encoded(photo(seed=2)), "kept")
    [file] = (tmp_path / "data").rglob(f"{item.sha256}*")
    file.unlink()
    add_version(models, "embedder")
    job = service.client.activate("embedder", 2).job
    wait_for_jobs(service.http)
    failed = service.client.job(job)
    assert (failed.state, [error.file for error in failed.errors]) == ("failed", [item.sha256])
    assert "1 pictures cannot be read any more" in failed.message
    assert in_use(service) == 1
    assert activate(service, 2, "--force") == 0
    assert in_use(service) == 2
    find_all(service.client, {"kept": encoded(photo(seed=2))})


def test_an_embedder_that_is_gone_from_the_disk(models, add_version, run_service, tmp_path, photo, encoded):
    """The one that is left makes all vectors anew."""
    pictures = {str(number): encoded(photo(60, 50, seed=number)) for number in range(20)}
    add_version(models, "embedder")
    with run_service(tmp_path / "data", models_dir=models) as service:
        service.client.create_collection("c")
        for label, data in pictures.items():
            service.client.add_item("c", data, label)
        assert in_use(service) == 2
    shutil.rmtree(models / "embedder/2")
    with run_service(tmp_path / "data", models_dir=models) as service:
        wait_for_jobs(service.http)
        assert in_use(service) == 1
        find_all(service.client, pictures)
