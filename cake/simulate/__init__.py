"""Execution of a program on the CPU: what a schedule means, and what can go wrong with it."""

from cake.simulate.arithmetic import ArithmeticName, residues
from cake.simulate.chain import simulate_chain
from cake.simulate.orders import ORDERS, Order
from cake.simulate.origins import writers
from cake.simulate.run import Options, Simulation, simulate

__all__ = [
    "ORDERS",
    "ArithmeticName",
    "Options",
    "Order",
    "Simulation",
    "residues",
    "simulate",
    "simulate_chain",
    "writers",
]
