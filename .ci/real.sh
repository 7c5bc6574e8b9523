# Part `real` of .ci/run: a real vLLM in real containers, no image registry.

# apt_install PROGRAM=PACKAGE...: install the packages whose program is missing.
apt_install() {
    local wanted=() pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || wanted+=("${pair#*=}")
    done
    [ ${#wanted[@]} -eq 0 ] && return 0
    echo "installing ${wanted[*]}"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${wanted[@]}" >"$work/apt.log" 2>&1 ||
        { tail -30 "$work/apt.log"; return 1; }
}

daemon_answers() { docker version >/dev/null 2>&1; }

# A daemon that already runs is used and left running. Ours starts on the usual folder, and on one of its own
# when what lies there belongs to a daemon it cannot read.
start_docker() {
    daemon_answers && { echo "a Docker daemon answers already"; return 0; }
    local root
    for root in /var/lib/docker "$work/docker"; do
        setsid dockerd --data-root "$root" >"$work/dockerd.log" 2>&1 </dev/null &
        dockerd=$!
        for _ in $(seq 60); do
            daemon_answers && { echo "dockerd runs on $root"; return 0; }
            kill -0 "$dockerd" 2>/dev/null || break
            sleep 1
        done
        kill "$dockerd" 2>/dev/null
        wait "$dockerd" 2>/dev/null
        tail -20 "$work/dockerd.log"
        dockerd=
    done
    return 1
}

containers() { docker ps -a --format '{{.ID}} {{.Image}} {{.Names}}' | sort; }

# The gate on the container of a profile; afterwards the machine holds the containers it held before.
gate_leaves_nothing() {
    containers >"$work/before.txt"
    ends_with_go "$@" || return
    containers >"$work/after.txt"
    diff "$work/before.txt" "$work/after.txt"
}

# Here nothing that a test needs may be missing.
without_skips() {
    "$@" </dev/null 2>&1 | tee "$work/tests.txt"
    local status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] || return "$status"
    ! tail -1 "$work/tests.txt" | grep -q skipped || { echo "tests were skipped: see their reasons above"; return 1; }
}

# The image is mostly waited for: downloads, unpacking. It is made while others are linted and packed.
part_ahead() {
    must "Docker, debootstrap and Podman" apt_install dockerd=docker.io docker=docker.io debootstrap=debootstrap podman=podman
    must "Docker daemon" start_docker
    image=$work/image.txt
    .venv/bin/python -m tests.real.image --rebuild --vllm "$VLLM" --work "$work/image" >"$image" 2>&1 </dev/null &
    ahead=$!
}

the_image() {
    wait "$ahead"
    local status=$?
    cat "$image"
    return $status
}

part_real() {
    [ -n "${ahead:-}" ] || part_ahead
    must "image of vLLM $VLLM for the CPU, begun before" the_image
    step "Docker and Podman: launching, refusals, reaping" \
        without_skips .venv/bin/pytest -n 2 --dist worksteal tests -m "(docker or podman) and not real"
    step "the gate on a real vLLM in a container" \
        gate_leaves_nothing .venv/bin/pytest --vllm-profile=cpu-smollm2 --vllm-report="$work/report-docker"
    step "the scripted gate on a real vLLM in a container" \
        gate_leaves_nothing .venv/bin/pytest --vllm-profile=cpu-scripted --vllm-report="$work/report-scripted"
    step "a real vLLM: attach, refusals, reaping" \
        without_skips env PYTEST_VLLM_REAL="${PYTEST_VLLM_REAL:-1}" PYTEST_VLLM_GATE_REPORT="$work/report-docker" \
        PYTEST_VLLM_SCRIPTED_REPORT="$work/report-scripted" \
        .venv/bin/pytest -n 2 --dist loadfile --durations=12 tests/real -m real
}

# Three parsers through whole servers. Without a server, tests/real/test_parsers.py asks every parser of this vLLM.
part_sweep() {
    must "Docker and debootstrap" apt_install dockerd=docker.io docker=docker.io debootstrap=debootstrap
    must "Docker daemon" start_docker
    must "image of vLLM $VLLM for the CPU" .venv/bin/python -m tests.real.image --vllm "$VLLM" --work "$work/image"
    step "three parsers of a real vLLM, in containers" \
        .venv/bin/python -m tools.sweep --smoke --version "$VLLM" --folder "$work/sweeps"
}

# Servers of unusual settings, none of which may be accused: the table of docs/trust.md.
part_healthy() {
    must "Docker and debootstrap" apt_install dockerd=docker.io docker=docker.io debootstrap=debootstrap
    must "Docker daemon" start_docker
    must "image of vLLM $VLLM for the CPU" .venv/bin/python -m tests.real.image --vllm "$VLLM" --work "$work/image"
    step "real servers of unusual settings" .venv/bin/python -m tests.real.healthy --vllm "$VLLM"
}

# The gate's own image, from wheels alone: another user than root, no network, and nothing written but what it is given.
gate_image() {
    local tag=pytest-vllm-gate:ci-$PYTEST_VLLM_CI status
    .venv/bin/python -m pip wheel -q -w "$work/wheels" . pip &&
        docker build -q --build-arg BASE=pytest-vllm/base:bookworm -f tools/image/Dockerfile -t "$tag" "$work/wheels" &&
        ends_with_go docker run --rm --label "pytest-vllm.ci=$PYTEST_VLLM_CI" --user 4711 --network none --read-only \
            --tmpfs /tmp "$tag" --vllm-profile=sim --vllm-report=/tmp/report
    status=$?
    docker image rm "$tag" >/dev/null 2>&1
    return $status
}

part_image() {
    must "Docker and debootstrap" apt_install dockerd=docker.io docker=docker.io debootstrap=debootstrap
    must "Docker daemon" start_docker
    must "the base image" .venv/bin/python -m tests.real.image --rebuild --vllm "$VLLM" --work "$work/image"
    step "the gate's own image, against the simulator" gate_image
}

VLLM=${VLLM:-0.32.0}
