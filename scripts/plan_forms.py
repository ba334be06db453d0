"""Texts of plans that most programs need, so that the package has them compiled (`op/plan_text/forms.py`)."""

from unittest.mock import patch

from paths import ROOT

FILE = ROOT / "pkg" / "pellucid" / "op" / "plan_text" / "forms.py"
# Of tensors x, y of two axes, b of one, w a square matrix and c of bools. Ops share the text of a form.
EVERYDAY = """
t.full((2, 4), 0.5)
t.rand(2, 4)
x * y
x + y
x * 0.5
x + 0.5
0.5 - x
x.tanh()
x.relu()
x.half()
t.where(c, x, y)
t.where(c, x, 0.5)
x.masked_fill(c, 0.5)
x.sum(-1)
x.softmax(-1)
x @ w
F.linear(x, w)
F.linear(x, w, b)
F.layer_norm(x, (4,), b, b)
F.rms_norm(x, (4,), b)
x.mul_(y)
x.add_(y)
"""
HEAD = '''"""Plans of everyday ops, compiled with the package, by the hash of the text that `write` makes.

Written by `scripts/reference`; do not edit.
"""

# ruff: noqa
# fmt: off
'''


def texts() -> dict:
    """What the file should be."""
    import pellucid as t
    from pellucid.nn import functional as F
    from pellucid.op.plan_cache import forget_plans
    from pellucid.op.plan_text import write

    x, y, w, b = t.rand(2, 4), t.rand(2, 4), t.rand(4, 4), t.rand(4)
    scope = {"t": t, "F": F, "x": x, "y": y, "w": w, "b": b, "c": x > y}
    # Plans that are there are not made again, and nor are functions.
    write.factory.cache_clear()
    forget_plans()
    found: dict[str, str] = {}
    compiled = write.compiled

    def note(text: str):
        found[write.name_of(text)] = text
        return compiled(text)

    with patch.object(write, "compiled", note):
        for call in EVERYDAY.split("\n"):
            eval(call or "None", scope)
    parts = [HEAD, *[text.replace("def make(", f"def {name}(", 1) for name, text in sorted(found.items())]]
    return {FILE: "\n\n".join(parts) + "\n"}
