"""Every place that knows a ranker's parameters agrees with their declarations."""

from __future__ import annotations

import inspect
import tomllib

import pytest
import typer
from sklearn.base import clone

import rankinite as rk
from rankinite.cli.options import Parameters
from rankinite.core.errors import UsageError
from rankinite.core.params import YES_OR_NO, OneOf, file_parameters_of, parameters_of
from rankinite.models import RANKERS
from rankinite.nets import net
from rankinite.rankers.aliases import explain_alias
from rankinite.rankers.lambdarank import EPOCHS
from rankinite.rankers.mart import LOSSES
from rankinite.rankers.parameters import (
    MOST_UNITS,
    RANKER_PARAMETERS,
    LambdaRankParameters,
    MARTParameters,
)
from rankinite.runs.recipe_models import recipe_parameters
from rankinite.runs.training import Source, configure, defaults_of, keys_of

every_ranker = pytest.mark.parametrize("name", RANKERS)
EVERY_PARAMETER = [
    pytest.param(RANKERS[ranker], declared, id=f"{ranker}-{name}")
    for ranker, group in RANKER_PARAMETERS.items()
    for name, declared in parameters_of(group).items()
]
every_parameter = pytest.mark.parametrize(("ranker", "declared"), EVERY_PARAMETER)


def flag_of(name):
    (option,) = inspect.signature(Parameters).parameters[name].annotation.__metadata__
    assert isinstance(option, typer.models.OptionInfo)
    return option


@every_ranker
def test_rankers_have_the_parameters_of_their_group(name):
    ranker, group = RANKERS[name], RANKER_PARAMETERS[name]
    declared = parameters_of(group)
    assert parameters_of(ranker) == declared
    signature = inspect.signature(ranker).parameters
    assert signature.keys() == declared.keys()
    assert {key: argument.default for key, argument in signature.items()} == {
        key: parameter.default for key, parameter in declared.items()
    }
    assert ranker().get_params(deep=False) == {
        key: parameter.default for key, parameter in declared.items()
    }
    positional = [key for key, argument in signature.items() if argument.kind.value == 1]
    assert positional == [key for key, parameter in declared.items() if parameter.is_positional]
    assert ranker.constraints == {
        key: parameter.constraint
        for key, parameter in declared.items()
        if parameter.constraint is not None
    }


@every_ranker
def test_keys_of_files_are_the_parameters(name):
    declared = file_parameters_of(RANKERS[name])
    assert set(parameters_of(RANKERS[name])) - set(declared) <= {"base"}
    assert defaults_of(name) == {key: parameter.default for key, parameter in declared.items()}
    assert declared.keys() <= keys_of(name).keys()
    assert ("base" in keys_of(name)) == ("base" in parameters_of(RANKERS[name]))
    assert recipe_parameters(name).keys() == declared.keys() - {"random_state"} | {"preset"}
    config = configure(Source("test", {"ranker": name}))
    again = configure(Source("test", tomllib.loads(config.to_toml())))
    assert again.new_ranker().get_params().keys() == RANKERS[name]().get_params().keys()
    assert again.to_toml() == config.to_toml()


def test_flags_are_the_parameters():
    names = {name for ranker in RANKERS.values() for name in file_parameters_of(ranker)}
    assert inspect.signature(Parameters).parameters.keys() == names
    assert Parameters(n_trees=None, patience=3).values == {"patience": 3}


@every_parameter
def test_declarations(ranker, declared):
    assert declared.constraint is None or declared.constraint.allows(declared.default)
    assert declared.help[0].isupper()
    assert declared.help.endswith(".")
    assert not declared.details or declared.details.endswith(".")
    head = f"\n{declared.name} : "
    (text,) = inspect.getdoc(ranker).split(head)[1:]
    assert text.splitlines()[0].endswith(f"default={declared.default!r}")
    assert " ".join(declared.help.split()) in " ".join(text.split())


@every_parameter
def test_flags_say_what_the_declarations_say(ranker, declared):
    if declared.file_constraint is None:
        return
    option = flag_of(declared.name)
    text = option.help.replace("\\[", "[")
    assert declared.help in text
    assert ranker.__name__ in option.rich_help_panel or "all rankers" in option.rich_help_panel
    assert set(declared.flags) <= set(option.param_decls)
    if isinstance(declared.constraint, OneOf) and declared.constraint != YES_OR_NO:
        assert all(value in text for value in declared.constraint.values)


@every_parameter
def test_aliases_lead_to_the_parameter(ranker, declared):
    known = parameters_of(ranker)
    assert len(set(declared.aliases)) == len(declared.aliases)
    for alias in set(declared.aliases) - known.keys():
        assert repr(declared.name) in explain_alias(ranker.__name__, alias, known)
        with pytest.raises(UsageError, match=f"no parameter '{alias}'; .*'{declared.name}'"):
            ranker(**{alias: 1})


def test_declared_values_are_those_of_the_code():
    assert parameters_of(MARTParameters)["loss"].constraint == OneOf(list(LOSSES))
    assert parameters_of(LambdaRankParameters)["optimiser"].constraint == OneOf(list(EPOCHS))
    assert net.MOST_UNITS == MOST_UNITS


def test_files_and_flags_of_every_ranker_are_those_of_the_registry():
    assert list(RANKER_PARAMETERS) == list(RANKERS)
    for name, group in RANKER_PARAMETERS.items():
        assert issubclass(RANKERS[name], group)


def test_a_preset_has_other_defaults():
    model = rk.LambdaMART(preset="paper", n_leaves=64)
    assert (model.n_leaves, model.n_trees, model.symmetric) == (64, 500, False)
    assert "preset" not in model.get_params()
    assert clone(model).get_params() == model.get_params()
    assert rk.MART("logistic", preset="paper").loss == "logistic"
    with pytest.raises(rk.UsageError, match="LambdaMART: preset must be one of 'paper'; got 'pap'"):
        rk.LambdaMART(preset="pap")


@every_ranker
def test_presets_of_files_and_of_python_are_the_same(name):
    from_file = configure(Source("test", {"ranker": name, "preset": "paper", "patience": 7}))
    assert from_file.new_ranker().get_params() == (
        RANKERS[name](preset="paper", patience=7).get_params()
    )
    # The file of a training repeats it, whatever presets are then.
    assert "preset" not in from_file.to_toml()
