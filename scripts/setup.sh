# Steps that quickstart and test share; to be sourced.

step() { printf '== %s\n' "$*" >&2; }

stop() { printf 'stopped: %s\n' "$1" >&2; shift; for line in "$@"; do printf '  %s\n' "$line" >&2; done; exit 2; }

# A Python of 3.11 or newer; PYTHON says which one otherwise.
have_python() {
    PYTHON=${PYTHON:-python3}
    command -v "$PYTHON" >/dev/null || stop "there is no $PYTHON" "apt-get install python3 python3-venv"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "$("$PYTHON" --version) is too old; 3.11 or newer is needed" "PYTHON=python3.12 $0"
}

# The virtual environment, with the extras named; made again only when pyproject.toml changed.
have_venv() {
    local extras=$1 stamp
    if [ ! -x .venv/bin/python ]; then
        step "virtual environment in .venv"
        "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
            stop "this Python cannot make virtual environments" "apt-get install python3-venv"
        "$PYTHON" -m venv .venv
    fi
    stamp=".venv/installed-$(printf '%s ' "$extras" | cat - pyproject.toml | cksum | cut -d' ' -f1)"
    if [ ! -e "$stamp" ]; then
        step "installing reflexfix[$extras]"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$extras]"
        touch "$stamp"
    fi
}

engine_answers() { .venv/bin/python - <<'PY' 2>/dev/null
from reflexfix.containers import engine
engine.connect(seconds=10)
PY
}

# A container engine that answers. Only root on Debian or Ubuntu gets one installed, after a yes.
have_engine() {
    engine_answers && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "no container engine answers" "sudo apt-get install docker.io" \
            "sudo systemctl start docker    (or: sudo dockerd &)" \
            "sudo usermod -aG docker $(id -un)    (then log in again)"
    fi
    agreed "No container engine answers. Install docker.io and debootstrap and start dockerd?" ||
        stop "without an engine nothing can be run" "apt-get install docker.io" "dockerd &"
    if ! command -v dockerd >/dev/null || ! command -v debootstrap >/dev/null; then
        step "apt-get install docker.io debootstrap"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            docker.io debootstrap iptables >/dev/null
    fi
    start_engine
}

# Whether a program of this name is running; one that has ended and was not waited for is not.
runs() {
    local exe
    for exe in /proc/[0-9]*/exe; do
        case $(readlink "$exe" 2>/dev/null) in */"$1") return 0 ;; esac
    done
    return 1
}

start_engine() {
    if [ -d /run/systemd/system ]; then
        step "systemctl start docker"
        systemctl start docker || true
    else
        step "starting dockerd"
        # what a killed engine left would make the new one wait for a process that is no more
        runs dockerd || rm -f /var/run/docker.pid
        runs containerd || rm -f /var/run/docker/containerd/containerd.pid
        setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
    fi
    for _ in $(seq 60); do
        engine_answers && return
        sleep 0.5
    done
    stop "dockerd does not answer" "$(tail -n 3 /var/log/dockerd.log 2>/dev/null)"
}

# Ask; a root shell without a terminal, CI and --yes agree.
agreed() {
    printf '%s\n' "$1" >&2
    if [ -n "${ASSUME_YES:-}" ] || [ "${CI:-}" = true ] || [ ! -t 0 ]; then
        return 0
    fi
    read -r -p "[Y/n] " reply
    case $reply in "" | [Yy]*) return 0 ;; *) return 1 ;; esac
}
