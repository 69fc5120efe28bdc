#!/bin/sh
# nodes.sh PREFIX: prints the version script of a shadow library: every version node that the real one has had
# (PREFIX_1.0 and up, MLX5_1.25.1 among them) and those that coming releases may have. The loader looks for a node that
# a program asks for in the library that bears the name, which is the shadow; no symbol belongs to any of them. MLNX_OFED's libmlx5
# has MLX5_OFED as well.
set -eu

echo "$1_1.0 { local: *; };"
echo "$1_OFED { };"
for minor in $(seq 1 127); do
    echo "$1_1.$minor { } $1_1.$((minor - 1));"
done
for minor in $(seq 0 127); do
    echo "$1_1.$minor.1 { } $1_1.$minor;"
done
