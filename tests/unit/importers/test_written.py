"""What a script writes itself, in here-documents: where it counts, it is read; what is not known is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers import ImportResult

UNIT = """
M=org/a
cat > /etc/systemd/system/vllm.service <<EOF
[Service]
Environment=A=1
ExecStart=/usr/bin/vllm serve $M --seed 3
Restart=always
EOF
systemctl enable --now vllm
"""
COMPOSE = """
cat <<'EOF' | sudo tee {} > /dev/null
services:
  llm:
    image: vllm/vllm-openai:v0.20.0
    command: --model org/a --seed 3
EOF
docker compose -f {} up -d
"""
POD = """
{}
kind: Pod
apiVersion: v1
metadata: {{name: it}}
spec: {{containers: [{{name: llm, image: "vllm/vllm-openai:v0.20.0", args: [--model, org/a, --seed, "3"]}}]}}
EOF
"""


TWICE = """
cat > r.sh <<EOF
vllm serve org/a
EOF
if x; then
cat > r.sh <<EOF
vllm serve org/b
EOF
fi
./r.sh
"""


def read(text: str, **environ: str) -> ImportResult:
    """A script, as bash would have it."""
    return imported(f"#!/bin/bash\n{text}", environ={"HOME": "/home/me", **environ})


@pytest.mark.parametrize(
    "text",
    [
        "cat > run.sh <<'EOF'\nvllm serve org/a --seed 3\nEOF\nchmod +x run.sh\n./run.sh\n",
        "cat <<EOF > /opt/run.sh\nvllm serve org/a --seed 3\nEOF\nsudo nohup bash -e /opt/run.sh &\n",
        "tee run.sh <<EOF >/dev/null\nvllm serve \\$1 --seed 3\nEOF\nscreen -dmS llm ./run.sh org/a\n",
        "cat > env.sh <<EOF\nM=org/a\nEOF\nsource env.sh\nvllm serve $M --seed 3\n",
        "cat > a.sh <<EOF\nM=org/a\nEOF\ncat >> a.sh <<'EOF'\nvllm serve $M --seed 3\nEOF\nbash a.sh\n",
        "cat > c.yaml <<EOF\nmodel: org/a\nseed: 3\nEOF\nvllm serve --config c.yaml\n",
        UNIT,
        COMPOSE.format("docker-compose.yml", "docker-compose.yml"),
        COMPOSE.format("/opt/llm/compose.yaml", "/opt/llm/compose.yaml"),
        POD.format("kubectl apply -f - <<EOF"),
        POD.format("cat <<EOF | kubectl apply -n llm -f -"),
        POD.format("cat > pod.yaml <<EOF"),
    ],
)
def test_what_is_written_is_read(text: str) -> None:
    """Whatever it is: a script that is run, a configuration, a unit, a compose file, a manifest."""
    server = read(text).profile.server
    assert (server.model, server.args.get("seed")) == ("org/a", 3)
    assert "config" not in server.args


def test_a_unit_says_where_it_stands() -> None:
    """Its kind, its line in the script, and what else the script does."""
    notes = "\n".join(read(UNIT).notes)
    assert "/etc/systemd/system/vllm.service is what the script writes here" in notes
    assert ":5: " in notes
    assert "`systemctl enable --now vllm` is not carried over" in notes


def test_the_command_line_wins_over_a_configuration() -> None:
    """As in vLLM; a flag of the file that nothing takes back counts."""
    text = "cat > c.yaml <<EOF\nseed: 3\nmax-num-seqs: $N\nEOF\nvllm serve org/a --seed 4 --config c.yaml\n"
    args = read(text, N="8").profile.server.args
    assert (args["seed"], args["max-num-seqs"]) == (4, 8)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bash <<EOF\nvllm serve $M --port 8001\nEOF\n", "$M is not set; export M=…"),
        ("cat > r.sh <<EOF\nvllm serve $M\nEOF\n./r.sh\n", "$M is not set; export M=…"),
        ("cat > c.yaml <<EOF\nmodel: $M\nEOF\nvllm serve --config c.yaml\n", "$M is not set"),
        (UNIT.replace("M=org/a", ""), "$M is not set"),
        (TWICE, "is not reached"),
        (
            "docker run --name vllm \\\n --ipc host # why \\\n vllm/vllm-openai org/a\n",
            ":3: the comment takes the",
        ),
        ('docker exec -d "$C" bash -lc "\nset -e\nvllm serve org/a\n"\n', "… vllm …` starts vLLM elsewhere"),
        ("go() { ssh $H 'bash -s'; }\ngo <<'E'\npgrep vllm\nE\n", "runs what another machine is told"),
        (
            "vllm serve $A --port $B --seed $C\n",
            "$A, $B and $C are not set, and so --port lacks its value; export A=…",
        ),
        ('vllm serve "$A" --port "$B"\n', "$A and $B are not set; export A=… B=… where pytest runs"),
        (
            'source ../site.env\nvllm serve "$A" --port "$B"\n',
            "where pytest runs; line 2: `source ../site.env`: the file is not there, so what it sets is not",
        ),
        ('A=${1:?a model}\nB=$(x)\nvllm serve "$B"\n', "argument $1 of the script has to be set: a model"),
        ("N=$@\nvllm serve org/a --seed $N\n", "the arguments that the script is called with"),
        ('python3 - "$O" vllm serve org/a <<EOF\nprint()\nEOF\n', "is not reached"),
        ('bash -c "vllm serve $(x) --seed 3"\n', "$(x) is run by the shell"),
        ('if running "vllm serve"; then exit 1; fi\nC+=("vllm" "serve" x)\n', 'C+=("vllm" "serve" x)'),
    ],
)
def test_what_is_not_known_is_said(text: str, why: str) -> None:
    """With what to do about it."""
    with pytest.raises(ImportProblem) as caught:
        read(text)
    assert why in str(caught.value)
    assert not any(0xE000 <= ord(one) <= 0xF8FF for one in str(caught.value))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('read -r M P <<< "org/a 8001 x"', ("org/a", "8001 x")),
        ("IFS=, read -r M P <<< org/a,8001", ("org/a", "8001")),
        ('IFS=":" read -ra A <<< "org/a:8001"; M=${A[0]}; P=${A[1]}', ("org/a", "8001")),
        ('read -ra A <<<"org/a 8001"; M=${A[0]}; P=${A[1]}', ("org/a", "8001")),
    ],
)
def test_a_text_of_the_script_is_read_as_read_does(line: str, said: tuple[str, str]) -> None:
    """`read` from a here-string depends on nothing outside."""
    server = read(f'{line}\nvllm serve "$M" --served-model-name "$P"\n').profile.server
    assert (server.model, server.served_model_name) == said


def test_a_loop_without_an_end_is_followed_once() -> None:
    """What a second round changes is not known; a menu of many functions takes no minutes."""
    calls = "".join(
        f"f{at}() {{ if a; then f{at + 1}; else f{at + 1}; fi; f{at + 1}; }}\n" for at in range(5)
    )
    text = f"{calls}f5() {{ :; }}\nwhile true; do\n  f0\n  vllm serve org/a --seed 3\n  sleep 5\ndone\n"
    assert read(text).profile.server.args["seed"] == 3
    with pytest.raises(ImportProblem, match=r"changes in a loop"):
        read("N=0\nwhile true; do\nN=$((N+1))\ndone\nvllm serve org/b --seed $N\n")


def test_a_script_that_goes_through_too_much_is_refused() -> None:
    """Within its bound, in one sentence."""
    calls = "".join(f"f{at}() {{ f{at + 1}; f{at + 1}; f{at + 1}; f{at + 1}; }}\n" for at in range(9))
    with pytest.raises(ImportProblem, match="goes through more than 40,000 statements"):
        read(f"{calls}f9() {{ :; }}\nf0\nvllm serve org/a\n")


def test_the_version_that_a_script_installs(tmp_path: Path) -> None:
    """Of a process that it starts; of two nobody knows which counts, and a container has its own."""
    start = "pip install vllm==0.20.0\nvllm serve org/a\n"
    assert read(start).profile.server.version == "0.20.0"
    assert read(f"uv pip install 'vllm[audio]==0.19.0'\n{start}").profile.server.version is None
    image = "pip install vllm==0.20.0\ndocker run vllm/vllm-openai:v0.19.0 org/a\n"
    assert read(image).profile.server.version is None


def test_a_command_that_asks_for_help_is_no_server(tmp_path: Path) -> None:
    """In a program as in a script."""
    program = tmp_path / "a.py"
    program.write_text('import subprocess\nsubprocess.run(["vllm", "serve", "--help=all"])\n')
    with pytest.raises(ImportProblem, match="no command that starts vLLM is found"):
        imported(program)


def test_what_bash_sets_itself_is_in_no_profile() -> None:
    """A name that ends in it is left out; a flag that hangs on it is refused."""
    run = "docker run --name vllm-${RANDOM} vllm/vllm-openai:v0.20.0 org/a"
    found = read(f"{run}\n")
    assert found.profile.deployment.name is None
    assert any("${RANDOM} is left out" in note for note in found.notes)
    with pytest.raises(ImportProblem, match=r"--seed is \$RANDOM, which the shell runs"):
        read(f"{run} --seed $RANDOM\n")


def test_a_text_for_a_shell_that_nothing_starts() -> None:
    """A part of a manifest, laid over another, has the arguments alone."""
    args = "args: ['exec vllm serve org/a --seed 3']}]}"
    text = POD.format("kubectl apply -f - <<EOF").replace('args: [--model, org/a, --seed, "3"]}]}', args)
    with pytest.raises(ImportProblem, match="is a text for a shell, and no command starts one here"):
        read(text)


def test_a_flag_and_its_value_in_one_word() -> None:
    """YAML makes one word of them, and vLLM ends on it."""
    text = POD.format("kubectl apply -f - <<EOF").replace('--seed, "3"', "--seed 3")
    with pytest.raises(ImportProblem, match=r"'--seed 3' is one word.*write two words, or --seed=3"):
        read(text)


BESIDE = """
cat > {0}llm.env <<EOF
MODEL=$M
EOF
cat > {0}start.sh <<'EOF'
exec vllm serve "$MODEL" --seed 3
EOF
{1}
"""
BESIDE_UNIT = """
cat > /etc/systemd/system/a.service <<'EOF'
[Service]
EnvironmentFile=/opt/llm.env
ExecStart=/bin/bash /opt/start.sh
EOF
cat > /etc/systemd/system/nginx.service <<'EOF'
[Service]
ExecStart=/usr/sbin/nginx
EOF
"""
BESIDE_COMPOSE = """
cat > compose.yml <<'EOF'
services:
  a:
    image: vllm/vllm-openai:v0.20.0
    env_file: llm.env
    entrypoint: [bash, /s]
    volumes: ["./start.sh:/s"]
