"""SIGTERM and SIGHUP: raised, held or left alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from meanfield.common.files import write_text_whole, write_whole
from meanfield.signals import ENDINGS, TERMINATED, Terminated, terminable, termination_held, when_terminated

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")


@pytest.fixture(autouse=True)
def handler_put_back():
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDINGS}
    yield
    assert [signal.signal(number, handler) for number, handler in before.items()] == [signal.SIG_DFL] * len(ENDINGS)


def _tell(number=signal.SIGTERM):
    signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_raises_where_processes_are_to_be_stopped(number):
    with pytest.raises(Terminated) as told, terminable():
        _tell(number)
    assert told.value.code == TERMINATED == 143


def test_the_innermost_reaction_counts_until_its_end():
    done = []
    with when_terminated(lambda: done.append("outer")):
        with when_terminated(lambda: done.append("inner")):
            _tell()
        _tell()
    assert done == ["inner", "outer"]


def test_it_waits_while_it_is_held():
    done = []
    with when_terminated(lambda: done.append("told")):
        with termination_held():
            _tell()
            _tell()
            assert done == []
        assert done == ["told"]


def test_every_kind_that_was_held_takes_effect():
    done = []
    with when_terminated(lambda: done.append("told")):
        with termination_held():
            _tell(signal.SIGHUP)
            _tell(signal.SIGTERM)
            _tell(signal.SIGHUP)
        assert done == ["told", "told"]


def test_a_signal_that_is_ignored_stays_so():
    """As SIGHUP is under nohup: the command goes on when the terminal closes, and SIGTERM still ends it."""
    done = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with when_terminated(lambda: done.append("told")), termination_held(), terminable():
        _tell(signal.SIGHUP)
    assert done == []
    assert signal.signal(signal.SIGHUP, signal.SIG_DFL) is signal.SIG_IGN
    with pytest.raises(Terminated), terminable():
        _tell(signal.SIGTERM)


def test_it_is_not_forgotten_where_what_held_it_fails():
    done = []

    def fail():
        _tell()
        raise RuntimeError

    with when_terminated(lambda: done.append("told")), pytest.raises(RuntimeError), termination_held():
        fail()
    assert done == ["told"]


def test_a_handler_of_the_program_stays():
    done = []
    signal.signal(signal.SIGTERM, lambda *_: done.append("own"))
    with when_terminated(lambda: done.append("ours")), termination_held(), terminable():
        _tell()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert done == ["own"]


def test_threads_set_no_handler():
    failed = []

    def work():
        try:
            with terminable(), termination_held():
                pass
        except ValueError as error:
            failed.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert not failed


def test_a_file_that_is_being_written_is_finished_first(tmp_path):
    def write(path):
        path.write_text("half")
        _tell()
        path.write_text("whole")

    with pytest.raises(Terminated), terminable():
        write_whole(tmp_path / "file", write)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_without_a_reaction_the_program_ends_as_ever_but_between_files(tmp_path):
    program = """
import signal, sys
from pathlib import Path
from meanfield.common.files import write_whole
def write(path):
    signal.raise_signal(signal.SIGTERM)
    path.write_text("whole")
write_whole(Path(sys.argv[1]), write)
"""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], cwd=root)
    assert done.returncode == -signal.SIGTERM
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_writing_changes_nothing_else(tmp_path):
    write_text_whole(tmp_path / "file", "text")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _interrupted(code):
    """Status, output and complaint of a program that interrupts itself."""
    begin = "import signal\nfrom meanfield.signals import end_when_interrupted, interrupts_raised\n"
    done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


RAISED = """
end_when_interrupted()
try:
    with interrupts_raised(), interrupts_raised():
        signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("raised", flush=True)
signal.raise_signal(signal.SIGINT)
"""


def test_an_interrupt_is_raised_while_work_goes_on_and_ends_the_process_before_and_after():
    assert _interrupted(RAISED) == (130, "raised\n", "\ninterrupted\n")


def test_a_handler_of_the_program_itself_stays():
    own = """
signal.signal(signal.SIGINT, lambda *_: print("own"))
end_when_interrupted()
with interrupts_raised():
    signal.raise_signal(signal.SIGINT)
"""
    assert _interrupted(own) == (0, "own\n", "")


THROUGH_C = """
import ctypes
run = ctypes.pythonapi.PyRun_String
run.restype, run.argtypes = ctypes.py_object, [ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object]
end_when_interrupted()
try:
    with interrupts_raised():
        run(b"import signal; signal.raise_signal(signal.SIGINT)", 257, {}, {})
except KeyboardInterrupt:
    print("raised")
    raise SystemExit(130)
"""


def test_an_interrupt_that_passes_through_c_keeps_its_status(tmp_path):
    """Python kills itself by the signal once code that C has run raises KeyboardInterrupt, though it is caught."""
    begin = "import signal\nfrom meanfield.signals import end_when_interrupted, interrupts_raised\n"
    (tmp_path / "through_c.py").write_text(begin + THROUGH_C)
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "through_c"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | paths)
    assert (done.returncode, done.stdout, done.stderr) == (130, "raised\n", "")


AT_THE_END = """
import ctypes
libc = ctypes.CDLL(None)
end_when_interrupted()
libc.on_exit(getattr(libc, "raise"), None)
raise SystemExit(int(signal.SIGINT))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux to raise a signal at its exit")
def test_an_interrupt_while_python_is_taken_down_changes_no_status():
    """The C library calls raise(status) behind all of Python, and the status is the number of SIGINT."""
    assert _interrupted(AT_THE_END) == (signal.SIGINT, "", "")


def test_a_library_that_is_imported_leaves_interrupts_alone():
    """Only of a command of its own it knows that nothing is lost."""
    alone = "import sims, figures\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    assert _interrupted(alone) == (0, "", "")
