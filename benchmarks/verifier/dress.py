"""What a generated schedule has beside the thing that it is about: it changes nothing there.

Another target with the same instructions, another element type where values are only carried, and
bystanders: two more roles with a ring of their own, which is right. So every family has many
thousands of texts, and a verdict has to hold in different company.
"""

from __future__ import annotations

import re
from random import Random

from benchmarks.verifier.families import indented

TARGETS = {
    "sm_80": ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"),
    "sm_90a": ("sm_90a", "sm_100a", "sm_103a"),
}
"""Targets that have what schedules written for the first one use."""

CARRIED = ("f32", "i32", "u32")
_COMPUTED = re.compile(r"0\.0|1\.0|2\.0|cast\(|fragment|wgmma")
_DIMENSION = re.compile(r'"([MK])"')
_ROLE = re.compile(r"^    with ", re.MULTILINE)


def dressed(r: Random, text: str) -> str:
    """A text of a family in random company."""
    text = _target(r, text)
    if not _COMPUTED.search(text):
        text = text.replace("f32", r.choice(CARRIED))
    # A barrier of the whole CTA, or a cluster, would have to count the bystanders in.
    alone = any(word in text for word in ("cta_sync", "cluster"))
    return text if alone or r.random() < 0.3 else _bystanders(r, text)


def _target(r: Random, text: str) -> str:
    written = text.split('target="')[1].split('"')[0]
    targets = (written,) if "wgmma" in text else TARGETS.get(written, (written,))
    return text.replace(f'"{written}"', f'"{r.choice(targets)}"')


def _bystanders(r: Random, text: str) -> str:
    """Two more roles: one fills a ring from the first to the last round, the other adds it up."""
    stages, width = r.randint(1, 5), r.choice([32, 64, 96])
    size = r.choice(sorted(set(_DIMENSION.findall(text))) or ["4"])
    trip = r.choice(["3", "8", "17", size, f"{size} // 2", f"{size} + 1"])
    declared = [
        f"spare = smem(u32, ({width},), stages={stages})",
        "giver = role(warps=1)",
        "taker = role(warps=1)",
        "aside = pipeline(spare, producer=giver, consumer=taker)",
    ]
    put = [f"store(spare[e][{at} + lane()], cast(j, u32))" for at in range(0, width, 32)]
    take = [f"seen = seen + load(spare[e][{at} + 31 - lane()])" for at in range(0, width, 32)]
    giver = [f"for j in range({trip}):", "    with aside.fill() as e:"]
    giver += ["        " + line for line in put]
    if r.random() < 0.5:
        taker = [f"for j in range({trip}):", "    with aside.use() as e:"]
        taker += ["        " + line for line in take]
    else:
        taker = [f"for j in range({trip}):", "    e = wait(aside)"]
        taker += ["    " + line for line in (*take, "release(aside, e)")]
    at = _ROLE.search(text)
    assert at is not None
    bodies = [
        "    with giver:\n" + indented(2, giver),
        "    with taker:\n" + indented(2, ["seen = cast(0, u32)", *taker]),
    ]
    r.shuffle(bodies)
    head = text[: at.start()] + indented(1, declared) + "\n"
    return head + text[at.start() :].rstrip("\n") + "\n" + "\n".join(bodies) + "\n"
