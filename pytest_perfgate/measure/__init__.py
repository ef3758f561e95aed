"""The doors to clocks, torch and NVML, and how measuring is driven."""
