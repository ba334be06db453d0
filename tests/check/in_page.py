"""PELLUCID_CHECK=1 in a page: what is right passes, also where reads are awaited, and what is wrong is named.

Run: PELLUCID_CHECK=1 scripts/browser tests/check/in_page.py
"""

import asyncio

import pellucid as torch
from pellucid.op.schema import OPS

x = torch.arange(24.0).reshape(4, 6)
double = torch.compile(lambda a: (a * 2).sin())
for k in (0, 1, 2, 3, 3, 1):
    y = double(x[k])
    z = (y + x[k]).softmax(-1)
    z[1:4] += 1
    assert abs(z.sum().item() - 4) < 1e-5
assert double.explain().replays > 0
total = await (x @ x.T).relu().sum().item_async()
await asyncio.sleep(0)
assert total == 12976

sine, said = OPS["sin"].reference, ""
OPS["sin"].reference = lambda x: sine(x) + 1
try:
    print(x[:, :3].sin().sum().item())
except torch.errors.CheckError as error:
    said = str(error)
assert said.startswith("sin: "), said
assert "in_page.py:" in said, said
print("passed")
