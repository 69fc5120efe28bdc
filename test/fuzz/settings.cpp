// Limits and words as on command lines, and the environment of a process.
#include <array>

#include "fuzz.hpp"
#include "policy/environment.hpp"

using namespace rdmaquota;
using namespace rdmaquota::fuzz;

namespace {

constexpr std::array names{
    "RDMAQUOTA_LIMIT",
    "RDMAQUOTA_TENANT_LIMIT",
    "RDMAQUOTA_LOG_LEVEL",
    "RDMAQUOTA_LOG_FILE",
    "RDMA_INTERCEPT_ENABLE",
    "RDMA_INTERCEPT_ENABLE_QP_CONTROL",
    "RDMA_INTERCEPT_MAX_QP_PER_PROCESS",
    "RDMA_INTERCEPT_MAX_GLOBAL_QP",
    "RDMA_INTERCEPT_MAX_MR_PER_PROCESS",
    "RDMA_INTERCEPT_MAX_GLOBAL_MR",
    "RDMA_INTERCEPT_MAX_MEMORY_PER_PROCESS",
    "RDMA_INTERCEPT_MAX_GLOBAL_MEMORY",
    "RDMA_INTERCEPT_LOG_LEVEL",
    "RDMA_INTERCEPT_LOG_FILE_PATH",
};
std::array<std::string, names.size()> values;

// An empty value stands for a variable that is not set.
const char* look_up(const char* name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::strcmp(names[i], name) == 0) return values[i].empty() ? nullptr : values[i].c_str();
    return nullptr;
}

bool possible(std::uint64_t limit) { return limit <= max_amount || limit == unlimited || limit == unset; }

void read_limit(Resource resource, std::string_view text) {
    const auto limit = parse_limit(resource, text);
    if (!limit) return expect_one_line(limit.error());
    expect(*limit <= max_amount || *limit == unlimited, "a limit fits into a cell", text);
    const auto again = parse_limit(resource, format_limit(resource, *limit));
    expect(again && *again == *limit, "a limit that is written reads as the same", text);
    expect(!format_amount(resource, *limit).empty(), "a limit can be shown", text);
}

template <class T>
void read_word(const Result<T>& word) {
    if (!word) expect_one_line(word.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto resource = resource_table[input.take<std::uint8_t>() % resource_count].id;
    const auto text = input.line();
    read_limit(resource, text);
    read_word(parse_setting(text));
    read_word(parse_mode(text));
    read_word(parse_unavailable(text));
    read_word(parse_log_level(text));
    read_word(parse_log_target(text));
    read_word(parse_deny_errno(text));

    values[0] = text;
    for (std::size_t i = 1; i < names.size(); ++i) values[i] = input.line();
    const auto tightening = read_environment(look_up);
    for (const auto& warning : tightening.warnings) expect_one_line(warning);
    for (std::size_t i = 0; i < resource_count; ++i)
        expect(possible(tightening.process[i]) && possible(tightening.tenant[i]), "limits fit into cells");
    return 0;
}
