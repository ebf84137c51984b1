"""The contract of every :class:`~rackloop.abilities.Executor` with its callers.

Needs a POSIX ``sh``, ``cat``, ``grep``, ``head``, ``printf`` and ``sleep`` where the commands run, and ``/proc``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.contracts._clause import CLOCK, await_end, clauses, must_raise, soon
from rackloop.errors import BadInput, DeadlineExceeded, ToolError

ExecutorFactory = Callable[[], Executor]

_LARGE_BYTES = 1 << 20


def reports_status_and_both_streams(make: ExecutorFactory) -> None:
    """A command's exit status, output and complaints come back apart, and a status other than 0 is no error."""
    with closing(make()) as executor:
        done = executor.run(("sh", "-c", "echo out; echo err >&2; exit 3"), soon())
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")


def passes_arguments_untouched(make: ExecutorFactory) -> None:
    """No shell looks at the arguments on the way."""
    arguments = ("a b", "'", '"', "$HOME", "*", "", "new\nline", "ü", "-n")
    with closing(make()) as executor:
        done = executor.run(("printf", "<%s>", *arguments), soon())
    assert done.stdout == "".join(f"<{argument}>" for argument in arguments)


def gives_standard_input_and_its_end(make: ExecutorFactory) -> None:
    """The command reads what it is given, then end of file; by default nothing at all."""
    with closing(make()) as executor:
        assert executor.run(("cat",), soon(), stdin="one\ntwo").stdout == "one\ntwo"
        assert executor.run(("cat",), soon()).stdout == ""


def carries_large_streams_all_ways_at_once(make: ExecutorFactory) -> None:
    """No stream waits for another: a MiB on each, and input that is never read."""
    text = "x" * _LARGE_BYTES
    zeros = f"head -c {_LARGE_BYTES} /dev/zero"
    with closing(make()) as executor:
        done = executor.run(("sh", "-c", f"{zeros} >&2; {zeros}; cat"), soon(), stdin=text)
        unread = executor.run(("true",), soon(), stdin=text)
    assert len(done.stdout) == 2 * _LARGE_BYTES
    assert len(done.stderr) == _LARGE_BYTES
    assert unread.status == 0


def replaces_what_is_not_utf8(make: ExecutorFactory) -> None:
    """Bytes that are no text do not raise."""
    with closing(make()) as executor:
        assert executor.run(("printf", r"a\377b"), soon()).stdout == "a�b"


def ends_a_late_command_with_its_children(make: ExecutorFactory) -> None:
    """A command that does not end in time is named in the error, and neither it nor its children go on."""
    script = 'sleep 1000 & echo "$!" > "$1"; wait'
    with closing(make()) as executor:
        note = executor.put_text("child", "")
        # What starting a command takes is nobody's promise: one that had no time to begin is given more.
        for within_s in (0.3, 1, 3, 9):
            with must_raise(DeadlineExceeded, "sleep 1000"):
                executor.run(("sh", "-c", script, "late", note), Deadline.after(CLOCK, within_s))
            if child := executor.run(("cat", note), soon()).stdout.strip():
                break
        assert child, "a command had not begun in 9 s"
        await_end(executor, child)


def says_which_program_is_missing(make: ExecutorFactory) -> None:
    """A program that is not there is a ToolError that names it, from ``run`` and from ``start``."""
    missing = "no-such-program"
    with closing(make()) as executor:
        with must_raise(ToolError, missing):
            executor.run((missing,), soon())
        with must_raise(ToolError, missing):
            process = executor.start((missing,))
            # Where the command runs far away, the news may come with its end.
            process.wait(soon())


def finds_programs(make: ExecutorFactory) -> None:
    """``find`` gives a path that runs, or None."""
    with closing(make()) as executor:
        path = executor.find("sh")
        assert path is not None
        assert executor.run((path, "-c", "echo found"), soon()).stdout == "found\n"
        assert executor.find("no-such-program") is None


