"""Puts the shaders, the browser runtime and the views into the wheel, and the parts of shaders as a module.

An editable install needs none of it: there `pellucid` reads the checkout.
"""

import os
import runpy
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelData(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            part_file = os.path.join(self.root, "pkg/pellucid/op/kernel/part_file.py")
            text = runpy.run_path(part_file)["module_of"](os.path.join(self.root, "wgsl/parts"))
            self.folder = tempfile.TemporaryDirectory()
            module = os.path.join(self.folder.name, "parts_read.py")
            with open(module, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["force_include"].update(
                {
                    "wgsl": "pellucid/wgsl",
                    "web/runtime": "pellucid/web/runtime",
                    "web/views": "pellucid/web/views",
                    module: "pellucid/op/kernel/parts_read.py",
                }
            )
