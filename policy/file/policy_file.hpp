// The policy as the administrator writes it: a TOML file, see rdmaquota.toml(5).
//
// Only the tools read it; the provider knows only the compiled form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// What becomes of a policy that other users than root and this one may change, which gives them root's power over it: an error, or a
// warning, for a command that only looks at it.
enum class Distrusted : std::uint8_t { refuse, warn };

// The policy of `path` with the files conf.d/*.toml beside it, taken in the order of their names;
// a later file wins key by key. Errors: "FILE:LINE:COL: what; what to do". What is accepted but has no effect any
// more, or is probably not meant, is in the policy's `warnings`.
Result<Policy> read_policy(const std::string& path, Distrusted distrusted = Distrusted::refuse);

// The same as if `path` had the content `text`.
Result<Policy> read_policy(const std::string& path, const std::string& text);

// The conf.d files that read_policy merges into `path`, in that order.
Result<std::vector<std::string>> policy_fragments(const std::string& path);

// Parses one text alone; errors call it `file`. Checks nothing that another file may complete: that
// log.target and log.file fit together, and which tenants lie below others.
Result<Policy> parse_policy(const std::string& text, const std::string& file);

}  // namespace rdmaquota
