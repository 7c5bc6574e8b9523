"""What a start that succeeded says that matters all the same."""

from pytest_vllm import ENVIRONMENT, INFO, Case, StartupWarning, check, only_if


@check("startup.quiet", INFO, spec="vllm:usage/troubleshooting.html", family=ENVIRONMENT)
def test_quiet(startup_warning: Case, vllm_startup_warnings: tuple[StartupWarning, ...] | None) -> None:
    """The start warns of nothing that slows, limits or exposes the server."""
    only_if(vllm_startup_warnings is not None, "there is no log: the server was not started here")
    said = next((one for one in vllm_startup_warnings or () if one.id == startup_warning.id), None)
    tries = "; ".join(said.tries) if said else ""

    assert said is None, f"line {said.number} of its log: {said.line.strip()}; {said.means}; {tries}"
