#!/bin/sh
# Puts the sources of launch and launch_ros, which are not on PyPI, into a folder, with a file `path` for PYTHONPATH, and
# beside them `prefix`, in which launch finds the nodes of this package as it does in an installed workspace.
# usage: launch_sources.sh FOLDER PYTHON     (LAUNCH_SOURCES: where the repositories lie; without it they are cloned)
# Where they cannot be had, `path` is empty, and the tests that need them are skipped.
set -eu
folder=$1
python=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
from=${LAUNCH_SOURCES:-https://github.com/ros2}
branch=kilted # of the generation of rclpy in constraints.txt

[ -s "$folder/path" ] && exit 0
rm -rf "$folder"
mkdir -p "$folder/stubs/composition_interfaces"
for name in launch launch_ros; do
    git clone -q --depth 1 --branch "$branch" "$from/$name" "$folder/$name" 2>/dev/null ||
        git clone -q --depth 1 "$from/$name" "$folder/$name" 2>/dev/null || {
        echo "launch: $from/$name cannot be had: the tests of launch files are skipped" >&2
        : >"$folder/path"
        exit 0
    }
done
# launch_ros names it in annotations only, as long as no composable nodes are launched.
: >"$folder/stubs/composition_interfaces/__init__.py"
cat >"$folder/stubs/composition_interfaces/srv.py" <<'STUB'
class LoadNode:
    class Request:
        pass

    class Response:
        pass
STUB
prefix=$folder/prefix
mkdir -p "$prefix/lib/humanoid_control" "$prefix/share/ament_index/resource_index/packages"
: >"$prefix/share/ament_index/resource_index/packages/humanoid_control"
for node in $("$python" -c 'from humanoid_control.session.stacks import NODES; print(*NODES)'); do
    printf '#!/bin/sh\nexec %s -u -m humanoid_control.nodes.%s "$@"\n' "$python" "$node" >"$prefix/lib/humanoid_control/$node"
    chmod +x "$prefix/lib/humanoid_control/$node"
done
at=$(cd "$folder" && pwd)
path=$at/stubs
for package in launch/launch launch/launch_testing launch/launch_xml launch/launch_yaml launch_ros/launch_ros \
    launch_ros/launch_testing_ros; do
    path=$path:$at/$package
done
echo "$path" >"$folder/path"
