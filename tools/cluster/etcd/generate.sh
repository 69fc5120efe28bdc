#!/bin/bash
# generate.sh GO_SOURCES DIR PROTOC PLUGIN: writes etcd's client for C++ into DIR, with all files in one folder. etcd's .proto files import
# each other as etcd/..., but lie in go.etcd.io/etcd.
set -eu
go=$1 out=$2 protoc=$3 plugin=$4
mkdir -p "$out/etcd-protos"; out=$(cd "$out" && pwd)
cd "$out/etcd-protos"
google=$go/github.com/grpc-ecosystem/grpc-gateway/third_party/googleapis/google/api
flat() { sed -E 's#import "(etcd/[^"]*/|gogoproto/|google/api/)([a-z]+\.proto)"#import "\2"#' "$1" > "${1##*/}"; }
for file in "$go"/go.etcd.io/etcd/{etcdserver/etcdserverpb/rpc,mvcc/mvccpb/kv,auth/authpb/auth}.proto \
    "$go/github.com/gogo/protobuf/gogoproto/gogo.proto" "$google"/{annotations,http}.proto; do
    flat "$file"
done
"$protoc" -I. --cpp_out=.. rpc.proto kv.proto auth.proto gogo.proto annotations.proto http.proto
"$protoc" -I. --grpc_out=.. --plugin=protoc-gen-grpc="$plugin" rpc.proto
