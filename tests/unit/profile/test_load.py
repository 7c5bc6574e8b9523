"""Where profiles are found, what they extend, and what a loaded one holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.load import ProfileError, load, names, origin
from pytest_vllm.profile.model import Profile, Secret
from pytest_vllm.profile.units import Share

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.profile.conftest import Project

FULL = """
description = "all there is"
hardware = "gb10"
model = "qwen3-32b-fp8"

[server]
launcher = "docker"
image = "vllm/vllm-openai:v0.11.0"
model = "Qwen/Qwen3-32B-FP8"
served-model-name = "qwen"
api-key = { from-env = "VLLM_API_KEY" }
gpus = "all"
volumes = ["~/hf:/root/.cache/huggingface", "./models:/models:ro"]
shm = "64g"
ipc = "host"
env = { HF_TOKEN = { from-env = "HF_TOKEN" }, VLLM_CPU_KVCACHE_SPACE = 1 }

[server.args]
max_model_len = 32000
--enforce-eager = false
speculative-config = { method = "ngram", num_speculative_tokens = 5 }

[boot]
timeout = "15m"

[expect]
capabilities = ["chat"]

[limits]
decode-tok-s = { min = "40 % of ceiling" }
aggregate-tok-s = { min = 300, at = "64 streams" }
ttft = { max = "500ms" }
kv-cache = { min = "66 GiB" }
prefix-hit-rate = { min = "90 %" }
regression = { decode-tok-s = "5 %" }

[[waive]]
check = "stream.usage.final-chunk"
reason = "our clients do not read it"
issue = "vllm-project/vllm#12345"
versions = ">=0.27,<0.34"
until = 2027-03-31
"""


def test_a_full_profile(project: Project) -> None:
    """Units are in base units, flags in vLLM's spelling, places absolute."""
    file = project.write(FULL)

    profile = project.load(HOME="/home/me")

    assert (profile.name, profile.source) == ("mine", file)
    assert profile.server.volumes == [
        "/home/me/hf:/root/.cache/huggingface",
        f"{file.parent / 'models'}:/models:ro",
    ]
    assert profile.server.env == {"HF_TOKEN": Secret(from_env="HF_TOKEN"), "VLLM_CPU_KVCACHE_SPACE": "1"}
    assert profile.server.args == {
        "max-model-len": 32000,
        "enforce-eager": False,
        "speculative-config": {"method": "ngram", "num_speculative_tokens": 5},
    }
    assert profile.server.vllm_version == "0.11.0"
    assert (profile.boot.timeout, profile.boot.stalled) == (900.0, 240.0)
    limits = {name: (bound.min, bound.max) for name, bound in profile.limits.bounds()}
    assert limits == {
        "decode-tok-s": (Share(0.4, "ceiling"), None),
        "aggregate-tok-s": (300.0, None),
        "ttft": (None, 0.5),
        "kv-cache": (66 * 2**30, None),
        "prefix-hit-rate": (0.9, None),
    }
    aggregate = profile.limits.get("aggregate-tok-s")
    assert aggregate is not None
    assert aggregate.load.streams == 64
    assert profile.limits.regression == {"decode-tok-s": 0.05}
    assert profile.waive[0].until.isoformat() == "2027-03-31"


def test_a_profile_survives_being_dumped(project: Project) -> None:
    """The run file of xdist workers holds exactly this."""
    project.write(FULL)
    profile = project.load()

    dumped = profile.model_dump(mode="json", by_alias=True, exclude_none=True)

    assert Profile.model_validate(dumped) == profile


def test_the_order_of_places(project: Project) -> None:
    """A path, the folder, pyproject.toml, the built-in ones."""
    pyproject = project.root / "pyproject.toml"
    pyproject.write_text('[tool.pytest-vllm.profiles.sim]\ndescription = "from pyproject"\n')
    assert load("sim", project.root).description == "from pyproject"
    assert load("sim", project.root).source == pyproject

    project.write('description = "from the folder"', "sim")
    assert load("sim", project.root).description == "from the folder"
    assert origin(load("sim", project.root), project.root) == "vllm-profiles"

    elsewhere = project.root / "other.toml"
    elsewhere.write_text('description = "from a path"')
    assert load("other.toml", project.root).description == "from a path"
    assert load(str(elsewhere), project.root).name == "other"

    known = {known.name: known.origin for known in names(project.root)}
    assert (known["sim"], known["spark-fp8"]) == ("vllm-profiles", "built in")


def test_an_unknown_name(project: Project) -> None:
    """The nearest name, and all of them."""
    project.write("", "mine")
    everything = ", ".join(name.name for name in names(project.root))

    assert project.refusal(name="spark-fp9") == (
        f"unknown profile 'spark-fp9'; did you mean 'spark-fp8'? (one of {everything})"
    )
    assert project.refusal(name="xyzzy") == f"unknown profile 'xyzzy'; there are {everything}"


