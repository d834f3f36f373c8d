"""One physical robot at a fixed rate: the loop that owns it, and the collector that trains on it."""

from safeexplorer.realtime.collector import RobotCollector
from safeexplorer.realtime.hardware import Hardware
from safeexplorer.realtime.loop import RobotLoop, Status, ask_a_person

__all__ = ["Hardware", "RobotCollector", "RobotLoop", "Status", "ask_a_person"]
