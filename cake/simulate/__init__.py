"""Execution of a program on the CPU: what a schedule means, and what can go wrong with it."""

from cake.simulate.orders import ORDERS, Order
from cake.simulate.run import Simulation, simulate

__all__ = ["ORDERS", "Order", "Simulation", "simulate"]
