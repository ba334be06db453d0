"""The recipe for Pyodide's distribution says what pyproject.toml says."""

import re
import tomllib

import yaml

from paths import ROOT


def test_recipe_agrees_with_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((ROOT / "recipe" / "meta.yaml").read_text())
    assert recipe["package"] == {
        "name": project["name"],
        "version": project["version"],
        "top-level": ["pellucid"],
    }
    assert recipe["requirements"]["run"] == [re.match(r"[\w-]+", text)[0] for text in project["dependencies"]]
    assert recipe["about"]["license"] == project["license"]
    assert recipe["test"]["imports"] == ["pellucid"]
