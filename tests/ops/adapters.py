"""Devices that kernels are chosen for in the tests, whatever device these run on."""

from pellucid.device.host import Info

H200 = Info("browser", "nvidia", "hopper", "NVIDIA H200", limits={"maxComputeWorkgroupStorageSize": 32768})
LAPTOP = Info("browser", "apple", "metal-3", "", limits={"maxComputeWorkgroupStorageSize": 16384})
SOFTWARE = Info("native", "llvmpipe", "", "")
