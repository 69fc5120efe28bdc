// The files that are a libibverbs, on disk: what each is built to read, whether it loads the provider, and registering the provider
// with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct VerbsFile {
    std::string path;
    std::string pabi;
    std::string configuration;  // the directory of its .driver files; empty where its texts do not tell
    std::string providers;      // the directory of its providers, likewise
};

// None: the file is not a libibverbs.
std::optional<VerbsFile> read_verbs_file(const std::string& path);

// Those below the directories, sorted by path. Follows no links, and looks into files only that have "ibverb" in their names.
std::vector<VerbsFile> find_verbs_files(const std::vector<std::string>& directories);

// The file that tells this libibverbs of the provider, where the provider is there; else empty.
std::string registered_by(const VerbsFile& file);

// Why the provider cannot be registered below `prefix` for this libibverbs; empty: it can.
std::string obstacle(const VerbsFile& file, const std::string& prefix);

// The directory for `rdmaquota adopt` with which this libibverbs can be held; empty where there is none.
std::string prefix_of(const VerbsFile& file);

// Whether programs find a provider's public library beside it, such as libmlx5, that registers itself. Where all devices of the node are
// of such providers, these programs' libibverbs reads no configuration.
bool has_public_library(const VerbsFile& file);

// Puts the provider and its registration into the libibverbs' own directories, or takes them out. Both can be repeated.
Result<void> register_provider(const VerbsFile& file);
Result<void> unregister_provider(const VerbsFile& file);

// The names in the `driver NAME` lines of a directory's files, sorted, each once.
std::vector<std::string> driver_names(const std::string& configuration);

}  // namespace rdmaquota
