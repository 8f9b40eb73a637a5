#!/bin/sh
# Makes a Python environment with everything the package needs, ROS 2 included, from PyPI. Tools of those who work on it,
# and kernels that no dance needs, come with `make setup`.
# usage: make_environment.sh FOLDER        (PYTHON=python3.12 chooses an interpreter)
set -eu
venv=$1

say() { echo "setup: $*" >&2; }

if [ "$(uname -s)" != Linux ] || [ "$(uname -m)" != x86_64 ]; then
    say "ROS 2 comes as wheels for x86_64 Linux only, this is $(uname -s) $(uname -m): install ROS 2 (Jazzy or Kilted)"
    say "and build this package with colcon; see README, 'With an installed ROS 2'"
    exit 2
fi
if [ -n "${ROS_DISTRO:-}" ]; then
    say "ROS $ROS_DISTRO is sourced in this shell, and its libraries would mix with the wheels': open a shell without it,"
    say "or build this package with colcon; see README, 'With an installed ROS 2'"
    exit 2
fi

good() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }
python=
for candidate in ${PYTHON:-} python3.12 python3.11 python3.13 python3.10 python3.14 python3; do
    if command -v "$candidate" >/dev/null 2>&1 && good "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    say "no Python 3.10 to 3.14 found: install one (Debian, Ubuntu: apt install python3 python3-venv)"
    exit 2
fi

rm -rf "$venv"
if ! "$python" -m venv "$venv" 2>/dev/null; then
    rm -rf "$venv"
    # Debian ships Python without ensurepip; two tools from PyPI can stand in for it.
    if "$python" -m virtualenv --version >/dev/null 2>&1; then
        "$python" -m virtualenv -q "$venv"
    elif command -v uv >/dev/null 2>&1; then
        uv venv -q --seed --python "$python" "$venv"
    else
        say "$python cannot make environments: install python3-venv (Debian, Ubuntu), or pip install virtualenv"
        exit 2
    fi
fi

# What a first dance runs is compiled while the rest is installed: one waits for the network, the other for a processor.
say "installing into $venv with $($python --version), and compiling the kernels of a first dance (about a minute and a half)"
pip() { "$venv/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt "$@"; }
pip -e . wheel  # with wheel, an old pip builds empy without a line about its deprecation
"$venv/bin/humanoid" warm inverse_kinematics simulation retargeting >"$venv/warm.log" 2>&1 &
kernels=$!
trap 'kill "$kernels" 2>/dev/null || true' EXIT
pip -e '.[all]'
wait "$kernels" || { cat "$venv/warm.log" >&2; exit 1; }
trap - EXIT
touch "$venv/.installed"
