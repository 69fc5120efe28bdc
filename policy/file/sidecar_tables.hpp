// The parts of the policy file that are for the sidecar: [[dynamic]] and [sidecar].
#pragma once

#include <vector>

#include "policy/sidecar.hpp"
#include "policy/file/table_reader.hpp"

namespace rdmaquota {

// Both leave what is wrong in `reader`. Rules are added to those that are there.
void read_dynamic(TableReader& reader, const toml::node& node, std::vector<DynamicRule>& into);
void read_sidecar(TableReader& reader, const toml::key& key, const toml::node& node, Sidecar& into);

}  // namespace rdmaquota
