"""The parts of `vinaya_bridge.verify.verify`: what an output holds, and what it is held against."""