def keeps_files_by_name(make: ExecutorFactory) -> None:
    """``put_text`` makes a file that commands read; the same name replaces it, and folders are refused."""
    text = "first\r\nsecond ü\n"
    with closing(make()) as executor:
        path = executor.put_text("a file", text)
        assert executor.run(("cat", path), soon()).stdout == text
        assert executor.put_text("a file", "other") == path
        assert executor.run(("cat", path), soon()).stdout == "other"
        with must_raise(BadInput, "../escape"):
            executor.put_text("../escape", text)


def exchanges_lines(make: ExecutorFactory) -> None:
    """Lines go both ways while the command runs, and its output ends with None."""
    with closing(make()) as executor:
        process = executor.start(("sh", "-c", 'while read -r line; do echo "<$line>"; done; printf last'))
        for line in ("one", "", "three ü"):
            process.write_line(line)
            assert process.read_line(soon()) == f"<{line}>"
        done = process.wait(soon())
        assert (done.status, done.stdout) == (0, "last")
        assert process.read_line(soon()) is None


def delivers_every_line_of_a_command_that_ended(make: ExecutorFactory) -> None:
    """Output printed before the end can still be read after it, a last line without a newline included."""
    with closing(make()) as executor:
        process = executor.start(("sh", "-c", "echo one; echo; printf three"))
        lines = [process.read_line(soon()) for _ in range(4)]
        assert lines == ["one", "", "three", None]
        assert process.wait(soon()).stdout == ""


def keeps_half_a_line_for_later(make: ExecutorFactory) -> None:
    """A deadline that passes in the middle of a line loses nothing."""
    with closing(make()) as executor:
        process = executor.start(("sh", "-c", "printf half; read -r line; echo whole"))
        with must_raise(DeadlineExceeded, "printf half"):
            process.read_line(Deadline.after(CLOCK, 0.3))
        process.write_line("go on")
        assert process.read_line(soon()) == "halfwhole"


def waits_without_harm(make: ExecutorFactory) -> None:
    """Waiting past the deadline leaves the command running; waiting again gives its end, with its complaints."""
    with closing(make()) as executor:
        script = 'until test -s "$1"; do sleep 0.01; done; echo out; echo err >&2; exit 4'
        process = executor.start(("sh", "-c", script, "waiting", executor.put_text("go", "")))
        with must_raise(DeadlineExceeded, "until test"):
            process.wait(Deadline.after(CLOCK, 0.3))
        executor.put_text("go", "go")
        done = process.wait(soon())
        assert (done.status, done.stdout, done.stderr) == (4, "out\n", "err\n")
        assert process.wait(soon()) == done


def kills_a_command_with_its_children(make: ExecutorFactory) -> None:
    """``kill`` ends the command and what it started, as often as it is called; nothing more can be written."""
    with closing(make()) as executor:
        process = executor.start(("sh", "-c", 'sleep 1000 & echo "$!"; wait'))
        child = process.read_line(soon())
        assert child is not None
        process.kill()
        process.kill()
        assert process.read_line(soon()) is None
        assert process.wait(soon()).status != 0
        with must_raise(ToolError, "sleep 1000"):
            process.write_line("too late")
        await_end(executor, child)


def leaves_nothing_running(make: ExecutorFactory) -> None:
    """Closing ends every command with its children and removes the files; closing twice does nothing."""
    with closing(make()) as watcher:
        executor = make()
        process = executor.start(("sh", "-c", 'sleep 1000 & echo "$!"; wait'))
        child = process.read_line(soon())
        path = executor.put_text("left", "")
        executor.close()
        executor.close()
        assert child is not None
        await_end(watcher, child)
        assert watcher.run(("test", "-e", path), soon()).status == 1, f"{path} was left behind"


def serves_several_threads(make: ExecutorFactory) -> None:
    """Commands of several threads run at once and each gets its own answer."""
    with closing(make()) as executor, ThreadPoolExecutor(4) as pool:
        numbers, within = [str(number) for number in range(16)], soon()
        answers = pool.map(lambda number: executor.run(("cat",), within, stdin=number).stdout, numbers)
        assert list(answers) == numbers


CONTRACT = clauses(__name__)
