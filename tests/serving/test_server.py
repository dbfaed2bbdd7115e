import socket

import pytest

from serving.errors import AddressRefused, PortInUse
from serving.server import address_of, open_socket


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_without_keys_only_loopback(host):
    with pytest.raises(AddressRefused, match="without API keys"):
        open_socket(host, 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_the_refusal_says_what_to_do(host):
    with pytest.raises(AddressRefused, match="readleaf keys create"):
        open_socket(host, 0)


def test_with_keys_any_address():
    with open_socket("0.0.0.0", 0, keys=True) as listener:
        assert address_of(listener).startswith("http://127.0.0.1:")  # where this machine reaches it


def test_what_is_no_address():
    with pytest.raises(AddressRefused, match="'leaf' is not an address"):
        open_socket("leaf", 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_a_free_port(host):
    with open_socket(host, 0) as listener:
        assert address_of(listener).startswith("http://127.0.0.")
        assert not address_of(listener).endswith(":0")


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6_is_bracketed():
    try:
        listener = open_socket("::1", 0)
    except PortInUse:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert address_of(listener).startswith("http://[::1]:")


def test_port_in_use():
    with open_socket("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} .*--port"):
            open_socket("127.0.0.1", port)


def test_small_answers_are_sent_at_once():
    with open_socket("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
