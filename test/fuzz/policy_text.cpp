// Any text as a policy file: no crash, and an error is one line that begins with the file's name. A text that is
// accepted can be edited and compiled.
#include <algorithm>
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

bool same(const ScopeLimits& a, const ScopeLimits& b) {
    const auto in = [](const ScopeLimits& scope, const DeviceLimits& of) {
        const auto* row = find_row(scope, of.device);
        return row ? *row == of.limits : of.limits == unset_row();
    };
    return std::all_of(a.begin(), a.end(), [&](const DeviceLimits& of) { return in(b, of); }) &&
           std::all_of(b.begin(), b.end(), [&](const DeviceLimits& of) { return in(a, of); });
}

// What is read back is what the policy says, for the tenant itself and of everyone.
void expect_compiled(const Policy& policy, const TenantPolicy& tenant, const LimitsSegment& limits) {
    const auto configured = configured_limits(limits);
    for (const auto scope : {Scope::process, Scope::tenant})
        expect(same(configured[index(scope)], tenant.limits[index(scope)]), "what is configured is what the file says");
    for (const auto& [device, row] : tenant.limits[index(Scope::tenant)])
        for (const auto& resource : resource_table)
            if (const auto limit = row[index(resource.id)]; limit != unset)
                expect(limits.limit(Scope::tenant, device, resource.id) == limit, "every limit is compiled");
    for (const auto& [device, row] : policy.process)
        for (const auto& resource : resource_table) {
            const auto* own = find_row(tenant.limits[index(Scope::process)], device);
            const auto limit = own && (*own)[index(resource.id)] != unset ? (*own)[index(resource.id)] : row[index(resource.id)];
            if (limit != unset)
                expect(limits.limit(Scope::process, device, resource.id) == limit, "everyone's limits hold where there are no own");
        }
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
        expect_compiled(*policy, tenant, *limits);
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