EOF
"""


@pytest.mark.parametrize(
    "text",
    [
        BESIDE.format("/opt/", BESIDE_UNIT),
        BESIDE.format("", BESIDE_COMPOSE),
        BESIDE.format("/opt/", "set -a; . /opt/llm.env; bash /opt/start.sh\n"),
    ],
)
def test_files_that_go_together(text: str, tmp_path: Path) -> None:
    """What one of them reads, another part of the script has written."""
    (tmp_path / "i.sh").write_text(text)
    found = imported(tmp_path / "i.sh", environ={"HOME": "/home/me", "M": "org/a"})
    server = found.profile.server
    assert (server.model, server.args.get("seed")) == ("org/a", 3)
    assert "$M is taken from the environment: 'org/a'" in "\n".join(found.notes)


def test_variables_of_a_container_that_the_script_writes() -> None:
    """`--env-file` finds them; one with a name that is not set is not there."""
    text = "cat > l.env <<EOF\nA=$X\nEOF\ndocker run --env-file l.env vllm/vllm-openai:v0.20.0 org/a\n"
    assert read(text, X="1").profile.server.env == {"A": "1"}
    with pytest.raises(ImportProblem, match=r"env file l.env is not there"):
        read(text)


def test_several_units_are_a_choice() -> None:
    """Named by their paths."""
    text = UNIT + UNIT.replace("vllm.service", "other.service").replace("org/a", "org/b")
    with pytest.raises(ImportProblem, match="2 written files run vLLM"):
        read(text)
    found = imported(f"#!/bin/bash\n{text}", environ={}, service="/etc/systemd/system/other.service")
    assert found.profile.server.model == "org/b"


def test_an_image_that_the_script_builds_is_run_by_a_command() -> None:
    """Its Dockerfile says too little: how it is run counts."""
    image = 'FROM vllm/vllm-openai\nENTRYPOINT ["vllm", "serve", "org/a"]'
    text = f"cat > Dockerfile <<E\n{image}\nE\ndocker build .\n"
    with pytest.raises(ImportProblem, match="no command runs vLLM here"):
        read(text)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        (
            "a.conf",
            "# of one model\nMODEL=org/a\nARGS=(\n  --seed 3\n)\n",
            "an env file, or one of variables",
        ),
        (
            "a.yaml",
            "name: a\nmodel: {path: x}\nlaunch: {image: x, volumes: [a]}\nhealth: {}\n",
            "YAML of another",
        ),
        (
            "a.yaml",
            "llm:\n  image: vllm/vllm-openai\n  command: --model org/a\n",
            "a service of a compose file",
        ),
    ],
)
def test_what_a_file_looks_like(name: str, text: str, kind: str, tmp_path: Path) -> None:
    """By all of it, not by one part of it."""
    (tmp_path / name).write_text(text)
    with pytest.raises(ImportProblem, match=kind):
        imported(tmp_path / name)
