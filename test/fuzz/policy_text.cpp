// Any text as a policy file: no crash, and an error is one line that begins with the file's name. A text that is
// accepted can be edited and compiled.
#include <fstream>

#include "fuzz.hpp"
#include "policy/file/edit.hpp"
#include "policy/file/policy_file.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::fuzz;

namespace {

void check_error(const std::string& message, const std::string& file) {
    expect_one_line(message);
    expect(message.starts_with(file + ":"), "an error begins with the file's name", message);
}

void read_from_file(const std::string& text) {
    static const TemporaryDirectory directory;
    const auto path = directory / "rdmaquota.toml";
    std::ofstream(path, std::ios::binary) << text;
    const auto policy = read_policy(path);
    if (!policy) return check_error(policy.error(), path);
    const auto compiled = directory / "limits";
    for (const auto& tenant : policy->tenants) {
        if (const auto published = LimitsWriter::publish(compiled, limits_of(*policy, tenant)); !published) {
            expect_one_line(published.error());
            continue;
        }
        const auto limits = LimitsSegment::open(compiled, LimitsSegment::Parts::all);
        expect(static_cast<bool>(limits), "what was published can be opened");
        for (const auto& [device, row] : tenant.limits[index(Scope::tenant)])
            for (const auto& resource : resource_table)
                if (const auto limit = row[index(resource.id)]; limit != unset)
                    expect(limits->limit(Scope::tenant, device, resource.id) == limit, "every limit is compiled");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto policy = parse_policy(text, "the.toml");
    if (!policy) {
        check_error(policy.error(), "the.toml");
        return 0;
    }
    const auto edited = edit_policy(text, "the.toml", {{{"default", Scope::tenant, "mlx5_0", Resource::qp}, 7},
                                                       {{"", Scope::process, "*", Resource::mr_bytes}, unlimited}});
    if (!edited)
        check_error(edited.error(), "the.toml");
    else
        expect(static_cast<bool>(parse_policy(edited.value(), "the.toml")), "an edited policy is a policy");
    read_from_file(text);
    return 0;
}
