import json
import subprocess
import sys

SCRIPT = """
import logging, structlog
from serving.logs import configure_logs
configure_logs("info", {form!r})
structlog.get_logger().info("ours", number=7)
structlog.get_logger().debug("hidden")
logging.getLogger("library").warning("theirs")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("failed")
"""


def lines(form):
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(form=form)], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    return run.stderr


def test_json_lines_are_json():
    events = [json.loads(line) for line in lines("json").splitlines()]
    assert [event["event"] for event in events] == ["ours", "theirs", "failed"]
    assert events[0]["number"] == 7
    assert "ZeroDivisionError" in events[2]["exception"]


def test_console_lines_are_for_people():
    text = lines("console")
    assert "number=7" in text
    assert "theirs" in text
    assert "ZeroDivisionError" in text
    assert "hidden" not in text