def test_a_path_to_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full path is named."""
    monkeypatch.chdir(project.root)

    assert project.refusal(name="no/such.toml") == (
        f"no profile file no/such.toml: {project.root / 'no/such.toml'} does not exist"
    )


def test_extends_merges_tables_and_replaces_lists(project: Project) -> None:
    """The parent's keys stay unless the child has them."""
    project.write(FULL, "base")
    project.write(
        'extends = "base"\n[server]\nvolumes = ["/a:/b"]\n[server.args]\nmax-model-len = 16000\n'
        '[limits]\nttft = { max = "1s" }\n'
    )

    profile = project.load()

    assert profile.server.volumes == ["/a:/b"]
    assert profile.server.args["max-model-len"] == 16000
    assert profile.server.args["enforce-eager"] is False
    assert profile.server.image == "vllm/vllm-openai:v0.11.0"
    assert profile.limits.ttft is not None
    assert profile.limits.ttft.max == 1.0
    assert profile.limits.decode_tok_s is not None
    assert profile.name == "mine"


def test_extends_the_one_it_hides(project: Project) -> None:
    """A project may change a built-in profile under the same name."""
    project.write('extends = "spark-fp8"\n[server]\nimage = "mirror/vllm:25.09"\n', "spark-fp8")

    profile = project.load("spark-fp8")

    assert profile.server.image == "mirror/vllm:25.09"
    assert profile.hardware == "gb10"


def test_extends_a_file_beside_it(project: Project) -> None:
    """A relative path is relative to the file that extends."""
    project.write('description = "base"', "base")
    project.write('extends = "./base.toml"')

    assert project.load().description == "base"


def test_what_cannot_be_extended(project: Project) -> None:
    """A missing parent, a chain and a wrong type are refused at their line."""
    project.write('extends = "sim"', "child")

    assert project.refusal('hardware = "cpu"\nextends = "child"') == (
        "vllm-profiles/mine.toml:2: extends 'child', which itself extends 'sim': one level only"
    )
    assert project.refusal('extends = ["sim"]') == (
        "vllm-profiles/mine.toml:1: extends is ['sim']: write the name of one profile"
    )
    assert project.refusal('extends = "smi"').startswith(
        "vllm-profiles/mine.toml:1: extends unknown profile 'smi'; did you mean 'sim'? (one of "
    )


def test_a_fault_in_the_parent_is_reported_there(project: Project) -> None:
    """The child is not to blame."""
    project.write('[server]\nimge = "x"', "base")

    assert project.refusal('extends = "base"').startswith(
        "vllm-profiles/base.toml:2: unknown key 'imge' in [server]"
    )


def test_variables_are_filled_in(project: Project) -> None:
    """From the environment, else from the default; never in what is only shown."""
    project.write('[server]\ncommand = ["${PY:-python3}", "-m", "x"]\nmodel = "${MODEL}"\n')

    assert project.load(MODEL="/m").server.command == ["python3", "-m", "x"]
    assert project.load(MODEL="/m", PY="py").server.command == ["py", "-m", "x"]
    shown = load("mine", project.root, environ={}, expand=False)
    assert shown.server.model == "${MODEL}"
    assert project.refusal() == (
        "vllm-profiles/mine.toml:3: ${MODEL} is not set: export MODEL=… or give a default, ${MODEL:-…}"
    )


def test_hardware_and_models_of_the_project(project: Project) -> None:
    """A project's own files can be named like the built-in ones."""
    folder = project.root / "vllm-profiles" / "hardware"
    folder.mkdir(parents=True)
    built_in = data_dir("fixtures") / "hardware" / "cpu.toml"
    (folder / "my-cpu.toml").write_text(built_in.read_text("utf-8"), "utf-8")
    project.write('hardware = "my-cpu"')

    assert project.load().hardware == "my-cpu"
    assert [known.name for known in names(project.root) if known.origin == "vllm-profiles"] == ["mine"]


def test_a_broken_pyproject_is_named(project: Project) -> None:
    """Its own message, not a missing profile."""
    (project.root / "pyproject.toml").write_text("[tool\n")

    with pytest.raises(ProfileError, match=r"^pyproject\.toml:1:6: not TOML: "):
        names(project.root)


def test_a_profile_in_pyproject_has_lines_too(project: Project) -> None:
    """Faults are located inside its table."""
    (project.root / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.pytest-vllm.profiles.mine.server]\nlauncher = "dokcer"\n'
    )

    assert project.refusal() == (
        "pyproject.toml:4: unknown launcher 'dokcer' in [server]; did you mean 'docker'? "
        "(one of docker, podman, process, attach, sim)"
    )


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    """Some editors put one at the beginning."""
    path = tmp_path / "marked.toml"
    path.write_text('[server]\r\nlauncher = "sim"\r\nmodel = "m"\r\n', "utf-8-sig")

    assert load(str(path), tmp_path).server.model == "m"


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    """It is said to be one, not to be missing."""
    with pytest.raises(ProfileError, match=r"is a folder; name a \.toml file in it"):
        load(f"{tmp_path}/", tmp_path)
