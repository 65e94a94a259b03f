from .results import Sweep as Sweep
from .sweep import open_sweep as open_sweep
from .sweep import run_sweep as run_sweep
