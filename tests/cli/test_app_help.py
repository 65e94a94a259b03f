"""Every command has help with an example, and the command reference is up to date."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import typer

from rankinite.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"


def load_generator():
    spec = importlib.util.spec_from_file_location("generator", DOCS / "make_command_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()
COMMANDS = dict(GENERATOR.commands(typer.main.get_command(app)))


def test_the_reference_is_what_help_says():
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert page == GENERATOR.reference(), "run: make docs"


def test_every_parameter_is_in_the_reference():
    page = GENERATOR.reference()
    for name, command in COMMANDS.items():
        section = page.partition(f"\n## {f'rankinite {name}'.strip()}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name != "argument":
                assert f"| `{parameter.opts[0]}`" in section, (name, parameter.name)


def test_every_command_has_an_example_of_itself():
    assert {f"data {name}" for name in ("describe", "convert", "split", "augment", "normalise")} | {
        f"data simulate {name}" for name in ("polynomials", "challenge", "clicks")
    } <= set(COMMANDS)
    assert {"train", "predict", "inspect", "evaluate", "compare", "demo"} <= set(COMMANDS)
    for name, command in COMMANDS.items():
        assert command.epilog.startswith(f"Example: rankinite {name}".strip()), name


def test_help_shows_the_example_and_brackets_of_label_sources(call):
    text = call("train", "--help")
    assert "CNDCG@3[clicks]" in text
    assert "Example: rankinite train train.txt" in text


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom rankinite.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'numpy', 'pyarrow', 'scipy', 'sklearn', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
