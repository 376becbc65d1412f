"""All compared methods, found by looking into this folder: a new file is a new method."""

import importlib
import pkgutil
from typing import Any

import repconc.baselines


def methods() -> dict[str, Any]:
    """Modules by the names that stand in tables."""
    names = [module.name for module in pkgutil.iter_modules(repconc.baselines.__path__, "repconc.baselines.")]
    modules = map(importlib.import_module, names)
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}
