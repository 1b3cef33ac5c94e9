"""What only a process of its own shows: start-up, signals, closed and full outputs."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cake.cli.app import COMMANDS

Start = Callable[..., "subprocess.Popen[bytes]"]

ROOT = Path(__file__).parents[2]

NOT_FOR_HELP = {"numpy", "ml_dtypes", "cuda", "rich", "cake.lang", "cake.ops", "cake.verify"}
NOT_FOR_CHECK = {"cuda", "torch", "rich", "cake.codegen", "cake.simulate", "cake.workloads"}

RUN_AND_PRINT_MODULES = """
import sys
from cake.cli import main
try:
    main(sys.argv[1:])
finally:
    print("modules:", *sorted(sys.modules))
"""


def loaded(*arguments: object) -> tuple[str, set[str]]:
    """What a command prints, and the modules that its process has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_PRINT_MODULES, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    text, _, modules = done.stdout.partition("modules:")
    return text, set(modules.split())


def finish(child: "subprocess.Popen[bytes]") -> tuple[int, str]:
    """Exit status and standard error."""
    _, err = child.communicate(timeout=60)
    return child.returncode, (err or b"").decode()


def test_help_lists_the_commands_and_loads_nothing_heavy() -> None:
    text, modules = loaded("--help")
    assert all(f"  {name} " in text and summary in text for name, summary in COMMANDS.items())
    assert not NOT_FOR_HELP & modules


def test_check_loads_nothing_that_it_does_not_need(good: Path) -> None:
    _, modules = loaded("check", good)
    assert "cake.verify" in modules
    assert not NOT_FOR_CHECK & modules


@pytest.mark.parametrize("closed", [False, True])
def test_nobody_reads_the_output(start: Start, closed: bool) -> None:
    """A closed pipe ends quietly, as SIGPIPE would; no output at all is no error."""
    if closed:
        child = start("targets", "sm_90a", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
        assert finish(child) == (0, "")
        return
    read, write = os.pipe()
    os.close(read)
    child = start("targets", "sm_90a", stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert finish(child) == (141, "")


def test_output_to_a_full_disk_is_an_error(start: Start) -> None:
    with open("/dev/full", "wb") as full:
        status, err = finish(start("targets", stdout=full, stderr=subprocess.PIPE))
    assert status == 4
    assert err == "error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("sent", "status", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_ends_with_its_status_and_no_traceback(
    start: Start, sent: signal.Signals, status: int, word: str
) -> None:
    child = start(
        "check", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdin is not None
    child.stdin.write(b"# a schedule that never ends")
    child.stdin.flush()
    _wait_until_reading(child.pid)
    child.send_signal(sent)
    found, err = finish(child)
    assert found == status
    assert err.strip() == word


def _wait_until_reading(pid: int) -> None:
    """Until the process has loaded everything and sleeps in read(0, ...)."""
    for _ in range(600):
        if Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 "):
            return
        time.sleep(0.05)
    pytest.fail("the process does not read its input")


def test_a_full_disk_leaves_no_half_written_file(start: Start, good: Path, tmp_path: Path) -> None:
    """Files may not exceed 1 KiB: the cache warns, the output fails, nothing stays behind."""
    folder = tmp_path / "out"
    child = start(
        "build",
        good,
        "-o",
        folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )
    status, err = finish(child)
    assert status == 4
    assert "error[CK953]: cannot write" in err
    assert "File too large" in err
    assert list(folder.iterdir()) == []


def test_a_terminal_of_another_encoding_is_no_reason_to_fail(
    start: Start, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    odd = good.rename(good.with_name(os.fsdecode("größer∂".encode() + b"\xff.py")))
    child = start("check", odd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, b"")
    assert "größer??.py: accepted".encode("latin-1") in out


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_colour_needs_a_terminal_and_respects_no_color(
    start: Start, bad: Path, monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    controller, terminal = os.openpty()
    child = start("check", bad, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = _all_of(controller)
    assert child.wait(timeout=60) == 1
    assert b"error[CK101]" in shown
    assert (b"\x1b[1;31merror[CK101]" in shown) == coloured
    assert (b"\x1b[" in shown) == coloured


def test_progress_is_shown_on_a_terminal_and_nowhere_else(
    start: Start, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    arguments = ("simulate", good, "--dim", "N=64", "--scalar", "a=2")
    assert finish(start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)) == (0, "")
    controller, terminal = os.openpty()
    child = start(*arguments, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    assert "100%" in _all_of(controller).decode()
    assert child.wait(timeout=60) == 0


def _all_of(controller: int) -> bytes:
    """Everything that was written to a terminal until its last user left."""
    shown = b""
    with os.fdopen(controller, "rb", buffering=0) as terminal:
        while True:
            try:
                part = terminal.read(65536)
            except OSError:  # Linux: EIO where the other end is gone
                return shown
            if not part:
                return shown
            shown += part
