"""A server of `heed explore` for the time of a measurement, and requests to it."""
import contextlib
import json
import re
import subprocess
import urllib.request


@contextlib.contextmanager
def explorer(heed, *options):
    """The address of a server that is ended with the block."""
    server = subprocess.Popen([heed, "explore", *options, "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        yield next(found.group() for line in server.stdout
                   if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
    finally:
        server.terminate()
        server.wait()


def ask(address, path, body=None):
    request = urllib.request.Request(
        address + path, None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)
