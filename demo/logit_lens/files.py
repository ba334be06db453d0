"""What was drawn, as files: the arrays of a picture as npz, its numbers as CSV."""

import csv
import io
from typing import Any

import numpy as np


def arrays(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """What was drawn, as named arrays in their own shapes."""
    found: dict[str, np.ndarray] = {}
    if "probs" in data:
        count = len(data["tokens"])
        found["attn_probs"] = np.asarray(data["probs"]).reshape(data["layers"], data["heads"], count, count)
        found["tokens"] = np.array(data["tokens"])
    elif "series" in data:
        found["points"] = np.array(data["points"])
        for row in data["series"]:
            found[row["name"]] = np.asarray(row["values"])
    elif "columns" in data:
        found["values"] = np.asarray(data["values"]).reshape(len(data["rows"]), len(data["columns"]))
        found["rows"], found["columns"] = np.array(data["rows"]), np.array(data["columns"])
    elif "sides" in data:
        found["apart"] = np.asarray(data["apart"]).reshape(-1, data["count"])
        for k, side in enumerate(data["sides"]):
            found[f"ids_{k}"] = np.array([token["id"] for token in side["tokens"]])
            found[f"best_{k}"] = np.array(
                [[cell[0][0] for cell in column["layers"]] for column in side["columns"]]
            ).T
    elif "strengths" in data:
        found["tokens"], found["features"] = np.array(data["tokens"]), np.array(data["features"])
        found["strengths"] = np.asarray(data["strengths"]).reshape(len(data["features"]), -1)
    else:
        found["names"], found["values"] = np.array(data["names"]), np.asarray(data["values"])
    return found


def as_npz(data: dict[str, Any]) -> bytes:
    """The arrays as a file of numpy."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays(data))
    return file.getvalue()


def as_csv(data: dict[str, Any]) -> str:
    """The numbers as a table with a head; attention as one row for each pair of tokens."""
    file = io.StringIO()
    write = csv.writer(file).writerow
    if "probs" in data:
        write(["layer", "head", "from", "to", "probability"])
        probs = arrays(data)["attn_probs"]
        for where in zip(*np.nonzero(probs), strict=True):
            write([*map(int, where), float(probs[where])])
    elif "series" in data:
        write(["layer", *(row["name"] for row in data["series"])])
        for k, point in enumerate(data["points"]):
            write([point, *(float(row["values"][k]) for row in data["series"])])
    elif "columns" in data:
        write(["", *data["columns"]])
        for row, values in zip(data["rows"], arrays(data)["values"], strict=True):
            write([row, *map(float, values)])
    elif "sides" in data:
        write(["layer", *(token["token"] for token in data["sides"][0]["tokens"][: data["count"]])])
        rows, layers = arrays(data)["apart"], data["sides"][0]["layers"]
        for k, row in enumerate(rows, layers - len(rows)):
            write([k, *map(float, row)])
    elif "strengths" in data:
        write(["position", "token", *data["features"]])
        for k, (token, values) in enumerate(zip(data["tokens"], arrays(data)["strengths"].T, strict=True)):
            write([k, token, *map(float, values)])
    else:
        write(["name", data["measure"]])
        for name, value in zip(data["names"], data["values"], strict=True):
            write([name, float(value)])
    return file.getvalue()
