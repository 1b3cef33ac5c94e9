"""The list of hazards, in the order of their sections, each with what shows it.

A hazard is shown by the examples of rules, by tests of the phase simulation, or by a file
``schedules/<name>.py`` of schedules ``good...`` and ``bad...``. ``never`` says why no schedule can
have it; ``missing`` names the primitive that is not there yet; ``runtime`` says which layer beyond
the static ones refuses the bad schedules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A hazard. At most one of ``never`` and ``missing`` is set, and then it has no schedules."""

    name: str
    rules: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    never: str = ""
    missing: str = ""
    runtime: str = ""

    @property
    def expressible(self) -> bool:
        """Whether a schedule can have the hazard."""
        return not (self.never or self.missing)


def own(name: str, runtime: str = "") -> Entry:
    """A hazard with schedules of its own."""
    return Entry(name=name, runtime=runtime)


def rules(name: str, *codes: str) -> Entry:
    """A hazard that is what some rules are about."""
    return Entry(name=name, rules=codes)


def phase(name: str, *names: str) -> Entry:
    """A hazard that the tests of the phase simulation show."""
    return Entry(name=name, phase=names)


def never(name: str, why: str) -> Entry:
    """A hazard that lowering, typing or the launch exclude."""
    return Entry(name=name, never=why)


def missing(name: str, what: str) -> Entry:
    """A hazard of a primitive that the language lacks."""
    return Entry(name=name, missing=what)


_HOST = "The launch belongs to cake.runtime: "

