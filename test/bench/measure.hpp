// How every benchmark here takes and prints figures.
//
// A figure is one line on standard output: NAME MEDIAN LEAST MOST. test/bench/report.py makes the
// table of them; names are "row.case.side", for example "charge.qp.mutex".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace rdmaquota::bench {

inline std::uint64_t now_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline double elapsed_ns(std::uint64_t since) noexcept { return static_cast<double>(now_ns() - since); }

[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

inline void print(const std::string& name, double value) {
    std::printf("%s %.6g %.6g %.6g\n", name.c_str(), value, value, value);
    std::fflush(stdout);
}

// One value per run; at least one.
inline void print(const std::string& name, std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::printf("%s %.6g %.6g %.6g\n", name.c_str(), values[values.size() / 2], values.front(), values.back());
    std::fflush(stdout);
}

// The number behind `option` on the command line, else `otherwise`.
inline unsigned number_option(int argc, char** argv, const std::string& option, unsigned otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (option == argv[i]) return static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    return otherwise;
}

}  // namespace rdmaquota::bench
