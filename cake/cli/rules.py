"""`cake rules`: what the verifier checks."""

from __future__ import annotations

from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.verify import all_rules


@cake_command("rules")
def command(out: Output) -> Status:
    """List the rules of the verifier.

    Layer L0 looks at structure, L1 counts the steps of rings. The findings of a contested rule are
    notes at --level idiom. `cake explain CODE` prints the page of a rule.
    """
    rules = all_rules()
    out.table(
        ("code", "name", "layer", "gate", "summary"),
        [
            (r.code, r.name + ("*" if r.contested else ""), r.layer, r.gate, r.entry.summary)
            for r in rules
        ],
    )
    out.line(f"{len(rules)} rules; * contested: practice disagrees with the letter of the manual")
    entries = [
        {
            "code": r.code,
            "name": r.name,
            "layer": r.layer,
            "gate": r.gate,
            "severity": r.entry.severity.value,
            "contested": r.contested,
            "summary": r.entry.summary,
            "bad": r.bad,
            "good": r.good,
        }
        for r in rules
    ]
    return out.finish(Status.ACCEPTED, {"rules": entries})
