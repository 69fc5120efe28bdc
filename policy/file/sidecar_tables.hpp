// The parts of the policy file that are for the sidecar: [[dynamic]] and [sidecar].
#pragma once

#include <vector>

#include "policy/sidecar.hpp"
#include "policy/file/table_reader.hpp"

namespace rdmaquota {

// Both report errors to `reader`. Rules are appended.
void read_dynamic(TableReader& reader, const toml::node& node, std::vector<DynamicRule>& into);
void read_sidecar(TableReader& reader, const toml::key& key, const toml::node& node, Sidecar& into);

}  // namespace rdmaquota
