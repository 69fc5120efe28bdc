// The part of the policy file for Slurm jobs: [slurm.job."*"], [slurm.partition.NAME."*"] and its like.
#pragma once

#include <string>

#include "policy/file/table_reader.hpp"
#include "policy/policy.hpp"

namespace rdmaquota {

// Errors go to the reader.
void read_slurm(TableReader& reader, const toml::key& key, const toml::node& node, SlurmPolicy& into);

// The same as a file of its own, which parse_policy reads.
std::string slurm_text(const SlurmPolicy& policy);

}  // namespace rdmaquota
