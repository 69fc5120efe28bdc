// Restores a file before each input.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "fuzz.hpp"

namespace rdmaquota::fuzz {

// Remembers the parts of a sparse file that hold data.
class PristineFile {
public:
    explicit PristineFile(const std::string& path) : path_(path) {
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        size_ = lseek(fd, 0, SEEK_END);
        for (off_t begin = 0; (begin = lseek(fd, begin, SEEK_DATA)) >= 0;) {
            const auto end = lseek(fd, begin, SEEK_HOLE);
            Extent extent{begin, std::vector<char>(static_cast<std::size_t>(end - begin))};
            expect(pread(fd, extent.bytes.data(), extent.bytes.size(), begin) == end - begin, "the file can be read");
            extents_.push_back(std::move(extent));
            begin = end;
        }
        close(fd);
    }

    off_t size() const noexcept { return size_; }

    // Opened for writing; the caller closes it.
    int restore() const {
        const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        expect(fd >= 0 && ftruncate(fd, size_) == 0, "the file can be put back");
        for (const auto& extent : extents_) write_at(fd, extent.at, extent.bytes.data(), extent.bytes.size());
        return fd;
    }

    static void write_at(int fd, off_t at, const void* bytes, std::size_t count) {
        expect(pwrite(fd, bytes, count, at) == static_cast<ssize_t>(count), "the file can be written");
    }

private:
    struct Extent {
        off_t at;
        std::vector<char> bytes;
    };
    std::string path_;
    off_t size_ = 0;
    std::vector<Extent> extents_;
};

}  // namespace rdmaquota::fuzz
