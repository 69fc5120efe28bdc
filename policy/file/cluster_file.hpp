// The file of `rdmaquota cluster apply`: what tenants may use on all nodes, and the roster of nodes.
//
//     version = 1
//     [tenant.physics]                        # over all devices of all nodes
//     qp = 100000
//     mr_bytes = "2TiB"
//     [node.n1]
//     [node."n[2-100]"]                       # n2, n3, ... n100; with "n[002-100]" the numbers have three digits
//     weight = 200                            # 1 to 10000, 100 where it is not said
//     floor.physics = { qp = 20 }             # reserved for each of them, used or not
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policy/resource.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

struct ClusterFile {
    using Pool = std::pair<std::string, Resource>;  // a tenant's resource
    struct Node {
        std::uint32_t weight = 100;
        std::map<Pool, std::uint64_t> floors;
    };
    std::map<Pool, std::uint64_t> limits;
    std::map<std::string, Node> nodes;
};

Result<ClusterFile> read_cluster_file(const std::string& path);
Result<ClusterFile> parse_cluster_file(const std::string& text, const std::string& file);

}  // namespace rdmaquota
