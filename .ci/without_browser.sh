#!/bin/sh
# Runs every test file that mentions a browser, or the command that needs one, with a PATH on which no browser is found.
# usage: without_browser.sh FOLDER        (the environment that make_environment.sh made)
set -eu
cd "$(dirname "$0")/.."
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
( IFS=:; for folder in $PATH; do ln -s "$folder"/* "$bare" 2>/dev/null || true; done ) # the first of a name stays
rm -f "$bare"/*chrom*
PATH=$bare
python=$1/bin/python
if [ -n "$("$python" -c 'from humanoid_control.viewer import find_chromium; print(find_chromium() or "")')" ]; then
    echo "a browser is still on PATH" >&2
    exit 2
fi
# Typos are the same with a browser, but for those of the command that needs one.
# shellcheck disable=SC2046  # paths of tests hold no spaces
OMP_NUM_THREADS=1 "$python" -m pytest -q -n 2 --dist loadfile -m "not ros and not timed and not thorough and not nightly" -k "picture or not test_typos" \
    $(grep -rliE 'browser|chromium|photograph|"picture"' test --include='test_*.py')
