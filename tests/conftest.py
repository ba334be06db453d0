"""Every test starts from the same random state."""

import random

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seed() -> None:
    random.seed(0)
    np.random.seed(0)
