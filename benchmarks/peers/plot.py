"""The plot: how fast each library is on each row, beside Pellucid."""

# pyright: reportMissingImports=false
# matplotlib lies apart from the virtual environment.

import sys
from pathlib import Path
from typing import Any

from .results import OURS

MARKERS = {"eager": "o", "unfused": "x", "captured": "s"}


def points(results: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """By row, then by lane: our eager time over the lane's, with quartiles."""
    found = {}
    for name, row in results["rows"].items():
        ratios = {
            names.split(" : ")[1]: ratio
            for names, ratio in row["pairs"].items()
            if names.startswith(f"{OURS}/eager : ")
        }
        if ratios:
            found[name] = {
                lane: {"median": 1 / r["median"], "low": 1 / r["high"], "high": 1 / r["low"]}
                for lane, r in ratios.items()
            }
    return found


def draw(results: dict[str, Any], target: Path, tools: Path) -> bool:
    """Write an SVG file.

    Args:
        results: as in the JSON.
        target: the file.
        tools: where matplotlib lies if the running Python has none.

    Returns: False when nothing can be compared.
    Raises: ModuleNotFoundError when there is no matplotlib.
    """
    found = points(results)
    if not found:
        return False
    sys.path.append(str(tools))
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    libraries = [
        name
        for name in results["libraries"]
        if any(k.startswith(f"{name}/") for v in found.values() for k in v)
    ]
    colours = dict(zip(libraries, matplotlib.color_sequences["tab10"]))
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.45 * len(found)), layout="constrained")
    for place, lanes in enumerate(found.values()):
        for step, (lane, ratio) in enumerate(sorted(lanes.items())):
            library, form = lane.split("/")
            spread = [[ratio["median"] - ratio["low"]], [ratio["high"] - ratio["median"]]]
            height = place + 0.12 * (step - (len(lanes) - 1) / 2)
            axes.errorbar(
                ratio["median"], height, xerr=spread, fmt=MARKERS[form], color=colours[library], markersize=5
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(found)), [results["rows"][name]["row"]["title"] for name in found])
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", alpha=0.3)
    adapter = results["machine"].get("adapter", {})
    device = " ".join(filter(None, (adapter.get(key) for key in ("vendor", "architecture", "description"))))
    axes.set_xlabel(f"speed; Pellucid, eager, is 1 (right is faster); {device}")
    for library in libraries:
        axes.plot([], [], "o", color=colours[library], label=library)
    for form, marker in MARKERS.items():
        axes.plot([], [], marker, color="grey", label=form)
    figure.legend(loc="outside upper center", ncols=len(libraries) + len(MARKERS), frameon=False)
    figure.savefig(target)
    pyplot.close(figure)
    return True
