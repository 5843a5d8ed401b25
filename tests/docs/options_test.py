"""Every option that a document names is one that the program has."""

import os
import re
import subprocess
import unittest

import markdown

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# what begins with these is a call of another program
OTHERS = re.compile(r"^(cmake|ctest|make|npm|python3?|source|.*/python3?|.*\.py|build/release/(tests|bench)/\S+)$")


def help_of(*command):
    program = os.environ["LIPSCOPE_PROGRAM"]
    return subprocess.run(
        [program, *command, "--help"], capture_output=True, text=True, check=True
    ).stdout


def options_of(command):
    """The options in the left column of `lipscope COMMAND --help`."""
    found = set()
    for line in help_of(command).splitlines():
        left = re.match(r"  (?:-\w, )?(--[a-z].*?)(?:  |$)", line)
        if left:
            found.update(OPTION.findall(left.group(1)))
    return found


def options_of_tool(name):
    shown = subprocess.run([markdown.ROOT / name, "--help"], capture_output=True, text=True, check=True).stdout
    return set(OPTION.findall(shown))


def all_options():
    """The options by command."""
    listed = help_of().split("Commands:")[1].split("Options:")[0]
    commands = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
    return {command: options_of(command) for command in commands}


class OptionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.options = all_options()

    def setUp(self):
        self.options = dict(self.options)

    def check(self, where, text):
        """Counts the options that were looked at."""
        words = text.split()
        if words and words[0] in ("lipscope", "build/release/lipscope"):
            words = words[1:]
        if words and OTHERS.match(words[0]):
            return 0
        if words[:1] == ["plan"] and len(words) > 1:
            words = words[1:]  # plan COMMAND has the options of the command
        named = words[0] if words else ""
        if named.startswith("tools/"):
            self.options.setdefault(named, options_of_tool(named))
        allowed = self.options.get(named) or set().union(*self.options.values()) | {"--version"}
        found = OPTION.findall(text)
        for option in found:
            with self.subTest(f"{where}: {text}"):
                self.assertIn(option, allowed, f"lipscope {named} has no {option}")
        return len(found)

    def test_fifteen_commands_have_options(self):
        self.assertEqual(len(self.options), 15)
        for command, options in self.options.items():
            self.assertIn("--help", options, command)

    def test_every_option_in_the_documents_exists(self):
        seen = 0
        for path in markdown.DOCUMENTS:
            document = markdown.read(path)
            for number, span in markdown.code_spans(document):
                seen += self.check(f"{document.name()}:{number}", span)
            for block in document.blocks:
                for words in markdown.commands(block):
                    seen += self.check(block.where(), " ".join(words))
        self.assertGreater(seen, 200)
