// The memory of another process, read from outside: which files are mapped where, and what is in it.
// Needs the right to trace the process (the same user, or root). The process runs on meanwhile, so a reading is
// a moment's, and any word may be garbage: nothing here follows one out of what is mapped.
#pragma once

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

class ProcessMemory {
public:
    static Result<ProcessMemory> open(int pid);
    ProcessMemory(ProcessMemory&& other) noexcept;
    ProcessMemory& operator=(ProcessMemory&&) = delete;
    ~ProcessMemory();

    const std::vector<Mapped>& maps() const noexcept { return maps_; }

    // What lies at the address; nullptr outside of all mappings.
    const Mapped* at(std::uint64_t address) const noexcept;

    // `count` words from `address` on, fewer when less can be read.
    std::vector<std::uint64_t> words(std::uint64_t address, std::size_t count) const;

    // The text at `address` up to its NUL, or `most` bytes.
    std::string text(std::uint64_t address, std::size_t most) const;

private:
    ProcessMemory(int file, std::vector<Mapped> maps) noexcept : file_(file), maps_(std::move(maps)) {}
    int file_;
    std::vector<Mapped> maps_;  // by address
};

}  // namespace rdmaquota
