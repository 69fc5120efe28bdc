// Matches in words, for people.
#pragma once

#include <string>

#include "policy/policy.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota {

// "user alice", "group hpc and cgroup /slurm/**"
std::string match_words(const Match& match);

// Why a process is where it is: "match 1 of template user/{user}, group users", "no match holds".
std::string match_words(const Policy& policy, const NodePolicy::Verdict& verdict);

}  // namespace rdmaquota
