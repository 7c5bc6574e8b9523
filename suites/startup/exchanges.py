"""The start-up warnings that are looked for; no request is sent."""

from pytest_vllm import case_file, cases

startup_warning = cases("startup_warning", case_file("startup-warnings"))
