"""Cake IR: types, expressions, statements, resources and programs.

Nodes are frozen, slotted and keyword-only. Types compare by content; expressions and statements
compare by identity (use :func:`cake.ir.same.same` for structure); every node carries the author's
location, which is never compared.
"""
