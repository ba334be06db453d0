"""Puts the shaders, the browser runtime and the views into the wheel.

An editable install needs no copies: there `pellucid` reads them from the checkout.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelData(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update(
                {
                    "wgsl": "pellucid/wgsl",
                    "web/runtime": "pellucid/web/runtime",
                    "web/views": "pellucid/web/views",
                }
            )
