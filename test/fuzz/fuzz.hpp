// Shared by the fuzz targets: reads their input and reports failures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace rdmaquota::fuzz {

// Ends the target, so that the fuzzer keeps the input.
inline void expect(bool holds, const char* what, std::string_view seen = {}) {
    if (holds) return;
    std::fprintf(stderr, "expected: %s; seen: %.*s\n", what, static_cast<int>(seen.size()), seen.data());
    std::abort();
}

inline void expect_one_line(const std::string& message) {
    expect(!message.empty(), "an error says something");
    expect(message.find('\n') == std::string::npos, "an error is one line", message);
}

// The input, taken from the front; zeroes when it is used up.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) noexcept : data_(data), size_(size) {}

    bool empty() const noexcept { return size_ == 0; }

    template <class T>
    T take() noexcept {
        T value{};
        const auto bytes = size_ < sizeof value ? size_ : sizeof value;
        std::memcpy(&value, data_, bytes);
        skip(bytes);
        return value;
    }

    std::string_view text(std::size_t most) noexcept {
        const std::string_view result(reinterpret_cast<const char*>(data_), size_ < most ? size_ : most);
        skip(result.size());
        return result;
    }

    // Up to the next NUL byte, which is passed over.
    std::string line() {
        const auto all = std::string_view(reinterpret_cast<const char*>(data_), size_);
        const auto end = all.find('\0');
        const std::string result(all.substr(0, end));
        skip(end == all.npos ? size_ : end + 1);
        return result;
    }

private:
    void skip(std::size_t bytes) noexcept {
        data_ += bytes;
        size_ -= bytes;
    }

    const std::uint8_t* data_;
    std::size_t size_;
};

}  // namespace rdmaquota::fuzz
