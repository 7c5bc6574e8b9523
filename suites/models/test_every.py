"""The list of models is right each time that it is read."""

from __future__ import annotations

from pytest_vllm import MUST, Recordings, check, listed, only_if

ROUTE = "/v1/models"


@check("models.every.once", MUST, spec="openai:models/list", exchanges=["*"])
def test_once(vllm_recordings: Recordings) -> None:
    """Every reading of the list names each model once, with one context length for it."""
    read = [
        one for one in vllm_recordings.of("") if one.request.path == ROUTE and one.request.method == "GET"
    ]
    lists = [
        (one.key, one.json.get("data")) for one in read if one.status == 200 and isinstance(one.json, dict)
    ]
    rows = [
        (key, [m for m in found if isinstance(m, dict)]) for key, found in lists if isinstance(found, list)
    ]
    only_if(rows, "no list of models was read")
    wrong = []
    lengths: dict[object, object] = {}
    for key, models in rows:
        names = [model.get("id") for model in models]
        wrong += [f"{key}: {names}"] if len(set(map(str, names))) < len(names) else []
        for model in models:
            before = lengths.setdefault(model.get("id"), model.get("max_model_len"))
            if model.get("max_model_len") != before:
                wrong.append(
                    f"{key}: {model.get('id')} of {model.get('max_model_len')} tokens, before {before}"
                )

    assert not wrong, listed(wrong)
