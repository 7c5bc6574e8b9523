"""The rules, one file for each topic; importing them registers them."""

from pytest_vllm.preflight.rules import (
    advisories,
    backends,
    batching,
    cache,
    container,
    context,
    environment,
    expectations,
    flags,
    image,
    lora,
    memory,
    parallel,
    parsers,
    quantisation,
    security,
    speculation,
    tenants,
)

#: Every topic's module, in the order of the alphabet.
TOPICS = (
    advisories,
    backends,
    batching,
    cache,
    container,
    context,
    environment,
    expectations,
    flags,
    image,
    lora,
    memory,
    parallel,
    parsers,
    quantisation,
    security,
    speculation,
    tenants,
)
