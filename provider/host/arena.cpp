#include "provider/host/arena.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace rdmaquota::provider::arena {
namespace {

// Blocks of 32 bytes to 32 KiB, by powers of two, cut from chunks that are never given back. Larger ones are mappings of their own.
constexpr std::size_t least_bytes = 32, chunk_bytes = 64 << 10, page_bytes = 4096;
constexpr std::size_t classes = 11;

// Stands before what the caller gets.
struct alignas(16) Header {
    void* block;
    std::size_t bytes;  // of the block
};

struct Free {
    Free* next;
};

std::mutex mutex;
std::array<Free*, classes> free_blocks{};
std::byte* unused = nullptr;  // the rest of the newest chunk
std::size_t unused_bytes = 0;

void* map(std::size_t bytes) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

std::size_t class_of(std::size_t bytes) noexcept { return static_cast<std::size_t>(std::countr_zero(bytes / least_bytes)); }

// Under the lock; `bytes` is the size of a class.
void* take_block(std::size_t bytes) noexcept {
    auto*& first = free_blocks[class_of(bytes)];
    if (auto* block = first) {
        first = block->next;
        return block;
    }
    if (unused_bytes < bytes) {
        unused = static_cast<std::byte*>(map(chunk_bytes));
        unused_bytes = unused ? chunk_bytes : 0;
        if (!unused) return nullptr;
    }
    auto* block = unused;
    unused += bytes;
    unused_bytes -= bytes;
    return block;
}

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    const auto wanted = bytes + sizeof(Header) + (alignment > alignof(Header) ? alignment : 0);
    if (wanted < bytes) return nullptr;
    Header header{nullptr, std::bit_ceil(std::max(wanted, least_bytes))};
    if (header.bytes > least_bytes << (classes - 1)) {
        header.bytes = (wanted + page_bytes - 1) & ~(page_bytes - 1);
        header.block = header.bytes < wanted ? nullptr : map(header.bytes);
    } else {
        const std::lock_guard guard(mutex);
        header.block = take_block(header.bytes);
    }
    if (!header.block) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(header.block) + sizeof(Header);
    const auto aligned = (begin + alignment - 1) & ~(std::uintptr_t{alignment} - 1);
    auto* memory = reinterpret_cast<Header*>(aligned);
    memory[-1] = header;
    return memory;
}

void release(void* memory) noexcept {
    if (!memory) return;
    const auto header = static_cast<Header*>(memory)[-1];
    if (header.bytes > least_bytes << (classes - 1)) {
        munmap(header.block, header.bytes);
        return;
    }
    const std::lock_guard guard(mutex);
    auto*& first = free_blocks[class_of(header.bytes)];
    first = new (header.block) Free{first};
}

void lock() noexcept { mutex.lock(); }
void unlock() noexcept { mutex.unlock(); }

}  // namespace rdmaquota::provider::arena