ENTRIES: tuple[Entry, ...] = (
    # -- mbarriers and pipelines -------------------------------------------------------------------
    rules("mbar-init-once", "CK336"),
    never(
        "mbar-init-publish", "The prologue initialises, fences and meets before any role begins."
    ),
    never("mbar-storage-live", "Barriers lie outside pools and live as long as the kernel."),
    never("mbar-align8", "The layout of shared memory aligns barriers; nobody places one."),
    phase("arrive-count-match", "arrive-count-low", "arrive-count-high"),
    phase("full-never-armed", "full-never-armed"),
    Entry(name="expect-bytes-equal", rules=("CK402",), phase=("expect-low", "expect-high")),
    own("oob-box-full-bytes"),
    own("tx-count-range"),
    phase("expect-not-late", "expect-late"),
    phase("initial-parity", "initial-parity"),
    phase("parity-from-history", "parity-from-history"),
    phase("phase-carry-tiles", "phase-carry-tiles"),
    own("slot-reuse-anchor"),
    phase("phase-skip-symmetric", "phase-skip-symmetric"),
    phase("parity-lag-two", "parity-lag-two"),
    Entry(name="missing-empty-wait", rules=("CK408",), phase=("missing-empty-wait",)),
    Entry(name="early-release", rules=("CK404", "CK405"), phase=("early-release",)),
    rules("stages-vs-inflight", "CK413"),
    rules("credit-cycle", "CK414"),
    Entry(name="trip-count-agree", rules=("CK331", "CK411"), phase=("trip-count-disagrees",)),
    rules("drain-before-end", "CK348", "CK347", "CK314"),
    # -- named barriers, CTA barriers, roles -------------------------------------------------------
    rules("nb-id-range", "CK334"),
    rules("nb-count", "CK333"),
    own("nb-id-clash"),
    never("nb-aligned-one-site", "Barriers of roles are emitted in the form that is not aligned."),
    rules("cta-barrier-in-role", "CK332"),
    phase("nb-generation-recycle", "nb-generation-recycle"),
    own("nb-no-async-signal"),
    rules("sync-op-converged", "CK330"),
    own("warpgroup-contiguous"),
    rules("role-partition", "CK300"),
    rules("warp-lane-exchange", "CK342"),
    # -- proxies and memory order ------------------------------------------------------------------
    Entry(name="proxy-generic-to-async", rules=("CK350", "CK354"), phase=("no-fence",)),
    Entry(name="proxy-fence-before-barrier", rules=("CK351",), phase=("fence-after-barrier",)),
    own("proxy-fence-every-path"),
    rules("proxy-read-then-async-write", "CK353"),
    rules("cpasync-is-generic", "CK352"),
    rules("global-generic-to-tma", "CK325"),
    rules("tma-store-global-publish", "CK329"),
    never("tensormap-proxy-fence", "Tensor maps are kernel parameters that no device code writes."),
    never("tensormap-inflight-update", "Tensor maps are kernel parameters and never change."),
    never("remote-arrive-form", "An arrival with peer= is emitted in its cluster form."),
    never("relaxed-barrier-publishes-nothing", "Arrivals release and waits acquire, always."),
    missing("completion-not-transitive", "cluster launch control (CLC)"),
    rules("nc-load-mutable", "CK326"),
    own("flag-protocol"),
    never("asm-memory-clobber", "Every emitted instruction that orders memory clobbers it."),
    # -- wgmma -------------------------------------------------------------------------------------
    never("wgmma-fence", "wgmma is emitted with its fence before and its commit after it."),
    rules("wgmma-touch-inflight", "CK345"),
    never("wgmma-serialised", "Emitted code has no calls; the build reports CK602 for the rest."),
    rules("wgmma-commit-wait", "CK404", "CK347"),
    rules("wgmma-rs-operands", "CK346"),
    own("wgmma-shape"),
    own("wgmma-major"),
    rules("wgmma-regs-fit", "CK304"),
    never("wgmma-fragment-owner", "One table says which thread owns which element."),
    never("smem-desc-fields", "Descriptors are derived from the layout of the buffer."),
    # -- tcgen05 and tensor memory -----------------------------------------------------------------
    own("tmem-cols"),
    own("tmem-alloc-once"),
    never("tmem-alloc-after-relinquish", "The permit is given up behind the last allocation."),
    own("tmem-dealloc"),
    own("tmem-address-published"),
    own("tmem-allocated-at-all"),
    own("tmem-2cta-handshake"),
    own("cta-group-uniform"),
    never("tmem-lane-quadrant", "tcgen05_ld belongs to a warpgroup: warp w reads quarter w."),
    own("tmem-ld-before-release"),
    missing("tmem-st-before-mma", "stores to tensor memory (tcgen05.st)"),
    own("tcgen05-thread-fences"),
    own("commit-same-thread"),
    Entry(name="acc-first-write", rules=("CK360",)),
    never("tmem-alias-war", "Declared tiles have columns of their own."),
    own("umma-shape"),
    missing("umma-kind-arch", "the integer kind of tcgen05.mma, and tcgen05.ld.red"),
    missing("sf-layout", "block-scaled products"),
    own("umma-implicit-order"),
    # -- TMA, copies, matrix access ----------------------------------------------------------------
    never("tma-gmem-align", "The launch refuses such tensors; CK320 says so beforehand."),
    own("tma-box"),
    rules("tma-smem-align", "CK312"),
    never("swizzle-agree", "Copies, products and ordinary accesses use one declared layout."),
    never("tma-zero-dim", _HOST + "an empty tensor never reaches the encoder."),
    never("tma-oob-dim", "A tensor keeps the axes of its contract; copies clip along each."),
    own("bulk-size-align"),
    rules("cpasync-size-align", "CK327"),
    Entry(name="cpasync-group-count", rules=("CK340", "CK341"), phase=("copies-too-far-ahead",)),
    never("cpasync-mbar-noinc", "The arrivals of a ring's copies are counted by the lowering."),
    never("multicast-full-armed", "Every CTA arms its own barrier for what all of them send."),
    never("multicast-empty-all", "A release of a multicast ring arrives at every CTA."),
    rules("cluster-agree", "CK372"),
    own("multicast-arch"),
    never("tensormap-storage", "Tensor maps are __grid_constant__ parameters."),
    own("ldmatrix-row-align"),
    rules("smem-bank-conflict", "CK318"),
    own("mma-operand-kinds"),
    rules("vector-align", "CK327"),
    # -- clusters, dependent launch ----------------------------------------------------------------
    Entry(name="cluster-exit", phase=("exit-before-multicast",)),
    rules("cluster-start", "CK376"),
    rules("cluster-shape", "CK370"),
    rules("cluster-barrier-pairing", "CK373"),
    missing("clc-protocol", "cluster launch control (CLC)"),
    rules("pdl-wait-first", "CK374"),
    # -- registers, launch, capacity ---------------------------------------------------------------
    never("setmaxnreg-honoured", "Launch bounds are always emitted; the build checks (CK603)."),
    rules("setmaxnreg-pool", "CK302"),
    rules("setmaxnreg-range", "CK301"),
    own("setmaxnreg-uniform"),
    never("regs-launchable", "Launch bounds follow from the roles, and ptxas keeps to them."),
    rules("spill-in-small-role", "CK303"),
    rules("launch-dims", "CK300"),
    own("zero-work"),
    rules("smem-capacity", "CK310"),
    own("coresidency"),
    own("arch-suffix"),
    never("vector-atomics-arch", "Reductions are emitted in the widths that the target has."),
    # -- data and numerics -------------------------------------------------------------------------
    rules("index-overflow", "CK322"),
    rules("oob-access", "CK321", "CK319"),
    rules("output-cover-once", "CK323"),
    own("index-tensor-trust", runtime="simulator"),
    rules("uninit-read", "CK360", "CK361", "CK316"),
    own("softmax-neg-inf", runtime="simulator"),
    rules("nan-max", "CK380"),
    rules("fp8-accumulate", "CK381"),
    never("acc-dtype", "Sums are f32 and casts explicit; sums by atomics are noted (CK328)."),
    rules("atomic-order", "CK328"),
    never("stride-honoured", _HOST + "strides are passed to the kernel or refused."),
    never("current-stream", _HOST + "it takes the caller's stream."),
    never("graph-capture", _HOST + "it allocates nothing, and maps are parameters."),
    never("launch-error-surfaced", _HOST + "every status becomes an exception."),
    never("oracle-nan-blind", "Comparison belongs to cake.judge, which rejects unequal NaN."),
    own("load-bearing-timing"),
)
