"""The families that dashboards, alerts and routers are built on."""

from pytest_vllm import MUST, Recording, Server, check, listed, need

from .scrapes import BASE, families, parsed

CONTRACT = "vllm:usage/metrics/"
RENAMED = "fault:vllm-project/vllm/issues/18354"
NEEDS = ("metrics",)


@check("metrics.families.present", MUST, spec=RENAMED, needs=NEEDS)
def test_present(vllm_server: Server, metrics_scrape: Recording) -> None:
    """Every family that this version is known for is there once a request was served."""
    metrics = parsed(metrics_scrape.text)
    missing = [row["family"] for row in families(vllm_server) if row["family"] not in metrics.types]

    assert not missing, f"missing: {listed(missing)}"


@check("metrics.families.filled", MUST, spec="fault:vllm-project/vllm/issues/2850", needs=NEEDS)
def test_filled(vllm_server: Server, metrics_scrape: Recording) -> None:
    """Every family of this version that is there has a value."""
    metrics = parsed(metrics_scrape.text)
    rows = [row for row in families(vllm_server) if row["family"] in metrics.types]
    need(rows, "none of the families is there")
    names = {sample.name for sample in metrics.samples}
    endings = ("", "_total", "_count")
    empty = [row["family"] for row in rows if not any(row["family"] + end in names for end in endings)]

    assert not empty, f"without a value: {listed(empty)}"


@check("metrics.families.types", MUST, spec=CONTRACT, needs=NEEDS)
def test_types(vllm_server: Server, metrics_scrape: Recording) -> None:
    """The families have the types that queries are written for."""
    types = parsed(metrics_scrape.text).types
    rows = [row for row in families(vllm_server) if row["family"] in types]
    need(rows, "none of the families is there")
    wrong = [
        f"{row['family']} is a {types[row['family']]}, not a {row['type']}"
        for row in rows
        if types[row["family"]] != row["type"]
    ]

    assert not wrong, listed(wrong)


@check("metrics.families.labels", MUST, spec=CONTRACT, needs=NEEDS)
def test_labels(vllm_server: Server, metrics_scrape: Recording) -> None:
    """The families carry the labels that queries select by."""
    samples = parsed(metrics_scrape.text).samples
    endings = ("", "_total", "_count", "_sum", "_bucket")
    owner = {row["family"] + end: row for row in families(vllm_server) for end in endings}
    seen = [sample for sample in samples if sample.name in owner]
    need(seen, "none of the families has a value")
    lacking = [(s.name, set(owner[s.name].get("labels", BASE)) - s.labels.keys()) for s in seen]
    wrong = dict.fromkeys(f"{name} lacks {sorted(labels)}" for name, labels in lacking if labels)

    assert not wrong, listed(wrong)


@check("metrics.families.model", MUST, spec=CONTRACT, needs=NEEDS)
def test_model(vllm_server: Server, metrics_scrape: Recording) -> None:
    """The label `model_name` is a name under which the model is served."""
    samples = [s for s in parsed(metrics_scrape.text).samples if s.name.startswith("vllm:")]
    names = {sample.labels["model_name"] for sample in samples if "model_name" in sample.labels}
    need(names, "no value carries model_name")
    served = {vllm_server.model, *vllm_server.models}

    assert names <= served, f"model_name is {sorted(names)}, served are {sorted(served)}"
