// The memory of another process, read from outside: which files are mapped where, and the contents.
// Needs the right to trace the process (the same user, or root). The process runs on meanwhile and may be hostile: any
// word may be garbage, and mappings may be as large as the address space. Callers bound what they read.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct Mapped {
    std::uint64_t begin;
    std::uint64_t end;
    bool writable;
    bool executable;
    bool shared;
    std::string file;  // empty for anonymous memory; "[heap]" and the like as the kernel names them
};

const std::uint64_t page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

class ProcessMemory {
public:
    static Result<ProcessMemory> open(int pid);
    ProcessMemory(ProcessMemory&& other) noexcept;
    ProcessMemory& operator=(ProcessMemory&&) = delete;
    ~ProcessMemory();

    const std::vector<Mapped>& maps() const noexcept { return maps_; }

    // The mapping that the address is in, or nullptr.
    const Mapped* at(std::uint64_t address) const noexcept;

    // `count` words from `address` on, fewer when less can be read. Takes memory for all of them.
    std::vector<std::uint64_t> words(std::uint64_t address, std::size_t count) const;

    // The text at `address` up to its NUL, or `most` bytes.
    std::string text(std::uint64_t address, std::size_t most) const;

    // Which of `count` pages from `address` on have contents, in memory or in swap; all where the kernel does not say.
    std::vector<bool> used_pages(std::uint64_t address, std::size_t count) const;

private:
    ProcessMemory(int file, int page_map, std::vector<Mapped> maps) noexcept
        : file_(file), page_map_(page_map), maps_(std::move(maps)) {}
    int file_;
    int page_map_;  // -1 when it cannot be opened
    std::vector<Mapped> maps_;  // by address
};

}  // namespace rdmaquota
