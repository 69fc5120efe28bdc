// The ledger file as a Boost.Interprocess managed segment.
//
// Boost builds it: a managed_mapped_file under a temporary name, with the ledger's data allocated
// in it and its handle as the named object "ledger". Every other process just maps the file and finds
// the data at `ledger_offset`, where a fresh segment of this size always places it (checked at
// creation). Every member of the tenant can overwrite Boost's name index, so no process follows
// its pointers or waits for Boost's "initialized" word or mutex.
#pragma once

#include <cstddef>
#include <string>

#include "policy/result.hpp"
#include "shm/ledger/layout.hpp"
#include "shm/mapping.hpp"

namespace rdmaquota {

inline constexpr std::size_t ledger_offset = 4096;
inline constexpr std::size_t ledger_file_bytes = (sizeof(LedgerData) + ledger_offset + 65536 + 4095) / 4096 * 4096;
inline constexpr const char* ledger_object_name = "ledger";

// Makes the whole file at `path`, which must not exist, with mode 0600. Cleans up after a failure.
Result<void> create_ledger_file(const std::string& path);

// The ledger's data within a mapping of its file.
LedgerData* ledger_data(const Mapping& mapping) noexcept;

// Whether the file is a ledger of this version: size, magic, layout version and numbers.
Result<void> inspect_ledger_file(const std::string& path);

// Whether the file at `path`, which was mapped, still is a ledger of this version. Needs no descriptor.
Result<void> check_mapped_ledger(const std::string& path, const Mapping& mapping);

// Maps an existing ledger file after the same check.
Result<Mapping> map_ledger_file(const std::string& path);

}  // namespace rdmaquota
