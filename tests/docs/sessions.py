"""Code blocks of the documentation, and console sessions that are run again.

A fence ```` ```python file=NAME ```` writes a file. A fence ```` ```console ```` holds commands
behind ``$ `` with their output below; ``head=N`` shows the first N lines of each output, and
``figures`` says that numbers depend on the version of the CUDA compiler. The shell knows `cake`,
`touch`, `ls` and `echo $?`.

``python -m tests.docs.sessions FILE...`` puts the present output into the pages.
"""

import contextlib
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from cake.cli import main
from cake.cli.status import Status

_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words behind it, its text, and where it starts."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    def option(self, name: str) -> str | None:
        """The value of ``name=value`` in the first line of the fence."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), None)


def blocks(markdown: str) -> Iterator[Block]:
    """Every fenced block with a language, in order."""
    for match in _FENCE.finditer(markdown):
        language, *words = match["info"].split()
        line = markdown.count("\n", 0, match.start()) + 1
        yield Block(language, tuple(words), match["body"], line)


def rerun(markdown: str, folder: Path) -> str:
    """``markdown`` with the present output of every command, run in ``folder``."""
    shell = Shell()

    def replaced(match: re.Match[str]) -> str:
        (block,) = blocks(match[0])
        if block.language == "python" and (name := block.option("file")):
            Path(name).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            return match[0]
        return f"```{match['info']}\n{shell.session(block)}```"

    with contextlib.chdir(folder):
        return _FENCE.sub(replaced, markdown)


class Shell:
    """The few commands that the pages show."""

    def __init__(self) -> None:
        self.status = 0

    def session(self, block: Block) -> str:
        """The block with the present output of its commands."""
        commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
        made = "".join(f"{line}\n{self._shown(block, line[2:])}" for line in commands)
        same = "figures" in block.words and _without_figures(made) == _without_figures(block.text)
        return block.text if same else made

    def _shown(self, block: Block, command: str) -> str:
        lines = self._output(command).splitlines()
        limit = int(block.option("head") or len(lines))
        shown = lines[:limit] + ["..."] * (len(lines) > limit)
        return "".join(f"{line}\n" for line in shown)

    def _output(self, command: str) -> str:
        name, *arguments = shlex.split(command)
        if name == "cake":
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code != Status.FAULT, result.output
            self.status = result.exit_code
            return result.output
        if name == "touch":
            Path(arguments[0]).touch()
            return ""
        if name == "ls":
            return "\n".join(sorted(p.name for p in Path(arguments[0]).iterdir()))
        assert command == "echo $?", f"the shell of the documentation does not know: {command}"
        return str(int(self.status))


def _without_figures(text: str) -> str:
    return re.sub(" +", " ", _FIGURE.sub("#", text))


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as scratch:
            page.write_text(rerun(page.read_text("utf-8"), Path(scratch)), encoding="utf-8")
